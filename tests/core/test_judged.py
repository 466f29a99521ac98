"""One output under a policy, from the metrics that a record publishes."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.core.comparison.metrics import ATOL_GRID
from harness.core.comparison.noise_limits import NoiseLimits, rms_limit
from harness.core.comparison.output_kind import Copied
from harness.core.comparison.output_metrics import Noise, OutputDetails, OutputMetrics, PrecisionError
from harness.core.comparison.policy import JudgeBy, Policy
from harness.core.comparison.tolerance import EXACT, Tolerance
from harness.core.records.verdict import Verdict
from harness.core.values.value import Value, tensor
from harness.core.verdicts.compare import compare_all
from harness.core.verdicts.judge_output import judge_row, judge_rows, worst
from harness.core.verdicts.judgement import OutputJudgement, is_within_two_ulp
from harness.core.verdicts.precise import judge_precision

LIMITS = NoiseLimits(rms=4.0, max=32.0)
BY_NOISE = Policy(judge_by="noise", limits=LIMITS)
LOOSE = Policy(fixed=Tolerance(rtol=0.0, atol=0.1), judge_by="table", steps=0.0)
TOLERANCES = st.builds(
    Tolerance, rtol=st.sampled_from([0.0, 1e-7, 1e-5, 1e-3, 0.1]), atol=st.sampled_from(ATOL_GRID)
)


def row_of(golden: object, actual: object, tolerance: Tolerance = EXACT) -> OutputMetrics:
    sides = [(("y", tensor(np.asarray(side))),) for side in (golden, actual)]
    (row,) = compare_all(sides[0], sides[1], lambda _: tolerance).outputs
    return row


def off_by(error: float) -> OutputMetrics:
    golden = np.ones(4, np.float32)
    return row_of(golden, golden + np.float32(error), Tolerance(rtol=0.0, atol=1e-6))


def noisy(rms: float, largest: float, elements: int = 10**8) -> OutputMetrics:
    """Of an output with so many elements that the limit of the rms is nearly the one for many."""
    noise = Noise(precision="float32", rms=rms, max=largest, like="float32", worst=" at (0,)")
    return msgspec.structs.replace(off_by(0.01), noise=noise, elements=elements)


@pytest.mark.parametrize("judge_by", ["noise", "table"])
def test_what_is_copied_has_one_right_answer(judge_by: JudgeBy) -> None:
    """One unit in the last place is an error there, unless the matrix names a tolerance."""
    golden = np.full(4, 26.25, np.float32)
    found = np.nextafter(golden, np.float32(27))
    copied = {"y": Copied()}
    answer, own = ((("y", tensor(side)),) for side in (golden, found))
    for outputs, fault in ((own, Verdict.MISMATCH), (answer, None)):
        (row,) = compare_all(answer, outputs, lambda _: Tolerance(rtol=1e-5, atol=0.0), copied).outputs
        judged = judge_row(row, Policy(judge_by=judge_by))
        assert judged.fault is (fault if judge_by == "noise" else None)
        assert ("they have to be equal" in judged.why) is (judged.fault is not None)


@pytest.mark.parametrize("steps", [1, 3, 100])
def test_a_copy_without_a_known_noise_is_equal(steps: int) -> None:
    golden = np.full(4, 26.25, np.float32)
    found = golden + steps * np.spacing(golden)
    answer, own = ((("y", tensor(side)),) for side in (golden, found))
    (row,) = compare_all(answer, own, lambda _: Tolerance(rtol=1e-3, atol=0.0), {"y": Copied()}).outputs
    assert judge_row(row, Policy()).fault is Verdict.MISMATCH
    assert judge_row(row, Policy(delivers=("float16",))).fault is (None if steps == 100 else Verdict.MISMATCH)


@pytest.mark.parametrize(("steps", "within"), [(0, True), (1, True), (2, True), (3, False)])
def test_two_units_in_the_last_place_are_no_more_than_two(steps: int, *, within: bool) -> None:
    golden = np.ones(4, np.float32)
    assert is_within_two_ulp(row_of(golden, golden + steps * np.finfo(np.float32).eps)) is within
    assert not is_within_two_ulp(row_of(golden.astype(np.int32), golden.astype(np.int32)))


@pytest.mark.parametrize(
    ("judge_by", "units", "fault"),
    [
        ("both", 2, None),
        ("noise", 2, None),
        ("table", 2, Verdict.MISMATCH),
        ("both", 4, Verdict.MISMATCH),
    ],
)
def test_two_units_in_the_last_place_pass_where_noise_counts(
    judge_by: JudgeBy, units: int, fault: Verdict | None
) -> None:
    """A sum of squares in float16. Any noise allows them, so it is not asked for; the table does not."""
    golden = np.full(4, 26.25, np.float16)
    row = row_of(golden, golden + np.float16(units / 64))
    found = judge_row(row, Policy(judge_by=judge_by))
    assert found.fault is fault
    assert bool(found.row.mismatched) is (fault is not None)
    assert fault is not None or found.row.headroom == 0.03125 / 26.25 / (4 * 2**-11)


@pytest.mark.parametrize(
    ("rms", "largest", "fault", "headroom"),
    [
        (1.0, 8.0, None, 0.25),
        (4.0, 32.0, None, 1.0),
        (5.0, 8.0, Verdict.MISMATCH, 1.25),
        (1.0, 64.0, Verdict.MISMATCH, 2.0),
    ],
)
def test_limits_of_noise_judge_what_a_tolerance_has(
    rms: float, largest: float, fault: Verdict | None, headroom: float
) -> None:
    found = judge_row(noisy(rms, largest), BY_NOISE)
    assert found.fault is fault
    noise = found.row.noise
    assert noise is not None
    assert (noise.rms_limit, noise.max_limit) == (rms_limit(LIMITS, 10**8), 32.0)
    assert found.row.headroom == pytest.approx(headroom, rel=1e-3)
    assert bool(found.row.mismatched) is (fault is not None)
    # And back: the frontier is what it was.
    tight = Policy(fixed=Tolerance(rtol=0.0, atol=1e-6), judge_by="table")
    assert judge_row(found.row, tight).fault is Verdict.MISMATCH
    assert judge_row(found.row, LOOSE).fault is None


def test_an_error_beyond_noise_names_the_worst_element() -> None:
    assert judge_row(noisy(5.25, 80.0), BY_NOISE).why == (
        "output 'y': the error is 5.25 x the model's rounding noise at float32, at most 80 x at (0,) "
        "(limits 4 and 32); it is 1.01 times the golden"
    )


def test_few_elements_have_a_wider_limit() -> None:
    assert judge_row(noisy(5.0, 8.0, elements=4), BY_NOISE).fault is None
    assert judge_row(noisy(5.0, 8.0, elements=25), BY_NOISE).fault is Verdict.MISMATCH


def test_noise_of_another_precision_does_not_judge() -> None:
    other = msgspec.structs.replace(BY_NOISE, noise_precision="float16")
    assert judge_row(noisy(1.0, 8.0), other).fault is Verdict.MISMATCH  # by the table
    assert judge_row(noisy(1.0, 8.0), BY_NOISE).fault is None


@pytest.mark.parametrize("rms", [8.0, 15.0, 40.0])
def test_what_the_table_passes_above_the_noise_fails(rms: float) -> None:
    noise = Noise(precision="float32", rms=rms, max=rms, like="none")
    row = msgspec.structs.replace(off_by(5e-5), noise=noise)
    assert judge_row(row, Policy(limits=LIMITS)).fault is Verdict.MISMATCH
    for other in (Policy(judge_by="table"), Policy(judge_by="both")):
        assert judge_row(row, other).fault is None


def coarse(rms: float, bits: float, delivers: str = "bfloat16", size: float = 0.0) -> OutputMetrics:
    """Return the row of a result that float32 does not explain, and a delivered precision may."""
    precision = {"tf32": "float16"}.get(delivers, delivers)
    noise = Noise(
        precision="float32",
        rms=2e4,
        max=9e4,
        wider=(Noise(precision=precision, rms=rms, max=3 * rms, size=size, delivers=delivers),),
    )
    return msgspec.structs.replace(off_by(1e-3), noise=noise, delivered_bits=bits, cosine=0.99)


def test_an_ep_may_deliver_its_own_default_precision_unless_the_matrix_asks_for_more() -> None:
    found = judge_row(coarse(1.0, 7.7, "tf32"), Policy(delivers=("posit8", "tf32")))
    assert (found.fault, found.delivered) == (None, "tf32")
    assert found.approximate == "output 'y': computed in tf32 by the EP's own default, 7.7 bits are left"
    assert judge_row(coarse(1.0, 7.7, "tf32"), Policy()).fault is Verdict.MISMATCH
    assert judge_row(coarse(9.0, 7.7), Policy(delivers=("bfloat16",))).fault is Verdict.MISMATCH


@pytest.mark.parametrize(
    ("delivers", "bits", "lost"),
    [
        ("bfloat16", 4.1, False),
        ("bfloat16", 3.9, True),
        ("bfloat16", 3.96, True),
        ("tf32", 5.4, True),
        ("float16", 5.6, False),
    ],
)
def test_a_delivered_precision_that_leaves_less_than_half_of_its_bits_is_a_loss(
    delivers: str,
    bits: float,
    lost: bool,  # noqa: FBT001
) -> None:
    policy = Policy(delivers=(delivers,), own_precision="float32", remedy="HINT f32 (precision ep:f32)")
    found = judge_row(coarse(1.0, bits, delivers), policy)
    assert found.fault is (Verdict.PRECISION_LOSS if lost else None)
    if lost:
        least = "4" if delivers == "bfloat16" else "5.5"
        left = f"{int(10 * bits) / 10} bits are left, fewer than {least}"
        expected = f"output 'y': the EP computes in {delivers}: {left}"
        assert (
            found.why == f"{expected}, cosine 0.99; HINT f32 (precision ep:f32) gives about {bits + 14.3:.0f}"
        )
    for asked in ({"y": 2.0}, {"": 2.0}, {"": 9.0, "y": 2.0}):
        assert (
            judge_row(coarse(1.0, bits, delivers), msgspec.structs.replace(policy, bits=asked)).fault is None
        )


def test_a_precision_that_the_matrix_asks_for_must_leave_as_much() -> None:
    noise = Noise(precision="bfloat16", rms=1.0, max=3.0)
    row = msgspec.structs.replace(off_by(0.5), noise=noise, delivered_bits=1.5)
    asked = Policy(precision="bfloat16", own_precision="float32")
    assert judge_row(row, asked).fault is Verdict.PRECISION_LOSS
    assert judge_row(msgspec.structs.replace(row, delivered_bits=4.5), asked).fault is None
    own = msgspec.structs.replace(asked, own_precision="")
    assert judge_row(row, own).fault is None  # the model itself is of that precision


def test_what_rounding_takes_is_nobodys_fault_or_that_of_the_coarse_precision() -> None:
    nothing = Noise(precision="float32", rms=0.0, max=0.0, size=1.2)
    row = msgspec.structs.replace(off_by(1.0), noise=nothing)
    found = judge_row(row, Policy())
    assert found.fault is Verdict.ILL_CONDITIONED
    assert found.why == "output 'y' cannot be judged: rounding at float32 moves it by 1.2 of its size"
    # At bfloat16 alone nothing is left: the EP chose it.
    coarse_only = coarse(0.0, 0.1, size=1.2)
    found = judge_row(coarse_only, Policy(delivers=("bfloat16",), own_precision="float32"))
    assert found.fault is Verdict.PRECISION_LOSS
    assert "computes in bfloat16, whose rounding moves it by 1.2 of its size" in found.why
    # An EP that keeps more than that precision must: CUDA computes products alone in TF32.
    assert judge_row(coarse(0.0, 13.7, size=0.7), Policy(delivers=("bfloat16",))).fault is None
    # Or the matrix did, and float32 leaves as little.
    asked = Policy(precision="bfloat16", own_precision="float32")
    own = msgspec.structs.replace(nothing, precision="bfloat16", wider=(nothing,))
    assert judge_row(msgspec.structs.replace(row, noise=own), asked).fault is Verdict.ILL_CONDITIONED
    garbage = Noise(precision="float32", rms=1e6, max=1e7, size=1.2)
    assert judge_row(msgspec.structs.replace(row, noise=garbage), Policy()).fault is Verdict.MISMATCH


def test_what_a_document_allows_is_right_and_marked() -> None:
    allowed = Noise(precision="float32", rms=0.9, max=3.0, document="WGSL")
    noise = Noise(precision="float32", rms=80.0, max=240.0, wider=(allowed,))
    row = msgspec.structs.replace(off_by(1e-3), noise=noise)
    found = judge_row(row, Policy())
    assert (found.fault, found.delivered) == (None, "")
    assert found.approximate == (
        "output 'y': off by 0.001 at most, 240 x the model's rounding noise, which WGSL allows"
    )
    beyond = msgspec.structs.replace(noise, wider=(msgspec.structs.replace(allowed, rms=9.0),))
    assert judge_row(msgspec.structs.replace(row, noise=beyond), Policy()).fault is Verdict.MISMATCH


@pytest.mark.parametrize("actual", [np.zeros(4, np.float32), np.full(4, -1e-4, np.float32)])
def test_a_document_excuses_no_answer_that_is_lost(actual: Any) -> None:
    """An error of 2e-4 is allowed of a sine, and all of this output is 1e-4."""
    row = row_of(np.full(4, 1e-4, np.float32), actual, Tolerance(rtol=0.0, atol=1e-6))
    allowed = Noise(precision="float32", rms=0.9, max=3.0, document="WGSL")
    noise = Noise(precision="float32", rms=80.0, max=240.0, wider=(allowed,))
    found = judge_row(msgspec.structs.replace(row, noise=noise), Policy())
    assert found.fault is Verdict.PRECISION_LOSS
    assert "WGSL allows its error, which is" in found.why


def test_a_document_whose_noise_is_not_measured_allows_nothing() -> None:
    """It changes the shape in most runs, so no error is known in its units."""
    allowed = Noise(precision="float32", rms=0.0, max=0.0, size=1.0, document="WGSL")
    noise = Noise(precision="float32", rms=80.0, max=240.0, wider=(allowed,))
    row = msgspec.structs.replace(off_by(1e-3), noise=noise)
    assert judge_row(row, Policy()).fault is Verdict.MISMATCH


@pytest.mark.parametrize(("size", "fault"), [(1.0, Verdict.ILL_CONDITIONED), (50.0, Verdict.MISMATCH)])
def test_no_tolerance_passes_what_is_lost(size: float, fault: Verdict) -> None:
    row = row_of(np.full(4, 1e-6, np.float32), np.zeros(4, np.float32))
    assert judge_row(row, LOOSE).fault is Verdict.MISMATCH
    row = msgspec.structs.replace(row, noise=Noise(precision="float32", rms=size, max=size))
    assert judge_row(row, LOOSE).fault is fault
    assert judge_row(judge_row(row, LOOSE).row, LOOSE).fault is fault


def test_steps_are_granted_to_quantized_values_alone() -> None:
    def quantized(steps: float) -> OutputMetrics:
        row = row_of(np.array([10, 20], np.int8), np.array([10 + steps, 20], np.int8))
        return msgspec.structs.replace(row, details=OutputDetails(steps=steps))

    one = Policy(steps=1.0, judge_by="table")
    assert judge_row(quantized(1), one).fault is None
    assert judge_row(quantized(2), one).fault is Verdict.MISMATCH
    assert judge_row(judge_row(quantized(1), one).row, LOOSE).fault is Verdict.MISMATCH
    plain = msgspec.structs.replace(quantized(1), details=None)
    assert judge_row(plain, one).fault is Verdict.MISMATCH
    loud = msgspec.structs.replace(
        off_by(0.5), details=OutputDetails(steps=1.0), noise=Noise(precision="float32", rms=50.0, max=90.0)
    )
    for by in ("noise", "both", "table"):
        assert judge_row(loud, Policy(steps=1.0, judge_by=by)).fault is None


def test_ties_are_judged_by_the_tolerance_of_the_values() -> None:
    row = msgspec.structs.replace(
        row_of(np.array([1, 2]), np.array([1, 0])),
        details=OutputDetails(ties=1, ties_of="float32", tie_frontier=((0.0, 1e-5), (1e-6, 0.0))),
    )
    assert judge_row(row, Policy()).fault is None
    assert judge_row(row, Policy(fixed=Tolerance(rtol=0.0, atol=1e-7))).fault is Verdict.MISMATCH
    undefined = msgspec.structs.replace(row, details=OutputDetails(ties=1))
    assert judge_row(undefined, Policy()).fault is Verdict.MISMATCH


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        # About as far off as the CPU EP: whatever the tolerance says.
        (PrecisionError(error=0.3, cpu_error=0.2, in_limits=True), None),
        # As near to the CPU EP's own answer as the tolerance allows, or not.
        (PrecisionError(error=0.3, cpu_error=0.2, own_frontier=((0.0, 1e-9), (0.1, 0.0))), None),
        (PrecisionError(error=0.3, cpu_error=1e-3, own_frontier=((0.0, 0.9),)), Verdict.MISMATCH),
        # Explained by what the precision costs, or by one rounding: the tolerance decides.
        (PrecisionError(error=1e-2, cpu_error=1e-3, ratio=10.0), None),
        (PrecisionError(error=1e-3), None),
        # A tolerance that is wide beside the values lets nothing pass.
        (PrecisionError(error=0.3, cpu_error=1e-3, ratio=300.0), Verdict.MISMATCH),
        # What the precision leaves nothing of explains nothing.
        (PrecisionError(error=0.4, cpu_error=0.9, ratio=0.5), Verdict.MISMATCH),
        (PrecisionError(error=0.4, cpu_error=0.9, ratio=0.5, lost=True), Verdict.NO_GOLDEN),
    ],
)
def test_a_converted_model_is_judged_by_what_its_precision_costs(
    error: PrecisionError, fault: Verdict | None
) -> None:
    row = msgspec.structs.replace(off_by(0.01), precision_error=msgspec.structs.replace(error, measured=True))
    policy = msgspec.structs.replace(LOOSE, precision="float16", converted=True)
    assert judge_row(row, policy).fault is fault
    tight = msgspec.structs.replace(policy, fixed=EXACT)
    if fault is None:
        assert (judge_row(row, tight).fault is None) is error.in_limits


def test_the_worst_fault_decides_and_what_cannot_tell_comes_last() -> None:
    rows = [off_by(0.5), row_of(np.ones(2, np.float32), np.ones(3, np.float32)), off_by(0.0)]
    judged = judge_rows(rows, Policy())
    fault = worst(judged)
    assert fault is not None
    assert fault[0] is Verdict.SHAPE_MISMATCH
    assert fault[1].endswith("(2 of 3 outputs are wrong)")
    undecided = OutputJudgement(row=rows[2], fault=Verdict.NO_GOLDEN, why="nothing is left")
    assert worst([undecided, judged[0]]) == (Verdict.MISMATCH, f"{judged[0].why} (2 of 2 outputs are wrong)")
    assert worst([judged[2]]) is None


FLOATS = hnp.arrays(
    np.float32, 4, elements=st.floats(-100, 100, width=32) | st.sampled_from([math.nan, math.inf, 0.0])
)
ERRORS = hnp.arrays(
    np.float32, 4, elements=st.sampled_from([0.0, 1e-7, 1e-6, 3e-5, 1e-4, 2e-3, 0.5, math.nan])
)


@given(FLOATS, ERRORS, TOLERANCES, TOLERANCES)
def test_rows_judged_again_are_what_a_comparison_would_have_found(
    golden: np.ndarray, errors: np.ndarray, before: Tolerance, after: Tolerance
) -> None:
    with np.errstate(all="ignore"):
        actual = golden + errors
    policy = Policy(fixed=after, judge_by="table")
    first = judge_row(row_of(golden, actual, before), Policy(fixed=before, judge_by="table"))
    again = judge_row(msgspec.convert(msgspec.to_builtins(first.row), OutputMetrics), policy)
    fresh = judge_row(row_of(golden, actual, after), policy)
    assert again.fault is fresh.fault
    assert again.row.frontier == fresh.row.frontier
    assert bool(again.row.mismatched) == bool(fresh.row.mismatched)


SIZES = st.sampled_from([0.0, 1e-7, 3e-5, 6e-4, 2e-2, 0.3, 0.8, math.nan])
"""Of errors, relative to the values; NaN stands for one element that is NaN."""


def spoilt(values: np.ndarray, size: float, seed: int) -> np.ndarray:
    if math.isnan(size):
        values = values.copy()
        values[0] = np.nan
        return values
    noise = np.random.default_rng(seed).standard_normal(values.shape)
    return (values * (1 + size * noise)).astype(np.float32)


@given(
    st.integers(0, 50), st.sampled_from([0.0, 1e-5, 1.0]), SIZES, SIZES, st.booleans(), TOLERANCES, TOLERANCES
)
def test_converted_models_are_judged_again_as_they_would_have_been(
    seed: int,
    scale: float,
    lost: float,
    off: float,
    has_own: bool,  # noqa: FBT001
    before: Tolerance,
    after: Tolerance,
) -> None:
    right = (scale * np.random.default_rng(seed).standard_normal(8)).astype(np.float32)
    own = spoilt(right, lost, seed + 1)
    answers: list[list[tuple[str, Value]]] = [
        [("y", tensor(values)), ("n", tensor(np.array([1, 2])))]
        for values in (right, own, spoilt(right, off, seed + 2))
    ]

    def under(tolerance: Tolerance) -> tuple[OutputMetrics, ...]:
        golden, cpu, actual = answers
        return judge_precision(
            golden,
            cpu if has_own else None,
            actual,
            Policy(fixed=tolerance).tolerance_for,
            "float16",
        ).outputs

    policy = Policy(precision="float16", fixed=after, judge_by="table", converted=True)
    again, fresh = judge_rows(under(before), policy), judge_rows(under(after), policy)
    assert [one.fault for one in again] == [one.fault for one in fresh]
    assert [one.row.precision_error for one in again] == [one.row.precision_error for one in fresh]


@pytest.mark.parametrize(
    ("delivers", "rms", "fault", "delivered"),
    [
        (("float16",), 0.5, None, "float16"),
        (("bfloat16", "tf32"), 0.5, None, "tf32"),
        (("posit8",), 0.5, Verdict.MISMATCH, ""),
        (("float16",), 5.0, Verdict.MISMATCH, ""),
        (("bfloat16",), 0.5, Verdict.MISMATCH, ""),
        ((), 0.5, Verdict.MISMATCH, ""),
    ],
)
def test_a_record_with_the_noise_of_what_the_ep_delivers_is_judged_by_it(
    delivers: tuple[str, ...], rms: float, fault: Verdict | None, delivered: str
) -> None:
    row = noisy(rms, 3.0)
    assert row.noise is not None
    row = msgspec.structs.replace(row, noise=msgspec.structs.replace(row.noise, precision="float16"))
    found = judge_row(row, msgspec.structs.replace(BY_NOISE, delivers=delivers))
    assert (found.fault, found.delivered) == (fault, delivered)


def counted(**noise: Any) -> OutputMetrics:
    """Return the row of four whole numbers, one of which is another."""
    own = Noise(**{"precision": "float32", "rms": 0.0, "max": 0.0, **noise})
    row = msgspec.structs.replace(off_by(1.0), dtype="int64", noise=own, delivered_bits=1.0)
    return msgspec.structs.replace(row, mismatched=1, rtol=0.0, atol=0.0)


def test_noise_alone_excuses_another_whole_number() -> None:
    assert judge_row(counted(unmoved=0), Policy()).fault is None
    assert judge_row(counted(unmoved=1), Policy()).fault is Verdict.MISMATCH
    assert judge_row(counted(unmoved=0), Policy(judge_by="table")).fault is Verdict.MISMATCH
    # That noise takes most elements excuses none that it never moves.
    assert judge_row(counted(unmoved=0, size=0.7), Policy()).fault is Verdict.ILL_CONDITIONED
    assert judge_row(counted(unmoved=1, size=0.7), Policy()).fault is Verdict.MISMATCH


def test_a_delivered_precision_moves_whole_numbers_too() -> None:
    wider = Noise(precision="bfloat16", rms=0.0, max=0.0, delivers="bfloat16", unmoved=0)
    policy = Policy(delivers=("bfloat16",), bits={"": 2.0})
    row = counted(unmoved=1, wider=(wider,))
    assert (judge_row(row, policy).fault, judge_row(row, policy).delivered) == (None, "bfloat16")
    half = msgspec.structs.replace(row, mismatched=2)  # one bit is left
    found = judge_row(half, policy)
    assert found.fault is Verdict.PRECISION_LOSS
    assert found.why == "output 'y': the EP computes in bfloat16: 2 of 4 elements (50.0%) differ"
    assert judge_row(row, Policy()).fault is Verdict.MISMATCH
