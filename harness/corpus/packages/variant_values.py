"""The values of a package's variants, which takes reading the models: their precision, and the reference.

The variants of one component mean the same. One of them, the reference, has the golden for all: the one whose
values are the finest.
"""

import functools
import re
from collections import Counter
from pathlib import Path

from harness.core.comparison.tolerance import finest_precision
from harness.core.records.facts import CPU_PROVIDER
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.model_facts import ModelFacts, model_facts
from harness.corpus.model.model_file import read_lean
from harness.corpus.suites.model_package import ModelPackage, PackageComponent

COMPILED = "EPContext"
"""The operator in every model that an execution provider has compiled."""

_INTEGERS = re.compile(r"[Qq]uantize|^QLinear|^QGemm|^QAttention|^MatMulInteger|NBits|Bnb4")
"""Operators by which a model computes in integers although its other values are floats."""

_FOUR_BITS = re.compile(r"NBits|Bnb4")

_RANKS = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3}

_OF_INTEGERS, _UNREADABLE = 4, 9


def precision_of(facts: ModelFacts) -> str:
    """Return the precision that a variant computes in, a key of ``FLOORS`` in ``tolerance``."""
    if _has(facts, _FOUR_BITS):
        return "int4"
    if _has(facts, _INTEGERS):
        return "int8"
    return finest_precision(facts.float_types, "float32")


def _has(facts: ModelFacts, operators: re.Pattern[str]) -> bool:
    return any(operators.search(one) for one in facts.op_types)


def sibling(package: ModelPackage, files: dict[str, Path], model: str) -> str:
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


def computes(files: dict[str, Path], model: str) -> str:
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
    file = read_lean(path)
    return model_facts(file.model), file.digest.digest()


def _facts(path: Path) -> tuple[ModelFacts, bytes]:
    state = path.stat()
    return _facts_of(path, (state.st_mtime_ns, state.st_size))
