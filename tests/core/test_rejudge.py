"""A record judged again is what a comparison under the other tolerance would have made of it."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.core.compare import Comparison, compare_all
from harness.core.hearing import Hearing
from harness.core.latency import latency_of
from harness.core.metrics import ATOL_GRID
from harness.core.output_metrics import Noise, OutputDetails, OutputMetrics, PrecisionError
from harness.core.placed import placed
from harness.core.record import SCHEMA, Placement, Record, Repeats
from harness.core.rejudge import Allowed, keeps_ties, knows, needed_rtol, rejudged
from harness.core.spread import NoiseLimits, rms_limit
from harness.core.tolerance import EXACT, Tolerance
from harness.core.value import Value, tensor
from harness.core.verdict import Verdict

Outputs = tuple[tuple[str, Value], ...]
PLACEMENT = Placement(
    ep_nodes=2, cpu_nodes=1, ep_ops={"Relu": 2}, cpu_ops={"Shape": 1}, partitions=1, source="assignment"
)
GRID = st.sampled_from(ATOL_GRID)
RTOL = st.sampled_from([0.0, 1e-7, 1e-5, 1e-3, 0.1])


def compared(golden: Outputs, actual: Outputs, tolerance: Tolerance) -> Comparison:
    return compare_all(golden, actual, lambda dtype: tolerance if dtype.startswith("float") else EXACT)


def record(
    outputs: Comparison, again: Comparison | None = None, placement: Placement = PLACEMENT, **fields: object
) -> Record:
    verdict, reason = outputs.verdict, outputs.message
    if verdict is None and again is not None and again.verdict is not None:
        verdict, reason = Verdict.NONDETERMINISTIC, again.message
    if verdict is None:
        verdict, reason = placed(placement)
    made = Record(
        schema=SCHEMA,
        cell="s/m[t]",
        suite="s",
        model="m",
        target="t",
        provider="P",
        verdict=verdict,
        family=verdict.family,
        expected=True,
        reason=reason,
        placement=placement,
        outputs=outputs.outputs,
        again=again.outputs if again else (),
        golden="cpu",
    )
    return msgspec.structs.replace(made, **fields)


def near_the_limit(outputs: tuple[OutputMetrics, ...], tolerance: Tolerance) -> bool:
    """Whether an element lies so close to what is allowed that the order of roundings decides."""
    needed = [needed_rtol(output, tolerance.atol) for output in outputs]
    return any(math.isclose(rtol, tolerance.rtol, rel_tol=1e-9) for rtol in needed if rtol)


FLOATS = hnp.arrays(
    np.float32,
    4,
    elements=st.floats(-100, 100, width=32) | st.sampled_from([math.nan, math.inf, 0.0]),
)
NOISE = hnp.arrays(
    np.float32, 4, elements=st.sampled_from([0.0, 1e-7, 1e-6, 3e-5, 1e-4, 2e-3, 0.5, math.nan])
)


@given(FLOATS, NOISE, NOISE, st.booleans(), st.tuples(RTOL, GRID), st.tuples(RTOL, GRID), st.booleans())
def test_it_is_what_a_comparison_would_have_said(
    golden: np.ndarray[tuple[int], np.dtype[np.float32]],
    noise: np.ndarray[tuple[int], np.dtype[np.float32]],
    other_noise: np.ndarray[tuple[int], np.dtype[np.float32]],
    twice: bool,  # noqa: FBT001
    old: tuple[float, float],
    new: tuple[float, float],
    integer_off: bool,  # noqa: FBT001
) -> None:
    before, after = (Tolerance(rtol=rtol, atol=atol) for rtol, atol in (old, new))
    integers = np.array([1, 2], np.int64)
    right: Outputs = (("y", tensor(golden)), ("n", tensor(integers)))
    with np.errstate(all="ignore"):
        first: Outputs = (("y", tensor(golden + noise)), ("n", tensor(integers + int(integer_off))))
        second: Outputs = (("y", tensor(golden + other_noise)), first[1])

    def under(tolerance: Tolerance) -> Record:
        again = compared(right, second, tolerance) if twice else None
        return record(compared(right, first, tolerance), again)

    was, wanted = under(before), under(after)
    assume(not near_the_limit((*wanted.outputs, *wanted.again), after))
    judged = rejudged(was, Allowed(after))
    assert (judged.verdict, judged.family) == (wanted.verdict, wanted.family)
    assert [bool(output.mismatched) for output in judged.outputs] == [
        bool(output.mismatched) for output in wanted.outputs
    ]
    assert [output.frontier for output in judged.outputs] == [output.frontier for output in wanted.outputs]


def mismatch_of(error: float) -> Comparison:
    golden = np.ones(4, np.float32)
    tolerance = Tolerance(rtol=0.0, atol=1e-6)
    return compared((("y", tensor(golden)),), (("y", tensor(golden + np.float32(error))),), tolerance)


def test_what_passes_now_is_judged_by_its_placement() -> None:
    loose = Tolerance(rtol=0.0, atol=0.1)
    was = record(mismatch_of(0.01))
    assert was.verdict is Verdict.MISMATCH
    assert rejudged(was, Allowed(loose)).verdict is Verdict.PASS_PARTIAL
    by_design = msgspec.structs.replace(PLACEMENT, shape_ops=("Shape",))
    assert rejudged(record(mismatch_of(0.01), placement=by_design), Allowed(loose)).verdict is Verdict.PASS
    nowhere = Placement(
        ep_nodes=0, cpu_nodes=1, ep_ops={}, cpu_ops={"Relu": 1}, partitions=0, source="assignment"
    )
    assert rejudged(record(mismatch_of(0.01), placement=nowhere), Allowed(loose)).verdict is Verdict.FALLBACK


def test_what_fails_now_says_what_it_needs() -> None:
    judged = rejudged(
        record(mismatch_of(0.01), verdict=Verdict.PASS), Allowed(Tolerance(rtol=1e-3, atol=1e-3))
    )
    assert judged.verdict is Verdict.MISMATCH
    assert judged.reason.startswith("y: needs rtol 0.009")
    (output,) = judged.outputs
    assert (output.rtol, output.atol, output.headroom, output.mismatched) == (1e-3, 1e-3, None, 1)


def test_no_tolerance_passes_what_is_lost() -> None:
    golden, zeros = (tensor(np.full(4, value, np.float32)) for value in (1e-6, 0.0))
    was = record(compared((("y", golden),), (("y", zeros),), Tolerance(rtol=0.0, atol=0.0)))
    judged = rejudged(was, LOOSE)
    assert judged.verdict is Verdict.MISMATCH
    assert rejudged(judged, LIMITS).verdict is Verdict.MISMATCH
    for multiple, verdict in ((1.0, Verdict.NO_GOLDEN), (50.0, Verdict.MISMATCH)):
        noise = Noise(precision="float32", rms=multiple, max=multiple)
        assert rejudged(with_output(was, noise=noise), LOOSE).verdict is verdict
        told = msgspec.structs.replace(with_output(was, noise=noise), hearing=Hearing(verdict=was.verdict))
        found = rejudged(told, LIMITS)
        assert found.verdict is verdict
        assert rejudged(found, LOOSE).verdict is verdict
        assert rejudged(found, Allowed(Tolerance(rtol=0.0, atol=0.0))).verdict is Verdict.MISMATCH


def test_positions_that_tie_are_told_of() -> None:
    tied = with_output(record(mismatch_of(0.0)), details=OutputDetails(ties=1))
    assert keeps_ties(tied)
    assert not keeps_ties(record(mismatch_of(0.01)))


def test_how_fast_a_wrong_answer_comes_is_not_kept() -> None:
    latency = latency_of(
        {
            "samples_ns": [1],
            "warm_up": 0,
            "stopped_by": "repeats",
            "io": "copied",
            "intra_op_threads": 1,
            "inter_op_threads": 1,
            "waiting_threads": None,
            "host_peak_mib": None,
            "device_mib": None,
        }
    )
    was = record(mismatch_of(0.01), verdict=Verdict.PASS, latency=latency)
    assert rejudged(was, Allowed(Tolerance(rtol=0.0, atol=0.1))).latency == latency
    assert rejudged(was, Allowed(Tolerance(rtol=1e-3, atol=1e-3))).latency is None


@pytest.mark.parametrize(
    "verdict", [Verdict.CRASH, Verdict.NAN_MISMATCH, Verdict.SHAPE_MISMATCH, Verdict.REFERENCE_DISPUTED]
)
def test_what_no_tolerance_decides_stays(verdict: Verdict) -> None:
    was = record(mismatch_of(0.01), verdict=verdict, family=verdict.family)
    assert rejudged(was, Allowed(Tolerance(rtol=1.0, atol=1.0))) == was


def test_an_atol_beside_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="atol 3e-05 is none of 0, 1e-07"):
        rejudged(record(mismatch_of(0.01)), Allowed(Tolerance(rtol=0.0, atol=3e-5)))


LIMITS = Allowed(NoiseLimits(rms=4.0, max=32.0))
LOOSE = Allowed(Tolerance(rtol=0.0, atol=0.1))


def with_output(was: Record, **fields: object) -> Record:
    outputs = tuple(msgspec.structs.replace(output, **fields) for output in was.outputs)
    return msgspec.structs.replace(was, outputs=outputs)


def noisy(rms: float, largest: float) -> Record:
    """Of an output with so many elements that the limit of the rms is nearly the one for many."""
    noise = Noise(precision="float32", rms=rms, max=largest, like="float32")
    return with_output(record(mismatch_of(0.01)), noise=noise, elements=10**8)


@pytest.mark.parametrize(
    ("rms", "largest", "verdict", "headroom"),
    [
        (1.0, 8.0, Verdict.PASS_PARTIAL, 0.25),
        (4.0, 32.0, Verdict.PASS_PARTIAL, 1.0),
        (5.0, 8.0, Verdict.MISMATCH, 1.25),
        (1.0, 64.0, Verdict.MISMATCH, 2.0),
    ],
)
def test_limits_of_noise_judge_what_a_fixed_tolerance_has(
    rms: float, largest: float, verdict: Verdict, headroom: float
) -> None:
    was = noisy(rms, largest)
    judged = rejudged(was, LIMITS)
    assert knows(was, LIMITS)
    assert judged.verdict is verdict
    (output,) = judged.outputs
    assert output.noise is not None
    assert output.noise.rms_limit == rms_limit(NoiseLimits(rms=4.0, max=32.0), 10**8)
    assert output.noise.max_limit == 32.0
    assert output.headroom == pytest.approx(headroom, rel=1e-3)
    assert bool(output.mismatched) is (verdict is Verdict.MISMATCH)
    # And back: the frontier is what it was.
    back = rejudged(judged, Allowed(Tolerance(rtol=0.0, atol=1e-6)))
    assert back.verdict is was.verdict
    assert back.outputs[0].noise == was.outputs[0].noise


def test_what_exceeds_the_noise_is_told() -> None:
    was = msgspec.structs.replace(noisy(5.25, 80.0), verdict=Verdict.PASS, family=Verdict.PASS.family)
    assert rejudged(was, LIMITS).reason == (
        "y: the error is 5.25 x the model's rounding noise at float32, at most 80 x (limits 4 and 32); "
        "no witness was heard"
    )


def test_few_elements_have_a_wider_limit() -> None:
    was = with_output(noisy(5.0, 8.0), elements=4)
    assert rejudged(was, LIMITS).verdict is Verdict.PASS_PARTIAL
    assert rejudged(with_output(was, elements=25), LIMITS).verdict is Verdict.MISMATCH


def test_noise_of_another_precision_is_not_known() -> None:
    was = noisy(5.0, 8.0)
    other = Allowed(NoiseLimits(rms=4.0, max=32.0), precision="float16")
    same = Allowed(NoiseLimits(rms=9.0, max=32.0), precision="float32")
    assert (knows(was, other), knows(was, same)) == (False, True)
    assert rejudged(was, other) == was
    assert rejudged(was, same).verdict is Verdict.PASS_PARTIAL


def test_the_same_limits_change_nothing() -> None:
    was = rejudged(noisy(5.0, 8.0), LIMITS)
    count = with_output(was, mismatched=3)
    assert rejudged(count, LIMITS) == count


def test_a_fixed_tolerance_judges_what_noise_has() -> None:
    was = rejudged(noisy(1.0, 8.0), LIMITS)
    (old,) = was.outputs
    # Even where its numbers are the ones that stand in the row and did not judge.
    same = Allowed(Tolerance(rtol=old.rtol, atol=old.atol))
    assert rejudged(was, same).verdict is Verdict.MISMATCH
    assert rejudged(was, LOOSE).verdict is Verdict.PASS_PARTIAL


def test_without_noise_the_verdict_stays_and_it_is_known() -> None:
    was = record(mismatch_of(0.01))
    assert rejudged(was, LIMITS) == was
    assert not knows(was, LIMITS)
    assert knows(was, LOOSE)
    exact = record(mismatch_of(0.0))
    assert rejudged(exact, LIMITS).verdict is Verdict.PASS_PARTIAL
    assert knows(exact, LIMITS)
    crashed = msgspec.structs.replace(was, verdict=Verdict.CRASH, family=Verdict.CRASH.family)
    assert knows(crashed, LIMITS)


def quantized(steps: float) -> Record:
    golden = np.array([10, 20], np.int8)
    found = compared((("q", tensor(golden)),), (("q", tensor(golden + np.int8(steps))),), EXACT)
    return with_output(record(found), details=OutputDetails(steps=steps))


def test_steps_are_granted_to_quantized_values_alone() -> None:
    one = Allowed(Tolerance(rtol=1e-3, atol=0.1), steps=1.0)
    assert quantized(1.0).verdict is Verdict.MISMATCH
    assert rejudged(quantized(1.0), one).verdict is Verdict.PASS_PARTIAL
    assert rejudged(quantized(2.0), one).verdict is Verdict.MISMATCH
    assert rejudged(quantized(1.0), LOOSE).verdict is Verdict.MISMATCH
    granted = rejudged(quantized(1.0), one)
    assert rejudged(granted, LOOSE).verdict is Verdict.MISMATCH
    assert rejudged(granted, LOOSE).reason.startswith("q: wrong values, where only equality is right")
    plain = with_output(quantized(1.0), details=None)
    assert rejudged(plain, one).verdict is Verdict.MISMATCH


def test_steps_excuse_floats_beside_either_tolerance() -> None:
    was = with_output(record(mismatch_of(0.5)), details=OutputDetails(steps=1.0))
    assert rejudged(was, Allowed(Tolerance(rtol=0.0, atol=0.1), steps=1.0)).verdict is Verdict.PASS_PARTIAL
    assert rejudged(was, LOOSE).verdict is Verdict.MISMATCH
    by_noise = Allowed(NoiseLimits(rms=4.0, max=32.0), steps=1.0)
    loud = with_output(was, noise=Noise(precision="float32", rms=50.0, max=90.0))
    excused = rejudged(loud, by_noise)
    assert (excused.verdict, excused.outputs[0].headroom) == (Verdict.PASS_PARTIAL, 1.0)
    assert knows(was, by_noise)
    assert not knows(was, LIMITS)


@pytest.mark.parametrize("details", [OutputDetails(ties=2), OutputDetails(distribution="uniform")])
def test_ties_and_draws_stay_as_they_were_judged(details: OutputDetails) -> None:
    was = with_output(record(mismatch_of(0.01)), details=details)
    assert rejudged(was, LOOSE) == was
    assert knows(was, LIMITS)


def test_conversions_alone_are_no_work_of_a_provider() -> None:
    casts = Placement(
        ep_nodes=2,
        cpu_nodes=1,
        ep_ops={"Cast": 2},
        cpu_ops={"Sin": 1},
        partitions=1,
        source="assignment",
    )
    was = record(mismatch_of(0.01), placement=casts, axes={"precision": "fp16"})
    assert rejudged(was, LOOSE).verdict is Verdict.FALLBACK
    assert rejudged(record(mismatch_of(0.01), placement=casts), LOOSE).verdict is Verdict.PASS_PARTIAL


def test_equal_bits_are_asked_for_under_any_tolerance() -> None:
    repeats = Repeats(runs=4, sessions=1, distinct=2, max_abs=1e-7, bit_equal=True)
    was = record(mismatch_of(0.01), repeats=repeats)
    judged = rejudged(was, LOOSE)
    assert judged.verdict is Verdict.NONDETERMINISTIC
    assert "equal bits" in judged.reason
    assert rejudged(record(mismatch_of(0.01)), LOOSE).verdict is Verdict.PASS_PARTIAL


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        # About as far off as the CPU EP: whatever the tolerance says.
        (PrecisionError(error=0.3, cpu_error=0.2, in_limits=True), Verdict.PASS_PARTIAL),
        # As near to the CPU EP's own answer as the tolerance allows, or not.
        (PrecisionError(error=0.3, cpu_error=0.2, own_frontier=((0.0, 1e-9),)), Verdict.PASS_PARTIAL),
        (PrecisionError(error=0.3, cpu_error=1e-3, own_frontier=((0.0, 0.9),)), Verdict.MISMATCH),
        # Explained by what the precision costs, or by one rounding: the tolerance decides.
        (PrecisionError(error=1e-2, cpu_error=1e-3, ratio=10.0), Verdict.PASS_PARTIAL),
        (PrecisionError(error=1e-3), Verdict.PASS_PARTIAL),
        # A tolerance that is wide beside the values lets nothing pass.
        (PrecisionError(error=0.3, cpu_error=1e-3, ratio=300.0), Verdict.MISMATCH),
        (PrecisionError(error=0.3), Verdict.MISMATCH),
        # What the precision leaves nothing of explains nothing.
        (PrecisionError(error=0.4, cpu_error=0.9, ratio=0.5), Verdict.MISMATCH),
    ],
)
def test_a_converted_model_is_judged_by_what_its_precision_costs(
    error: PrecisionError, verdict: Verdict
) -> None:
    was = with_output(record(mismatch_of(0.01), axes={"precision": "fp16"}), precision_error=error)
    assert rejudged(was, LOOSE).verdict is verdict
    tight = Allowed(Tolerance(rtol=0.0, atol=0.0))
    told = with_output(was, noise=Noise(precision="float16", rms=1.0, max=5.0))
    assert rejudged(told, LIMITS) == told
    assert knows(was, LIMITS)
    assert rejudged(was, tight).verdict is (Verdict.PASS_PARTIAL if error.in_limits else Verdict.MISMATCH)
