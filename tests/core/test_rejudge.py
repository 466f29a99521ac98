"""A record judged again is what a comparison under the other tolerance would have made of it."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.core.compare import Comparison, compare_all
from harness.core.latency import latency_of
from harness.core.metrics import ATOL_GRID
from harness.core.placed import placed
from harness.core.record import SCHEMA, OutputMetrics, Placement, Record
from harness.core.rejudge import needed_rtol, rejudged
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
    assume(before != EXACT)  # what was held to equality stays so, and the record does not say why
    assume(not near_the_limit((*wanted.outputs, *wanted.again), after))
    judged = rejudged(was, after)
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
    assert rejudged(was, loose).verdict is Verdict.PASS_PARTIAL
    by_design = msgspec.structs.replace(PLACEMENT, shape_ops=("Shape",))
    assert rejudged(record(mismatch_of(0.01), placement=by_design), loose).verdict is Verdict.PASS
    nowhere = Placement(
        ep_nodes=0, cpu_nodes=1, ep_ops={}, cpu_ops={"Relu": 1}, partitions=0, source="assignment"
    )
    assert rejudged(record(mismatch_of(0.01), placement=nowhere), loose).verdict is Verdict.FALLBACK


def test_what_fails_now_says_what_it_needs() -> None:
    judged = rejudged(record(mismatch_of(0.01), verdict=Verdict.PASS), Tolerance(rtol=1e-3, atol=1e-3))
    assert judged.verdict is Verdict.MISMATCH
    assert judged.reason.startswith("y: needs rtol 0.009")
    (output,) = judged.outputs
    assert (output.rtol, output.atol, output.headroom, output.mismatched) == (1e-3, 1e-3, None, 1)


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
    assert rejudged(was, Tolerance(rtol=0.0, atol=0.1)).latency == latency
    assert rejudged(was, Tolerance(rtol=1e-3, atol=1e-3)).latency is None


@pytest.mark.parametrize(
    "verdict", [Verdict.CRASH, Verdict.NAN_MISMATCH, Verdict.SHAPE_MISMATCH, Verdict.REFERENCE_DISPUTED]
)
def test_what_no_tolerance_decides_stays(verdict: Verdict) -> None:
    was = record(mismatch_of(0.01), verdict=verdict, family=verdict.family)
    assert rejudged(was, Tolerance(rtol=1.0, atol=1.0)) == was


def test_an_atol_beside_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="atol 3e-05 is none of 0, 1e-07"):
        rejudged(record(mismatch_of(0.01)), Tolerance(rtol=0.0, atol=3e-5))
