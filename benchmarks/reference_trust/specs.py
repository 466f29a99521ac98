"""Subjects made for their attributes: what ONNX's tests do not vary, or not at every version."""

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import helper

from benchmarks.reference_trust.restamp import restamped, versions_of
from benchmarks.reference_trust.subject import Subject
from harness.core.values.value import Array

MOST = 48
"""Combinations of attributes of one specification."""

Make = Callable[[np.random.Generator], Array | None]
"""An input."""


@dataclasses.dataclass(frozen=True)
class Spec:
    """One operator with inputs of certain shapes.

    Attributes:
        op_type: The operator.
        inputs: What they are made by.
        attributes: Name -> values, of which None leaves the attribute out; all combinations are taken, up to
            ``MOST`` of them.
        outputs: How many of them.
        domain: Of the operator.
        opset: What it is written for; the newest version of the operator by default.
    """

    op_type: str
    inputs: Sequence[Make]
    attributes: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    opset: int = 0


def floats(*shape: int) -> Make:
    """Normal numbers."""
    return lambda random: random.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> Make:
    """Numbers from 0.5 to 2."""
    return lambda random: random.uniform(0.5, 2.0, shape).astype(np.float32)


def unit(*shape: int) -> Make:
    """Numbers from 0 to 1."""
    return lambda random: random.uniform(0.0, 1.0, shape).astype(np.float32)


def tied(*shape: int) -> Make:
    """Small whole numbers, many of them equal."""
    return lambda random: random.integers(-2, 3, shape).astype(np.float32)


def integers(low: int, high: int, shape: tuple[int, ...], dtype: str = "int64") -> Make:
    """Integers below ``high``."""
    return lambda random: random.integers(low, high, shape).astype(dtype)


def values(numbers: Any, dtype: str = "int64") -> Make:
    """These very numbers."""
    return lambda _: np.array(numbers, dtype)


def left_out(_: np.random.Generator) -> None:
    """No input."""


def subjects_of(specs: Sequence[Spec]) -> Iterator[Subject]:
    """Every combination at every version that knows its attributes."""
    for number, spec in enumerate(specs):
        random = np.random.default_rng(zlib.crc32(f"{spec.op_type} {number}".encode()))
        names = list(spec.attributes)
        combinations = list(itertools.product(*spec.attributes.values()))
        if len(combinations) > MOST:
            chosen = sorted(random.choice(len(combinations), MOST, replace=False).tolist())
            combinations = [combinations[place] for place in chosen]
        newest = spec.opset or versions_of(spec.domain, spec.op_type)[0].since_version
        for combination in combinations:
            given = {name: one for name, one in zip(names, combination, strict=True) if one is not None}
            node = helper.make_node(
                spec.op_type,
                [f"i{place}" for place in range(len(spec.inputs))],
                [f"o{place}" for place in range(spec.outputs)],
                domain=spec.domain,
                **given,
            )
            yield from restamped(node, newest, [make(random) for make in spec.inputs])
