"""What the catalogue says about the first provider of a target, and about its precision modes.

A value ``ep:<mode>`` of the precision axis names a mode. ``harness.core.records.precision`` has the other
values.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from harness.catalog.catalog import find_provider
from harness.catalog.check_options import check_options
from harness.catalog.option import PrecisionMode
from harness.catalog.provider import Provider
from harness.core.text.errors import one_line

EP = "ep:"
"""Prefix of a value of the precision axis that names a mode of the provider."""

OWN_PRECISIONS = {
    "fp32": "float32",
    "tf32": "tf32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8": "float8",
    "int16": "int16",
    "int8": "int8",
    "int4": "int4",
    "mixed": "mixed",
}
"""Precision modes that a matrix may describe itself -> the element type that the EP then computes in."""

_PINNED = re.compile(r"\s*([\w.-]+)\s*(?:\[[^\]]*\])?\s*==\s*([0-9][\w.]*)\s*(?:;.*)?")


def known_provider(written: object) -> Provider | None:
    """Return the catalogue's entry for a provider, or for the first one of a list, as a file has it."""
    first = written[0] if isinstance(written, list | tuple) and written else written
    return find_provider(first) if isinstance(first, str) else None


def release_of(provider: Provider, packages: Sequence[object]) -> str:
    """Return the release of onnxruntime that an environment of packages pins; empty if it pins none.

    The installed release does not count: whether a matrix is valid must not depend on the machine.
    """
    wheels = {"onnxruntime", *(_normal(wheel) for wheel in provider.wheels)}
    for requirement in packages:
        pinned = _PINNED.fullmatch(requirement) if isinstance(requirement, str) else None
        if pinned and _normal(pinned[1]) in wheels:
            return pinned[2]
    return ""


@cache
def precision_mode(provider: str, precision: str) -> PrecisionMode | None:
    """Return the mode that a value of the precision axis names, or None."""
    known = known_provider(provider) if precision.startswith(EP) else None
    return known.precision(precision.removeprefix(EP)) if known else None


@cache
def valid_precisions(provider: str) -> tuple[str, ...]:
    """Return the modes of a provider as values of the axis; empty if the provider is unknown."""
    known = known_provider(provider)
    return tuple(EP + mode.name for mode in known.precision_modes) if known else ()


def why_not_tried(
    provider: str, precision: str, device: Mapping[str, str], *, plugin: bool, release: str
) -> str:
    """Return why a target cannot compute in a precision, in one line; empty if it can be tried.

    The provider is the first of its chain. The release of onnxruntime is empty if unknown.
    """
    if not precision.startswith(EP):
        return ""
    known, mode = known_provider(provider), precision_mode(provider, precision)
    if known is None:
        return (
            f"{provider} is not in the catalogue, so its precision modes are unknown; `precisions` names them"
        )
    if mode is None:
        return f"{known.name} has no {precision}; it has {', '.join(valid_precisions(provider)) or 'none'}"
    findings = check_options(known, mode.options, plugin=plugin, release=release)
    obstacles = [
        *(() if mode.runnable else (f"cannot be chosen by options alone; it needs {mode.needs}",)),
        *(
            f"is for a device of {key} {value}, and this target's is {device[key]}"
            for key, value in mode.device.items()
            if key in device and device[key].casefold() != value.casefold()
        ),
        *(f"is not available here: {finding.what}" for finding in findings if finding.wrong),
    ]
    return one_line(f"{precision} {obstacles[0]}") if obstacles else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
