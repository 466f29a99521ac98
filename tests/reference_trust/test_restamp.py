"""A node in the form of older versions of its operator."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from benchmarks.reference_trust.restamp import opsets_of, restamped, versions_of
from benchmarks.reference_trust.subject import Subject, in_float64, model_of, shuffled

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def forms(op_type: str, written_for: int, values: list[Any], **attributes: Any) -> dict[int, Subject]:
    node = helper.make_node(op_type, [f"x{place}" for place in range(len(values))], ["y"], **attributes)
    return {one.since: one for one in restamped(node, written_for, values)}


def given(one: Subject) -> dict[str, Any]:
    return {item.name: helper.get_attribute_value(item) for item in one.node.attribute}


def test_an_input_that_was_an_attribute_becomes_one() -> None:
    found = forms("ReduceSum", 13, [X, np.array([1])], keepdims=0)
    assert list(found[13].feeds) == ["i0", "i1"]
    assert list(found[1].feeds) == ["i0"]
    assert given(found[1]) == {"axes": [1], "keepdims": 0}
    pad = forms("Pad", 25, [X, np.array([0, 1, 0, 0]), np.array(1.5, np.float32)], mode="constant")
    assert given(pad[2]) == {"pads": [0, 1, 0, 0], "value": 1.5, "mode": b"constant"}
    clip = forms("Clip", 13, [X, np.array(1.0, np.float32), None])
    assert given(clip[6]) == {"min": 1.0}


def test_an_attribute_that_a_version_does_not_know_is_left_out() -> None:
    found = forms("LpPool", 22, [X], p=1, kernel_shape=[1], ceil_mode=1)
    assert set(given(found[22])) == {"p", "kernel_shape", "ceil_mode"}
    assert set(given(found[11])) == {"p", "kernel_shape"}


def test_a_version_that_lacks_what_it_requires_is_left_out() -> None:
    assert 9 not in forms("Upsample", 7, [X], scales=[1.0, 2.0])
    assert 7 in forms("Upsample", 9, [X, np.array([1.0, 2.0], np.float32)])


def test_expected_outputs_go_with_another_version() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    found = {one.since: one.expected for one in restamped(node, 14, [X], expected=[X])}
    assert len(found[14]) == 1
    assert not found[13]


def test_both_ends_of_a_version_are_asked_about() -> None:
    softmax = {schema.since_version: opsets_of(schema) for schema in versions_of("", "Softmax")}
    assert softmax == {13: (13, 26), 11: (11, 12), 1: (7, 10)}


def test_doubles_and_another_order() -> None:
    one = forms("Relu", 14, [X])[14]
    double = in_float64(one)
    assert double is not None
    assert (one.dtype, double.dtype) == ("float32", "float64")
    assert in_float64(double) is None
    other = shuffled(one, np.random.default_rng(0))
    assert other is not None
    assert sorted(other.feeds["i0"].flat) == sorted(X.flat)
    assert not np.array_equal(other.feeds["i0"], X)


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_a_subject_is_a_model(domain: str) -> None:
    op_type = "Normalizer" if domain else "Relu"
    node = helper.make_node(op_type, ["x"], ["y"], domain=domain)
    for one in restamped(node, versions_of(domain, op_type)[0].since_version, [X]):
        model = model_of(one)
        assert {opset.domain for opset in model.opset_import} == {"", domain}
