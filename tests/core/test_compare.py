"""Verdicts and messages of comparisons."""

import math
import time
import warnings
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.core.comparison.tolerance import EXACT, Tolerance, default_tolerance
from harness.core.records.verdict import Verdict
from harness.core.values.value import DTYPES, Map, Sequence, Tensor, Value, tensor
from harness.core.verdicts.compare import OutputComparison, compare_all, compare_outputs

GOLDEN = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def tolerance_for(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def judge(golden: Value, actual: Value) -> OutputComparison:
    return compare_outputs("y", golden, actual, tolerance_for)


def changed(**places: float) -> Tensor:
    array: Any = GOLDEN.copy()
    for place, number in places.items():
        array.flat[int(place[1:])] = number
    return tensor(array)


def texts(*items: str) -> Tensor:
    return tensor(np.array(items, dtype=object))


def entries(keys: Any, values: Any) -> Map:
    return Map(keys=tensor(np.array(keys)), values=tensor(np.array(values, np.float32)))


def test_equal_bits_agree_with_every_figure_filled() -> None:
    found = judge(tensor(GOLDEN), tensor(GOLDEN.copy()))
    assert (found.verdict, found.message) == (None, "")
    (row,) = found.outputs
    assert msgspec.structs.asdict(row) == {
        "name": "y",
        "dtype": "float32",
        "shape": (3, 4, 5),
        "max_abs": 0.0,
        "max_rel": 0.0,
        "rmse": 0.0,
        "cosine": 1.0,
        "sqnr_db": None,
        "delivered_bits": None,
        "mismatched": 0,
        "elements": 60,
        "rtol": 1e-4,
        "atol": 1e-5,
        "headroom": 0.0,
        "frontier": ((0.0, 0.0),),
        "noise": None,
        "precision_error": None,
        "details": None,
    }


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.float16, np.complex64, np.int8, np.uint64, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    )
)
def test_equal_bits_have_the_row_of_a_measurement(array: Any) -> None:
    value = tensor(array)
    quick = judge(value, tensor(array.copy()))
    # A payload in the NaN, or the sign of a zero, makes the bits differ and the values not.
    other = array.copy()
    if array.dtype.kind == "f":
        other[np.isnan(array)] = -np.float64("nan")
        other[array == 0] *= -1
    measured = judge(value, tensor(other))
    (row,) = measured.outputs
    assert (row.details.signed_zeros if row.details else 0) == (array.dtype.kind == "f") * (array == 0).sum()
    row = msgspec.structs.replace(row, details=None)
    assert msgspec.structs.replace(measured, outputs=(row,)) == quick
    assert quick.verdict is None


def test_a_small_error_agrees() -> None:
    found = judge(tensor(GOLDEN), changed(_7=7.0001))
    assert found.verdict is None
    assert found.outputs[0].headroom == pytest.approx(1e-4 / 7.1e-4, rel=1e-2)


def test_values_that_differ_are_counted_and_placed() -> None:
    found = judge(tensor(GOLDEN), changed(_4=4.1, _59=60.0))
    assert found.verdict is Verdict.MISMATCH
    assert found.message == (
        "output 'y': 2 of 60 elements (3.3%) differ; greatest absolute difference 1 at (2, 3, 4) "
        "(allowed 0.00591); greatest relative difference 0.025 at (0, 0, 4) "
        "(tolerance rtol 0.0001, atol 1e-05)"
    )
    assert found.outputs[0].mismatched == 2


def test_a_scalar_has_no_place() -> None:
    found = judge(tensor(np.array(0, np.int64)), tensor(np.array(3, np.int64)))
    assert found.message == (
        "output 'y': 1 of 1 elements (100.0%) differ; "
        "they have to be equal, the greatest difference is 3: got 3, golden is 0"
    )


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int8])
def test_permuted_values_are_recognised(dtype: Any) -> None:
    array: Any = GOLDEN.astype(dtype)
    found = judge(tensor(array), tensor(array.reshape(-1)[7 * np.arange(60) % 60].reshape(array.shape)))
    assert found.message.endswith("; same values in another order")


def test_zeros_are_recognised() -> None:
    assert judge(tensor(GOLDEN), tensor(GOLDEN * 0)).message.endswith("; the result is all zeros")


def test_nan_outranks_values() -> None:
    found = judge(changed(_1=math.inf), changed(_1=1.0, _6=math.nan, _7=9.0))
    assert found.verdict is Verdict.NAN_MISMATCH
    assert found.message == (
        "output 'y': 2 of 60 elements (3.3%) differ in NaN or infinity, first at (0, 0, 1): got 1, "
        "golden is inf; NaN: got 1, golden 0; infinities: got 0, golden 1; 1 finite elements differ too"
    )
    assert found.outputs[0].mismatched == 3
    assert found.outputs[0].max_abs == 2.0


