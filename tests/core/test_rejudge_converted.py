"""A record of a converted model judged again is what its outputs would have been judged to be."""

import math

import msgspec
import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.core.metrics import ATOL_GRID
from harness.core.output_metrics import OutputMetrics
from harness.core.precise import judge_precision
from harness.core.record import SCHEMA, Placement, Record
from harness.core.rejudge import Allowed, rejudged
from harness.core.tolerance import EXACT, Tolerance
from harness.core.value import Value, tensor
from harness.core.verdict import Verdict

PLACEMENT = Placement(
    ep_nodes=1, cpu_nodes=0, ep_ops={"Conv": 1}, cpu_ops={}, partitions=1, source="assignment"
)
TOLERANCES = st.builds(
    Tolerance, rtol=st.sampled_from([0.0, 1e-5, 1e-3, 0.1]), atol=st.sampled_from(ATOL_GRID)
)
SIZES = st.sampled_from([0.0, 1e-7, 3e-5, 6e-4, 2e-2, 0.3, 0.8, math.nan])
"""Of errors, relative to the values; NaN stands for one element that is NaN."""
Outputs = list[tuple[str, Value]]


def spoilt(values: np.ndarray, size: float, seed: int) -> np.ndarray:
    if math.isnan(size):
        values = values.copy()
        values[0] = np.nan
        return values
    noise = np.random.default_rng(seed).standard_normal(values.shape)
    return (values * (1 + size * noise)).astype(np.float32)


def under(tolerance: Tolerance, golden: Outputs, own: Outputs | None, actual: Outputs) -> Record:
    found = judge_precision(
        golden, own, actual, lambda dtype: tolerance if dtype == "float32" else EXACT, "float16"
    )
    verdict = found.verdict or Verdict.PASS
    return Record(
        schema=SCHEMA,
        cell="s/m[t,precision=fp16]",
        suite="s",
        model="m",
        target="t",
        provider="P",
        axes={"precision": "fp16"},
        verdict=verdict,
        family=verdict.family,
        expected=True,
        placement=PLACEMENT,
        outputs=found.outputs,
        golden="cpu",
    )


def near_the_limit(outputs: tuple[OutputMetrics, ...], tolerance: Tolerance) -> bool:
    """Whether the order of roundings decides."""
    frontiers = [output.frontier for output in outputs]
    frontiers += [output.precision_error.own_frontier for output in outputs if output.precision_error]
    needed = {rtol for frontier in frontiers for _, rtol in frontier if rtol}
    return any(math.isclose(rtol, tolerance.rtol, rel_tol=1e-9) for rtol in needed)


@given(
    st.integers(0, 50),
    st.sampled_from([0.0, 1e-5, 1.0]),
    st.lists(st.tuples(SIZES, SIZES, SIZES), min_size=1, max_size=2),
    st.booleans(),
    st.booleans(),
    TOLERANCES,
    TOLERANCES,
)
def test_it_is_what_would_have_been_judged(
    seed: int,
    scale: float,
    errors: list[tuple[float, float, float]],
    has_own: bool,  # noqa: FBT001
    integer_off: bool,  # noqa: FBT001
    before: Tolerance,
    after: Tolerance,
) -> None:
    golden: Outputs = []
    own: Outputs = []
    actual: Outputs = []
    for place, (lost, off, apart) in enumerate(errors):
        right = (scale * np.random.default_rng(seed).standard_normal(8)).astype(np.float32)
        cpu = spoilt(right, lost, seed + 1)
        result = spoilt(cpu if apart < 1e-3 else right, max(off, apart), seed + 2)
        for outputs, values in ((golden, right), (own, cpu), (actual, result)):
            outputs.append((f"y{place}", tensor(values)))
    counts = np.array([1, 2])
    for outputs in (golden, own, actual):
        outputs.append(("n", tensor(counts + int(integer_off and outputs is actual))))
    was, wanted = (
        under(tolerance, golden, own if has_own else None, actual) for tolerance in (before, after)
    )
    assume(not near_the_limit(wanted.outputs, after))
    judged = rejudged(was, Allowed(after))
    assert judged.verdict is wanted.verdict
    if was.verdict is Verdict.NAN_MISMATCH:  # it is one under any tolerance, and stays as it is
        return
    for one, other in zip(judged.outputs, wanted.outputs, strict=True):
        assert bool(one.mismatched) == bool(other.mismatched)
        assert msgspec.to_builtins(one.precision_error) == msgspec.to_builtins(other.precision_error)
