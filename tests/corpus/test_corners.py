"""The suite of corner values."""

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from harness.core.values.value import Tensor
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.corners.write import corners, model_of
from harness.corpus.load_case import load_case
from harness.corpus.suites.suites import open_suite

CORNERS = corners()


def test_each_corner_has_a_name_of_its_own_and_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert corners().keys() == CORNERS.keys()
    assert len(CORNERS) > 150
    names = [name for name in CORNERS if not name.replace("_", "").isalnum() or name != name.lower()]
    assert names == []


@pytest.mark.parametrize("name", CORNERS)
def test_models_are_valid(name: str) -> None:
    onnx.checker.check_model(model_of(CORNERS[name]), full_check=True)


def test_the_suite_is_read_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    suite = open_suite("corners")
    assert suite.models() == tuple(sorted(CORNERS))
    for name, corner in CORNERS.items():
        case = load_case(suite, name, {})
        (data_set,) = case.data_sets
        fed = [array for index, array in enumerate(corner.inputs) if index not in corner.constants]
        assert len(data_set.inputs) == len(fed)
        for (_, value), array in zip(data_set.expected, corner.expected, strict=True):
            assert isinstance(value, Tensor)
            np.testing.assert_array_equal(value.array, array)


@pytest.mark.parametrize("name", [name for name in CORNERS if name.endswith("_odd")])
def test_odd_integers_tell_whether_operands_become_floats(name: str) -> None:
    """An EP that converts them is wrong, even if it then computes with all digits."""
    corner = CORNERS[name]
    operand = corner.inputs[0].dtype
    if operand == np.uint8:  # its operands are small; the sum is not
        assert corner.expected[0].astype(np.float32) != corner.expected[0]
        return
    kind = np.float32 if operand == np.int32 else np.float64
    lost = {
        "abcde"[at]: array.astype(kind).astype(array.dtype)
        for at, array in enumerate(corner.inputs)
        if at not in corner.constants
    }
    (found,) = ReferenceEvaluator(model_of(corner)).run(None, lost)
    assert not np.array_equal(found, corner.expected[0])


def test_the_reference_evaluator_agrees() -> None:
    for name, corner in CORNERS.items():
        feeds = {"abcde"[at]: one for at, one in enumerate(corner.inputs) if at not in corner.constants}
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(model_of(corner)).run(None, feeds)
        for one, right in zip(found, corner.expected, strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-5, atol=0, equal_nan=True, err_msg=name)
            assert one.dtype == right.dtype, name