@pytest.mark.parametrize("dtype", ["bfloat16", "float8e4m3fn", "float8e8m0", "float16"])
def test_nan_of_narrow_types_is_seen(dtype: str) -> None:
    golden = np.ones(3).astype(DTYPES[dtype])
    actual = golden.copy()
    actual[1] = np.nan
    assert judge(tensor(golden), tensor(actual)).verdict is Verdict.NAN_MISMATCH
    assert judge(tensor(actual), tensor(actual)).verdict is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8e4m3fnuz", "float8e5m2", "float8e8m0"])
def test_every_bit_pattern_can_be_compared_and_described(dtype: str) -> None:
    bits = 8 * DTYPES[dtype].itemsize
    patterns: Any = np.arange(1 << bits).astype(f"u{bits // 8}")
    value = Tensor(dtype=dtype, array=patterns.view(DTYPES[dtype]))
    assert judge(value, value).verdict is None
    turned = Tensor(dtype=dtype, array=patterns[::-1].view(DTYPES[dtype]))
    assert judge(value, turned).verdict is Verdict.NAN_MISMATCH


@pytest.mark.parametrize(("bits", "quiet"), [("u4", 0x7FC00000), ("u8", 0x7FF8000000000000)])
def test_a_signalling_nan_is_a_nan(bits: str, quiet: int) -> None:
    signalling = quiet + 1 - (quiet & -quiet)  # the quiet bit cleared, a payload bit set
    one = 0x3F800000 if bits == "u4" else 0x3FF0000000000000
    value, same, other = (
        tensor(np.array(patterns, bits).view(bits.replace("u", "f")))
        for patterns in ([signalling, one], [quiet, one], [quiet, 0])
    )
    assert judge(value, value) == judge(value, same)
    assert judge(value, same).verdict is None
    assert judge(value, other).verdict is Verdict.MISMATCH
    assert judge(tensor(value.array[::-1]), value).verdict is Verdict.NAN_MISMATCH


def test_shape_outranks_type_and_leaves_nothing_to_measure() -> None:
    found = judge(tensor(GOLDEN), tensor(GOLDEN.reshape(-1).astype(np.float64)))
    assert found.verdict is Verdict.SHAPE_MISMATCH
    assert found.message == "output 'y': got float64[60], golden is float32[3, 4, 5]"
    (row,) = found.outputs
    assert (row.shape, row.mismatched, row.elements, row.max_abs, row.frontier) == ((60,), 60, 0, None, ())


def test_empty_tensors_agree_and_their_shapes_count() -> None:
    empty = tensor(np.zeros((0, 3), np.float32))
    agreed = judge(empty, empty)
    assert (agreed.verdict, agreed.outputs[0].elements, agreed.outputs[0].max_abs) == (None, 0, None)
    other = judge(empty, tensor(np.zeros((3, 0), np.float32)))
    assert (other.verdict, other.outputs[0].mismatched) == (Verdict.SHAPE_MISMATCH, 1)


@pytest.mark.parametrize(
    ("actual", "ending"),
    [
        (GOLDEN.astype(np.float64), "the values agree"),
        (GOLDEN + 1.0, "60 of 60 elements (100.0%) differ as well"),
    ],
)
def test_another_type_is_a_mismatch_with_the_distance_shown(actual: Any, ending: str) -> None:
    found = judge(tensor(GOLDEN), tensor(actual.astype(np.float64)))
    assert found.verdict is Verdict.DTYPE_MISMATCH
    assert found.message == f"output 'y': got float64, golden is float32; {ending}"
    (row,) = found.outputs
    assert (row.dtype, row.mismatched, row.headroom, row.frontier) == ("float64", 60, None, ())
    assert row.max_abs == (0.0 if ending == "the values agree" else 1.0)


def test_text_for_numbers_is_another_type() -> None:
    found = judge(texts("1", "2"), tensor(np.array([1, 2])))
    assert (found.verdict, found.message) == (
        Verdict.DTYPE_MISMATCH,
        "output 'y': got int64, golden is string",
    )


def test_strings_are_compared_exactly_and_cut_short() -> None:
    found = judge(texts("a", "b\n", "c"), texts("a", "x" * 1000, "d"))
    assert found.verdict is Verdict.MISMATCH
    assert found.message.startswith("output 'y': 2 of 3 elements (66.7%) differ; first at (1,): got 'xxx")
    assert found.message.endswith("…, golden is 'b\\n'")
    assert len(found.message) < 200
    assert found.outputs[0].frontier == ()
    agreed = judge(texts("a"), texts("a"))
    assert (agreed.verdict, agreed.outputs[0].frontier) == (None, ((0.0, 0.0),))
    assert judge(texts("a", "b"), texts("b", "a")).message.endswith("same values in another order")


