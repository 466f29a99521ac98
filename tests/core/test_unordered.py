"""Outputs whose order is open: another order is right, another set is not."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison.output_kind import OutputKind
from harness.core.comparison.ties import Chosen
from harness.core.comparison.tolerance import default_tolerance
from harness.core.comparison.unordered import Unordered, in_order_of
from harness.core.records.verdict import Verdict
from harness.core.values.value import DTYPES, Tensor, Value, tensor
from harness.core.verdicts.compare import OutputComparison, compare_all

DATA = np.array([[0.1, 0.9, 0.3, 0.7, 0.7 + 1e-6], [5, 4, 3, 2, 1]], np.float32)
CHOSEN = Chosen(op="TopK", data=tensor(DATA), axis=1, unordered=True)
BOTH: Mapping[str, OutputKind] = {"i": CHOSEN, "v": Unordered(axis=1, positions="i")}


def top(*rows: list[int], error: float = 0.0) -> dict[str, Value]:
    places = np.array(rows, np.int64)
    values = np.take_along_axis(DATA, places, 1) * np.float32(1 + error)
    return {"v": tensor(values), "i": tensor(places)}


def judged(
    golden: Mapping[str, Value], actual: Mapping[str, Value], kinds: Mapping[str, OutputKind] = BOTH
) -> OutputComparison:
    return compare_all(
        list(golden.items()), list(actual.items()), lambda dtype: default_tolerance(dtype, "float32"), kinds
    )


GOLDEN = top([1, 4, 2], [0, 1, 2])


@pytest.mark.parametrize("names", ["vi", "v", "i"])
@pytest.mark.parametrize("error", [0.0, 1e-6])
def test_another_order_is_right(names: str, error: float) -> None:
    golden = {name: GOLDEN[name] for name in names}
    actual = {name: top([2, 1, 4], [1, 0, 2], error=error)[name] for name in names}
    kinds: Mapping[str, OutputKind] = {
        "i": CHOSEN,
        "v": Unordered(axis=1, positions="i" if "i" in names else ""),
    }
    found = judged(golden, actual, kinds)
    assert found.verdict is None, found.message
    assert all(row.max_abs is not None and row.max_abs < 1e-5 for row in found.outputs)
    without = judged(golden, actual, {})
    assert without.verdict is Verdict.MISMATCH


def test_another_position_is_right_where_its_value_ties() -> None:
    found = judged(GOLDEN, top([2, 3, 1], [2, 1, 0]))
    assert found.verdict is None
    ties = [row.details.ties for row in found.outputs if row.details]
    assert ties == [1]


@pytest.mark.parametrize(
    "actual",
    [
        top([1, 4, 0], [0, 1, 2]),  # one that is not among the largest
        top([1, 1, 4], [0, 1, 2]),  # one twice
        {"v": top([1, 4, 2], [0, 1, 2])["v"], "i": top([4, 1, 2], [0, 1, 2])["i"]},  # of another value
        {"v": top([4, 1, 2], [0, 1, 2])["v"], "i": top([1, 4, 2], [0, 1, 2])["i"]},
    ],
)
def test_another_set_is_wrong(actual: dict[str, Value]) -> None:
    assert judged(GOLDEN, actual).verdict is Verdict.MISMATCH


def test_other_shapes_are_left_to_the_comparison() -> None:
    actual = {name: tensor(one.array[:, :2]) for name, one in GOLDEN.items() if isinstance(one, Tensor)}
    assert judged(GOLDEN, actual).verdict is Verdict.SHAPE_MISMATCH
    assert judged(GOLDEN, {"v": GOLDEN["v"]}).verdict is Verdict.SHAPE_MISMATCH
    scalar: dict[str, Value] = {"v": tensor(np.array(1.0)), "i": tensor(np.array(1))}
    assert judged(scalar, scalar).verdict is None


def test_boxes_are_a_set() -> None:
    scores = np.array([[[0.9, 0.8, 0.7], [0.6, 0.5, 0.4]]], np.float32)
    kinds: Mapping[str, OutputKind] = {"b": Chosen(op="NonMaxSuppression", data=tensor(scores), axis=0)}
    golden: dict[str, Value] = {"b": tensor(np.array([[0, 0, 0], [0, 0, 2], [0, 1, 1]]))}
    for rows, verdict in (
        ([[0, 1, 1], [0, 0, 0], [0, 0, 2]], None),
        ([[0, 1, 1], [0, 0, 0], [0, 0, 1]], Verdict.MISMATCH),
        ([[0, 0, 0], [0, 0, 0], [0, 1, 1]], Verdict.MISMATCH),
    ):
        assert judged(golden, {"b": tensor(np.array(rows))}, kinds).verdict is verdict


@given(seed=st.integers(0, 1 << 20), axis=st.integers(-3, 2))
def test_whatever_was_shuffled_comes_back(seed: int, axis: int) -> None:
    random = np.random.default_rng(seed)
    data = random.normal(size=(3, 4, 5))
    places = np.argsort(data, axis)
    order = random.permuted(
        np.broadcast_to(np.arange(data.shape[axis]), np.moveaxis(data, axis, -1).shape), axis=-1
    )

    def shuffled(array: Any) -> Tensor:
        return tensor(np.moveaxis(np.take_along_axis(np.moveaxis(array, axis, -1), order, -1), -1, axis))

    golden: dict[str, Value] = {"v": tensor(np.take_along_axis(data, places, axis)), "i": tensor(places)}
    actual: dict[str, Value] = {
        name: shuffled(value.array) for name, value in golden.items() if isinstance(value, Tensor)
    }
    output_kind = Unordered(axis=axis, positions="i")
    for names in ("vi", "v"):
        here = {"v": output_kind if names == "vi" else Unordered(axis=axis)}
        found = in_order_of(golden, {name: actual[name] for name in names}, here)
        for name in names:
            one, other = found[name], golden[name]
            assert isinstance(one, Tensor)
            assert isinstance(other, Tensor)
            assert np.array_equal(one.array, other.array)


BOXES: Mapping[str, OutputKind] = {
    "b": Chosen(op="NonMaxSuppression", data=tensor(np.ones((1, 1, 3), np.float32)))
}


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_where_nothing_was_chosen_nothing_is_ordered(shape: tuple[int, ...]) -> None:
    none: dict[str, Value] = {"b": tensor(np.zeros(shape, np.int64))}
    assert judged(none, none, BOXES).verdict is None
    nothing: dict[str, Value] = {
        "v": tensor(np.zeros((*shape, 2)[::-1])),
        "i": tensor(np.zeros((*shape, 2)[::-1], int)),
    }
    for axis in (0, 1, 2):
        kinds: dict[str, OutputKind] = {"i": CHOSEN, "v": Unordered(axis=axis, positions="i")}
        assert judged(nothing, nothing, kinds).verdict is None


@pytest.mark.parametrize("dtype", ["bfloat16", "float8e8m0", "uint64", "complex64", "string"])
def test_boxes_of_another_type_are_a_dtype_mismatch(dtype: str) -> None:
    boxes = np.array([[0, 0, 2], [0, 0, 1]])
    golden: dict[str, Value] = {"b": tensor(boxes)}
    other = tensor(boxes.astype(str)) if dtype == "string" else tensor(boxes.astype(DTYPES[dtype]))
    for right, found in ((golden, {"b": other}), ({"b": other}, golden)):
        assert judged(right, found, BOXES).verdict is Verdict.DTYPE_MISMATCH


@pytest.mark.parametrize("rank", [33, 64])
def test_values_of_many_dimensions_are_brought_into_order(rank: int) -> None:
    shape = (2, *(1,) * (rank - 2), 3)
    golden: dict[str, Value] = {"v": tensor(np.arange(6.0).reshape(shape))}
    actual: dict[str, Value] = {"v": tensor(np.flip(np.arange(6.0).reshape(shape), -1))}
    kinds = {"v": Unordered(axis=rank - 1)}
    assert judged(golden, actual, kinds).verdict is None
    assert judged(golden, actual, {}).verdict is Verdict.MISMATCH
