"""``where`` of an ``[[expect]]`` entry: conditions on the target that ran, by its fingerprint."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.files.structure import FilePlace
from harness.core.findings.delivered_precision import DELIVERED
from harness.core.text.errors import Problem, valid_names
from harness.core.text.globs import Globs, glob_matcher
from harness.core.text.version_range import EXAMPLE, version_range
from harness.plan.selector import OneOrMore, SelectorText, one_or_more
from harness.plan.surroundings import SYSTEMS, Surroundings

_X86 = (
    *("amx_tile", "amx_bf16", "amx_fp16", "amx_int8", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx512f"),
    *("avx_vnni", "avx_ne_convert", "avx2", "fma", "f16c"),
)
_ARM = ("asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2", "svebf16", "sme")
FEATURES = (*_X86, *_ARM)
"""Features of processors that an agent reports: those that change numerics, by their names in Linux."""

NEGATION = "!"
_VERSIONS = ("onnxruntime", "ep_version")
_DRIVER = re.compile(r"(?:([A-Za-z_][\w-]*)\s*)?(.*)", re.DOTALL)


class WhereTable(msgspec.Struct, kw_only=True):
    """Conditions on the target that ran, all of which must hold; `run.json` has its fingerprint."""

    onnxruntime: Annotated[
        SelectorText | UnsetType, Meta(description=f'Versions of onnxruntime, such as "{EXAMPLE}".')
    ] = UNSET
    ep_version: Annotated[
        SelectorText | UnsetType,
        Meta(description="Versions of the plugin, or of the runtime that the provider is built into."),
    ] = UNSET
    driver: Annotated[
        SelectorText | UnsetType,
        Meta(description='Versions of any driver, or of the one named before: ">=550", "nvidia >=550".'),
    ] = UNSET
    device: Annotated[
        OneOrMore | UnsetType, Meta(description="Glob on any fact of the device, such as its name or type.")
    ] = UNSET
    architecture: Annotated[
        OneOrMore | UnsetType, Meta(description="Glob on the processor's architecture, such as x86_64.")
    ] = UNSET
    os: Annotated[OneOrMore | UnsetType, Meta(description="linux, windows or macos.")] = UNSET
    processor: Annotated[
        OneOrMore | UnsetType,
        Meta(
            description="Features of the processor, all of which it has: "
            + ", ".join(FEATURES)
            + '. "!amx_bf16" for one that it lacks.'
        ),
    ] = UNSET
    delivers: Annotated[
        OneOrMore | UnsetType,
        Meta(description="Precision that the provider delivered in the cell: float32, float16 or bfloat16."),
    ] = UNSET
    simulator: Annotated[
        bool | UnsetType, Meta(description="Whether a program stands for the accelerator.")
    ] = UNSET


class Where(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The conditions in their normal form; fields as in ``WhereTable``, empty if there is none."""

    onnxruntime: str = ""
    ep_version: str = ""
    driver: str = ""
    device: Globs = ()
    architecture: Globs = ()
    os: tuple[str, ...] = ()
    processor: tuple[str, ...] = ()
    delivers: tuple[str, ...] = ()
    simulator: bool | None = None


def where_from(table: Mapping[str, Any]) -> Where:
    """Return a checked table in its normal form."""
    texts = ("onnxruntime", "ep_version", "driver", "simulator")
    values: dict[str, Any] = {
        key: value if key in texts else one_or_more(value) for key, value in table.items()
    }
    return Where(**values)


def where_problems(table: object, place: FilePlace) -> Iterator[Problem]:
    """Yield what is wrong with the values of a table; values of a wrong type are left to ``deviations``."""
    if not isinstance(table, dict):
        return
    if not table:
        yield place.problem("there is no condition", f"add one of {', '.join(WhereTable.__struct_fields__)}")
    for key in (*_VERSIONS, "driver"):
        text = table.get(key)
        if isinstance(text, str) and text:
            versions = _named_versions(text)[1] if key == "driver" else text
            if version_range(versions) is None:
                hint = f'write comparisons with >=, >, <, <=, == or !=, such as "{EXAMPLE}"'
                yield place.key(key).problem(f"not a range of versions: {text!r}", hint)
    choices = {"os": tuple(dict.fromkeys(SYSTEMS.values())), "delivers": DELIVERED, "processor": FEATURES}
    for key, valid in choices.items():
        for here, value in _words(table.get(key), place.key(key)):
            word = value.removeprefix(NEGATION) if key == "processor" else value
            if word not in valid:
                yield here.problem(f"got {value!r}", valid_names(word, valid, limit=len(valid)))


def holds(where: Where, seen: Surroundings, delivered: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether all conditions hold, and which of them concern unknown facts.

    A condition on an unknown fact does not hold. A cell without a visible delivered precision simply has
    none.
    """
    found: dict[str, bool | None] = {
        key: _delivers(wanted, delivered) if key == "delivers" else _CHECKS[key](wanted, seen)
        for key, wanted in conditions(where).items()
    }
    unknown = tuple(key for key, answer in found.items() if answer is None)
    # If one condition certainly does not hold, the others do not matter.
    return all(found.values()), () if False in found.values() else unknown


def conditions(where: Where) -> dict[str, Any]:
    """Return the existing conditions, by key."""
    values = {key: getattr(where, key) for key in Where.__struct_fields__}
    return {key: wanted for key, wanted in values.items() if wanted not in ("", (), None)}


def features_of(architecture: tuple[str, ...]) -> tuple[str, ...]:
    """Return the features that a processor may have; all of them if its architecture is unknown."""
    families = (("x86_64", _X86), ("aarch64", _ARM))
    return next((features for name, features in families if name in architecture), FEATURES)


def _words(value: object, place: FilePlace) -> Iterator[tuple[FilePlace, str]]:
    if isinstance(value, str) and value:
        yield place, value
    elif isinstance(value, list):
        for index, one in enumerate(value):
            if isinstance(one, str) and one:
                yield place.item(index), one


def _version(text: str, version: str) -> bool | None:
    found = version_range(text)
    return None if found is None or not version else found.holds(version)


def _driver(text: str, seen: Surroundings) -> bool | None:
    name, versions = _named_versions(text)
    known = [
        answer
        for key, version in seen.drivers.items()
        if name in ("", key) and (answer := _version(versions, version)) is not None
    ]
    return any(known) if known else None


def _named_versions(text: str) -> tuple[str, str]:
    """Return the name of a driver, which may be empty, and the range of its versions."""
    found = _DRIVER.fullmatch(text)
    return (found[1] or "", found[2]) if found else ("", text)


def _globs(globs: Globs, values: tuple[str, ...]) -> bool | None:
    return any(map(glob_matcher(globs), values)) if values else None


def _features(wanted: tuple[str, ...], seen: Surroundings) -> bool | None:
    if seen.features is None:
        return None
    has = seen.features
    return all((word.removeprefix(NEGATION) in has) is not word.startswith(NEGATION) for word in wanted)


def _delivers(wanted: tuple[str, ...], delivered: str) -> bool:
    return delivered in wanted


_CHECKS: dict[str, Callable[[Any, Surroundings], bool | None]] = {
    "onnxruntime": lambda text, seen: _version(text, seen.onnxruntime),
    "ep_version": lambda text, seen: _version(text, seen.ep_version),
    "driver": _driver,
    "device": lambda globs, seen: _globs(globs, seen.devices),
    "architecture": lambda globs, seen: _globs(globs, seen.architecture),
    "os": lambda names, seen: seen.os in names if seen.os else None,
    "processor": _features,
    "simulator": lambda wanted, seen: None if seen.simulator is None else seen.simulator is wanted,
}
