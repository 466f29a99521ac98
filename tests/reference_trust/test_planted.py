"""An EP with the misunderstanding of onnx.reference is found, on the real CPU provider."""

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.reference_trust.measure import answer_of_cpu, answer_of_reference, measure
from benchmarks.reference_trust.planted import is_excused
from benchmarks.reference_trust.specs import Spec, floats, positive, subjects_of
from benchmarks.reference_trust.subject import Subject, model_of
from harness.corpus.used_operators import used_operators
from harness.golden.trust import REFERENCE, doubts_of, shipped_trust

pytestmark = pytest.mark.real_ep
IMAGE = floats(1, 3, 4, 4)
MISUNDERSTOOD = [
    Spec("LpNormalization", [floats(3, 4)], {"p": (1,), "axis": (-1,)}),
    Spec("LRN", [floats(2, 7, 3, 3)], {"size": (3,), "alpha": (0.5,)}),
    Spec("BatchNormalization", [IMAGE, floats(3), floats(3), floats(3), positive(3)], opset=9),
    Spec("MaxPool", [IMAGE], {"kernel_shape": ([3, 3],), "pads": ([1, 1, 1, 1],), "ceil_mode": (1,)}),
    Spec("GlobalMaxPool", [floats(2, 4, 9)]),
]


def planted() -> Iterator[tuple[Subject, list[Any], list[Any]]]:
    for one in subjects_of(MISUNDERSTOOD):
        if measure(one).status == "differs":
            yield one, answer_of_cpu(one), answer_of_reference(one)


def doubts(one: Subject) -> dict[str, str]:
    return doubts_of(
        used_operators(model_of(one)),
        shipped_trust(),
        onnx_version=importlib.metadata.version("onnx"),
        onnxruntime_version=importlib.metadata.version("onnxruntime"),
    )


def test_no_ep_is_excused_by_a_wrong_reference() -> None:
    found = set()
    excused_before = set()
    for one, cpu, told in planted():
        found.add(one.node.op_type)
        if is_excused(one, cpu, told, {}):
            excused_before.add(one.node.op_type)
        assert REFERENCE in doubts(one)
        assert not is_excused(one, cpu, told, doubts(one)), one
    assert found == {spec.op_type for spec in MISUNDERSTOOD}
    assert "LRN" in excused_before  # the plant is one that matters


def test_a_fault_that_a_checked_reference_shares_is_found_by_float64() -> None:
    (one,) = (one for one in subjects_of([Spec("Tanh", [floats(3, 4)])]) if one.opset == 26)
    (golden,) = answer_of_cpu(one)
    assert doubts(one) == {}
    for faulty in (golden * 1.6, np.roll(golden, 1), -golden, np.zeros_like(golden)):
        assert not is_excused(one, [golden], [faulty.astype(np.float32)], doubts(one))
