"""ONNX's operator tests, generated afresh: what is read back is what onnx made."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.core.values.value import Map, Sequence, Tensor, Value
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import Suite
from harness.corpus.suites.suites import open_suite


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT, str(tmp_path_factory.mktemp("cache")))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            state: Any = np.random.get_state()  # noqa: NPY002
            opened = open_suite("onnx-node")
            after: Any = np.random.get_state()  # noqa: NPY002
            assert np.array_equal(after[1], state[1])
        yield opened


def same(value: Value, made: Any) -> bool:
    if made is None:
        return value is None
    if isinstance(made, list):
        items = value.items if isinstance(value, Sequence) else ()
        return len(items) == len(made) and all(map(same, items, made))
    array = np.asarray(numpy_helper.to_array(made) if isinstance(made, onnx.TensorProto) else made)
    if not isinstance(value, Tensor) or value.array.shape != array.shape:
        return False
    if value.dtype == "string":
        return bool(np.array_equal(value.array, array.astype(object)))
    return value.array.dtype == array.dtype and value.array.tobytes() == array.tobytes()


def test_every_case_reads_back_as_onnx_made_it(suite: Suite) -> None:
    from onnx.backend.test.case.node import collect_testcases

    made: dict[str, Any] = {case.name: case for case in collect_testcases(None)}
    assert suite.models() == tuple(sorted(made))
    assert len(made) == 1884
    different = []
    for model in suite.models():
        case = load_case(suite, model, {})
        ((inputs, outputs),) = made[model].data_sets
        (data_set,) = case.data_sets
        if not all(same(value, item) for (_, value), item in zip(data_set.inputs, inputs, strict=True)):
            different.append(model)
        if not all(same(value, item) for (_, value), item in zip(data_set.expected, outputs, strict=True)):
            different.append(model)
        declared = {port.name: port.type for port in case.ports}
        for name, value in data_set.inputs:
            if isinstance(value, Tensor) and declared[name].kind == "tensor":
                assert value.dtype == declared[name].dtype
                shape = declared[name].shape or value.array.shape
                pairs = zip(shape, value.array.shape, strict=True)
                assert all(size in {None, got} for size, got in pairs)
            assert not isinstance(value, Map)
    assert different == []


def test_the_second_use_lists_what_is_there(suite: Suite) -> None:
    stamp = suite.root.stat().st_mtime_ns
    again = open_suite("onnx-node")
    assert again == suite
    assert suite.root.stat().st_mtime_ns == stamp
    assert (suite.root / "test_abs" / "test_data_set_0" / "input_0.pb").is_file()
    assert not list(Path(suite.root).glob("*/data.json"))  # all of them have the usual tolerance
