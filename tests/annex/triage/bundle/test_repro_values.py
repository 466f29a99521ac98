"""A bundle's own reader of ONNX's data, and its own rule, agree with the harness's."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.annex.triage.bundle_values import write_values
from harness.annex.triage.distance import distance, why_wrong
from harness.core.values.value import BITS, DTYPES, Map, Sequence, Tensor, Value, pack, tensor, unpack
from harness.corpus.beside import value_file
from harness.data_files import data_root


@pytest.fixture(scope="module")
def script() -> Any:
    """The module ``repro_values`` of a bundle."""
    folder = str(data_root() / "report_templates")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("repro_values")
    finally:
        sys.path.remove(folder)


def read_back(script: Any, folder: Path, value: Value) -> Any:
    (entry,) = write_values(folder, folder / "set", "input", (("x", value),), {})
    return script.read(str(folder), {"file": entry.file, "kind": entry.kind})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 2), (5,)])
def test_every_type_is_read(script: Any, tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    size = -(-count * BITS.get(dtype, 8 * DTYPES[dtype].itemsize) // 8)
    data = bytes((37 * i + 11) % 2 if dtype == "bool" else (37 * i + 11) % 64 for i in range(size))
    if dtype in BITS:  # what lies beyond the last element is 0
        data = pack(unpack(dtype, shape, data))
    value = unpack(dtype, shape, data)
    found = read_back(script, tmp_path, value)
    assert (found.dtype, found.shape) == (dtype, shape)
    assert found.raw == data
    if not found.as_codes:
        one, other = (array.astype(np.complex128) for array in (found.array, value.array))
        assert np.array_equal(one, other, equal_nan=True)


def test_containers_and_texts_are_read(script: Any, tmp_path: Path) -> None:
    text = tensor(np.array([["ä", ""], ["x\0", "🙂"]], object))
    found = read_back(script, tmp_path, text)
    assert found.array.tolist() == text.array.tolist()
    items = read_back(script, tmp_path, Sequence(items=(text, tensor(np.ones(2)))))
    assert [item.dtype for item in items] == ["string", "float64"]
    assert read_back(script, tmp_path, None) is None
    for keys in (np.array([7, -2]), np.array(["a", "b"], object)):
        table = Map(keys=tensor(keys), values=tensor(np.array([0.5, 2], np.float32)))
        found = read_back(script, tmp_path, table)
        assert found["keys"].array.tolist() == keys.tolist()
        assert found["values"].array.tolist() == [0.5, 2]
        assert script.feeds(found, None) == dict(zip(keys.tolist(), [0.5, 2.0], strict=True))


def test_large_values_lie_in_a_file_of_their_own(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_file, "LARGE_BYTES", 100)
    monkeypatch.setattr(value_file, "OUTSIDE_FROM", 100)
    value = tensor(np.arange(100.0))
    found = read_back(script, tmp_path, value)
    assert (tmp_path / "set" / "input_0.data").is_file()
    assert found.array.tolist() == value.array.tolist()


ARRAYS = st.sampled_from(["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"]).flatmap(
    lambda dtype: st.tuples(*(hnp.arrays(np.dtype(dtype), 4, fill=st.nothing()) for _ in range(2)))
)


@given(pair=ARRAYS, limit=st.sampled_from([0.0, 1e-3, 0.5, None]))
def test_both_rules_agree(script: Any, pair: tuple[Any, Any], limit: float | None) -> None:
    one, other = (tensor(array) for array in pair)
    with np.errstate(all="ignore"):
        told = why_wrong(one, other, limit)
        ((wrong, _),) = script.compare("y", script.found(pair[0]), script.found(pair[1]), limit)
    assert wrong == bool(told)


@given(array=hnp.arrays(np.float64, 5), factor=st.floats(1e-6, 1e6))
def test_the_distance_does_not_depend_on_the_unit(array: Any, factor: float) -> None:
    array = np.clip(np.nan_to_num(array), -1e100, 1e100)
    with np.errstate(all="ignore"):
        moved = array * 1.5
        one, other = (
            distance(tensor(array), tensor(moved)),
            distance(tensor(array * factor), tensor(moved * factor)),
        )
    if np.abs(array).max() > 1e-200:
        assert one == pytest.approx(0.5)
        assert other == pytest.approx(0.5)


def test_the_distance_at_its_ends() -> None:
    zero, one = tensor(np.zeros(3)), tensor(np.ones(3))
    assert distance(zero, zero) == 0
    assert distance(zero, one) == np.inf
    assert distance(one, zero) == 1
    huge = tensor(np.full(3, 1e308))
    assert distance(huge, tensor(-huge.array)) == pytest.approx(2)
    big = np.array([2**62, 1])
    assert 0 < distance(tensor(big), tensor(big + np.array([1, 0]))) < 1e-15
    assert distance(tensor(np.array([], np.float32)), tensor(np.array([], np.float32))) == 0
    text = tensor(np.array(["a", "b"], object))
    assert distance(text, tensor(np.array(["a", "c"], object))) == 0.5


def test_form_comes_before_values() -> None:
    one = tensor(np.ones(3, np.float32))
    assert "element type" in why_wrong(one, tensor(np.ones(3)), 9.0)
    assert "shape" in why_wrong(one, tensor(np.ones((3, 1), np.float32)), 9.0)
    assert "structure" in why_wrong(one, Sequence(items=(one,)), 9.0)
    assert "NaN" in why_wrong(one, tensor(np.array([1, np.nan, 1], np.float32)), None)
    assert "NaN" in why_wrong(tensor(np.array([np.inf])), tensor(np.array([-np.inf])), None)
    assert not why_wrong(tensor(np.array([np.inf, np.nan])), tensor(np.array([np.inf, np.nan])), 0.0)
    assert isinstance(one, Tensor)