def test_sequences_are_compared_item_by_item() -> None:
    one, two = tensor(GOLDEN), changed(_3=9.0)
    golden = Sequence(items=(one, None, Sequence(items=())))
    assert judge(golden, golden).verdict is None
    assert [row.name for row in judge(golden, golden).outputs] == ["y[0]", "y[1]", "y[2]"]
    found = judge(Sequence(items=(one, one)), Sequence(items=(one, two)))
    assert found.verdict is Verdict.MISMATCH
    assert found.message.startswith("output 'y[1]': 1 of 60")
    assert found.message.endswith(" (1 of 2 parts are wrong)")


@pytest.mark.parametrize(
    ("golden", "actual", "message"),
    [
        (Sequence(items=(None,)), Sequence(items=()), "got a sequence of 0, golden is a sequence of 1"),
        (texts("a"), Sequence(items=()), "got a sequence of 0, golden is string[1]"),
        (None, texts("a"), "got string[1], golden is an empty optional"),
        (texts("a"), None, "got an empty optional, golden is string[1]"),
        (entries(["a"], [1]), entries(["a", "b"], [1, 2]), "got a map of 2, golden is a map of 1"),
        (entries(["a"], [1]), entries(["b"], [1]), "map keys differ: missing 'a'; unexpected 'b'"),
    ],
)
def test_another_structure_is_a_shape_mismatch(golden: Value, actual: Value, message: str) -> None:
    found = judge(golden, actual)
    assert (found.verdict, found.message) == (Verdict.SHAPE_MISMATCH, f"output 'y': {message}")
    assert all(row.mismatched for row in found.outputs)


def test_map_entries_are_matched_by_key() -> None:
    golden = entries(["a", "b", "c"], [1, 2, 3])
    assert judge(golden, entries(["c", "a", "b"], [3, 1, 2])).verdict is None
    found = judge(golden, entries(["c", "a", "b"], [1, 2, 3]))
    assert found.verdict is Verdict.MISMATCH
    assert [(row.name, row.mismatched) for row in found.outputs] == [("y.keys", 0), ("y.values", 3)]
    assert judge(entries([1], [1]), entries(["1"], [1])).verdict is Verdict.DTYPE_MISMATCH


def test_outputs_are_compared_by_name_and_the_worst_is_named() -> None:
    good, wrong, retyped = tensor(GOLDEN), changed(_0=5.0), tensor(GOLDEN.astype(np.float64))
    golden = [("a", good), ("b", good), ("c", good)]
    assert compare_all(golden, [("c", good), ("b", good), ("a", good)], tolerance_for).verdict is None
    found = compare_all(golden, [("a", wrong), ("b", retyped), ("c", good)], tolerance_for)
    assert found.verdict is Verdict.DTYPE_MISMATCH
    assert found.message == (
        "output 'b': got float64, golden is float32; the values agree (2 of 3 outputs are wrong)"
    )
    assert [row.name for row in found.outputs if row.mismatched] == ["a", "b"]


def test_missing_and_unexpected_outputs_are_named() -> None:
    good = tensor(GOLDEN)
    found = compare_all([("a", good), ("b", good)], [("a", good), ("c", good)], tolerance_for)
    assert found.verdict is Verdict.SHAPE_MISMATCH
    assert found.message == "outputs missing: 'b'; outputs not asked for: 'c' (2 of 3 outputs are wrong)"
    assert [(row.name, row.mismatched) for row in found.outputs] == [("a", 0), ("b", 60), ("c", 60)]


def test_no_outputs_at_all_agree() -> None:
    assert compare_all([], [], tolerance_for) == OutputComparison(verdict=None, message="", outputs=())


@given(st.text(max_size=200))
def test_a_hostile_name_stays_on_one_short_line(name: str) -> None:
    message = compare_outputs(name, tensor(GOLDEN), None, tolerance_for).message
    assert len(message.splitlines()) == 1
    assert len(message) < 150


def test_the_tolerance_is_asked_by_the_type_of_the_golden() -> None:
    asked: list[str] = []

    def spy(dtype: str) -> Tolerance:
        asked.append(dtype)
        return EXACT

    compare_outputs("y", tensor(GOLDEN), tensor(GOLDEN.astype(np.float64)), spy)
    assert asked == ["float32"]


@pytest.mark.parametrize(("actual", "limit_us"), [(GOLDEN.copy(), 60), (GOLDEN * (1 + 1e-6), 500)])
def test_a_small_comparison_takes_microseconds(actual: Any, limit_us: float) -> None:
    golden, result = [("y", tensor(GOLDEN))], [("y", tensor(actual.astype(np.float32)))]
    # The best of several, of this thread's own time, with room for a slow machine: some 3 and 30 us
    # are usual.
    best = math.inf
    for _ in range(20):
        start = time.thread_time()
        for _ in range(20):
            compare_all(golden, result, tolerance_for)
        best = min(best, (time.thread_time() - start) / 20)
    assert best * 1e6 < limit_us
