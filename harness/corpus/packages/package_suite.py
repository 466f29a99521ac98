"""A model package as a suite: each variant of each component is a model, and so is each component.

The variants of one component mean the same. One of them, the reference, has the golden for all: the one whose
values are the finest. It is found when a model is first asked for, as that takes reading the models.
"""

import functools
import hashlib
import re
from collections import Counter
from os.path import realpath
from pathlib import Path

from harness.core.facts import CPU_PROVIDER
from harness.core.tolerance import finest_precision
from harness.core.variant_use import VariantUse
from harness.corpus.genai_config import CONFIG_NAME, read_genai_config
from harness.corpus.model_errors import ModelError
from harness.corpus.model_facts import ModelFacts, model_facts
from harness.corpus.model_file import parse_model, read_model_file
from harness.corpus.model_folder import is_text
from harness.corpus.packages.confined_path import leads_out, why_refused
from harness.corpus.packages.model_package import ModelPackage, PackageComponent, PackageVariant
from harness.corpus.packages.read_package import PATH_OPTIONS, read_package
from harness.corpus.packages.with_weights import WEIGHTS_OPTION, with_weights
from harness.corpus.suite import Suite, suites_cache

COMPILED = "EPContext"
"""The operator in every model that an execution provider has compiled."""

_INTEGERS = re.compile(r"[Qq]uantize|^QLinear|^QGemm|^QAttention|^MatMulInteger|NBits|Bnb4")
"""Operators by which a model computes in integers although its other values are floats."""

_FOUR_BITS = re.compile(r"NBits|Bnb4")

_RANKS = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3}

_OF_INTEGERS, _UNREADABLE = 4, 9


def open_package(root: Path) -> Suite:
    """Open a package as a suite named after its folder.

    Raises:
        PackageError: It is no package, or one that the text of the format forbids.
    """
    root = root.absolute()
    package = read_package(root)
    files: dict[str, Path] = {}
    uses: dict[str, VariantUse] = {}
    weights: dict[str, Path] = {}
    for component in package.components:
        for variant in component.variants:
            if (path := model_of(variant)) is None or not is_text(f"{component.name}{variant.name}"):
                continue
            name = f"{component.name}/{variant.name}"
            files[name] = path
            uses[name] = _use(variant)
            if variant.ort is not None and WEIGHTS_OPTION in variant.ort.session_options:
                weights[name] = Path(variant.ort.session_options[WEIGHTS_OPTION])
        if any(name.startswith(f"{component.name}/") for name in files):
            uses[component.name] = VariantUse(is_component=True)
    return Suite(
        name=root.name if root.name not in {"", ".", ".."} else root.resolve().name,
        root=root,
        kind="package",
        names=tuple(sorted(uses)),
        cache=suites_cache(),
        files=files,
        uses=uses,
        package=package,
        placed=functools.partial(_placed, files, weights),
        siblings=functools.cache(functools.partial(_sibling, package, files)),
        computes=functools.partial(_computes, files),
    )


def model_of(variant: PackageVariant) -> Path | None:
    """Return the model of a variant: as onnxruntime has it, or its only one for another consumer."""
    if variant.ort is not None and variant.ort.model_file is not None:
        found = variant.ort.model_file
        if not found.is_dir():
            return found
        return _only_model(found)
    if variant.ort is None and variant.consumers:
        named = _named_for_genai(variant.folder)
        return variant.folder / named if named else _only_model(variant.folder)
    return None


def _named_for_genai(folder: Path) -> str:
    """Return the name of the decoder's file by ``genai_config.json``; empty if there is none."""
    if leads_out(realpath(folder), folder / CONFIG_NAME):
        return ""
    try:
        config = read_genai_config(folder)
    except ModelError:  # told with the model, which has the same file beside it
        return ""
    named = "" if config is None else config.model.decoder.filename
    refused = why_refused(named) or leads_out(realpath(folder), folder / named)
    return "" if refused else named


def precision_of(facts: ModelFacts) -> str:
    """Return the precision that a variant computes in, a key of ``harness.core.tolerance.FLOORS``."""
    if _has(facts, _FOUR_BITS):
        return "int4"
    if _has(facts, _INTEGERS):
        return "int8"
    return finest_precision(facts.float_types, "float32")


def _has(facts: ModelFacts, operators: re.Pattern[str]) -> bool:
    return any(operators.search(one) for one in facts.op_types)


def _only_model(folder: Path) -> Path | None:
    inside = realpath(folder)
    found = [one for one in folder.glob("*.onnx") if not leads_out(inside, one)] if folder.is_dir() else []
    return found[0] if len(found) == 1 else None


def _use(variant: PackageVariant) -> VariantUse:
    ort = variant.ort
    entries = {} if ort is None else ort.session_options
    return VariantUse(
        ep=variant.ep,
        options={} if ort is None else ort.provider_options,
        entries={key: value for key, value in entries.items() if key not in PATH_OPTIONS},
    )


def _sibling(package: ModelPackage, files: dict[str, Path], model: str) -> str:
    """Return the model whose golden a model has; empty if it has its own."""
    component = next(one for one in package.components if model in _names(one) or model == one.name)
    known = {
        f"{component.name}/{one.name}": one
        for one in component.variants
        if f"{component.name}/{one.name}" in files
    }
    contents = Counter(_read(files[name])[1] for name in known)

    def rank(name: str) -> tuple[int, int, bool]:
        precision, content = _read(files[name])
        # Of equally fine ones, the content of most variants: a single one may be the wrong one.
        return precision, -contents[content], known[name].ep != CPU_PROVIDER

    reference = min(known, key=rank)  # the first of equals
    return "" if reference == model else reference


def _names(component: PackageComponent) -> tuple[str, ...]:
    return tuple(f"{component.name}/{one.name}" for one in component.variants)


def _placed(files: dict[str, Path], weights: dict[str, Path], model: str) -> Path:
    found = files[model]
    return with_weights(found, weights[model]) if model in weights else found


def _computes(files: dict[str, Path], model: str) -> str:
    """Return the precision that a variant computes in; empty if its model cannot be read."""
    try:
        return precision_of(_facts(files[model])[0]) if model in files else ""
    except (ModelError, OSError, ValueError):
        return ""


def _read(path: Path) -> tuple[int, bytes]:
    """Return how far the values of a model are from float64, and a digest; the unreadable are last."""
    try:
        facts, digest = _facts(path)
    except (ModelError, OSError, ValueError):
        return _UNREADABLE, bytes(str(path), "utf-8")
    if COMPILED in facts.op_types:
        return _UNREADABLE - 1, digest
    if _has(facts, _INTEGERS):
        return _OF_INTEGERS, digest
    return _RANKS.get(finest_precision(facts.float_types, "float32"), _OF_INTEGERS), digest


@functools.lru_cache(maxsize=256)
def _facts_of(path: Path, _state: tuple[int, int]) -> tuple[ModelFacts, bytes]:
    content = read_model_file(path)
    return model_facts(parse_model(content)), hashlib.sha256(content).digest()


def _facts(path: Path) -> tuple[ModelFacts, bytes]:
    state = path.stat()
    return _facts_of(path, (state.st_mtime_ns, state.st_size))
