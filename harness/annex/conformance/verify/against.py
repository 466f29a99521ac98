"""Check a record against the frozen facts of its case: each law holds for any answer, right or wrong.

With goldens ``g`` of ``n`` finite elements: ``2 ** -delivered_bits = sqrt(n) * rmse / norm(g)``. Every point
of the frontier covers all errors, so ``max_abs <= atol + rtol * max(g)`` and ``rmse <= rms(atol + rtol *
g)``. Noise and steps are errors divided by numbers that are also frozen.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from harness.annex.conformance.verify.figures_check import LARGE_NUMBER
from harness.annex.conformance.verify.frozen_cases import FrozenCase, FrozenLeaf
from harness.core.comparison.output_metrics import Noise, OutputDetails, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.records.facts import Placement
from harness.core.records.record import Record
from harness.core.values.value import Floats

_SLACK = 1e-6
"""Relative slack for figures that were rounded in several ways."""

_WORDS = {
    "ops": "operators",
    "opsets": "opsets",
    "types": "element types of inputs",
    "ranks": "ranks of inputs",
}

_STEP_ROUNDING = 0.5001e-3
"""Records round steps to three decimals."""


def model_faults(record: Record, case: FrozenCase) -> Iterator[str]:
    """Yield why a record is about another model than the frozen one."""
    if record.model_digest != case.digest and (record.model_digest or record.ended is None):
        yield f"the digest of model and data is {record.model_digest or 'missing'}, not {case.digest}"
    if record.content is None:
        return
    for field, words in _WORDS.items():
        told = getattr(record.content, field)
        if field == "ranks" and not told:  # written by an older version
            continue
        if told != getattr(case, field):
            yield f"other {words} than the model's"


def shape_faults(placement: Placement, case: FrozenCase) -> Iterator[str]:
    """Yield operators that are wrongly excused as work on shapes, or wrongly not."""
    right = tuple(sorted(placement.cpu_ops.keys() & case.shape_only))
    if placement.shape_ops != right:
        told = ", ".join(placement.shape_ops) or "none"
        yield f"on the CPU by design: {told}; by the model {', '.join(right) or 'none'}"


def output_faults(record: Record, case: FrozenCase, policy: Policy) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with outputs, as (output, name of the finding, description)."""
    if record.other:
        yield record.other[0].name, "excuse", "compared for other inputs, of which a profile has none"
    if record.ended is not None:
        return
    found = [*_forms(record.outputs, case.leaves)]
    if record.again:
        found += _forms(record.again, {name: case.leaves[name] for name in case.first})
    yield from ((name, "outputs", what) for name, what in found)
    for row in (*record.outputs, *record.again):
        leaf = case.leaves.get(row.name)
        if leaf is not None and not row.differs and not row.is_special:
            yield from ((row.name, "metrics", what) for what in leaf_faults(row, leaf, policy))


def leaf_faults(row: OutputMetrics, leaf: FrozenLeaf, policy: Policy) -> Iterator[str]:
    """Yield figures of one output that contradict its golden."""
    details = row.details or OutputDetails()
    if details.steps is not None and leaf.steps is None:
        yield f"{details.steps:g} steps of an output that is not quantized"
    if row.noise is not None and leaf.spread is None:
        yield "multiples of a noise that the profile does not have"
    if leaf.golden is None or not leaf.golden.size:
        return
    if row.max_abs is None or row.rmse is None:
        if float(leaf.golden.max()) < LARGE_NUMBER and (row.max_abs or 0.0) < LARGE_NUMBER:
            yield "finite elements without max_abs or rmse"
        elif row.max_abs is None and row.frontier:
            yield "a frontier without max_abs"
        return
    if leaf.steps is not None and details.steps is not None:
        yield from _steps(details, row, leaf.steps, policy)
    yield from _sizes(row, leaf.golden, row.rmse)
    yield from _frontier(row, leaf.golden, row.max_abs, row.rmse)
    if row.noise is not None and leaf.spread is not None:
        yield from _noise(row.noise, leaf.spread, row.max_abs, row.rmse)


def _forms(rows: Iterable[OutputMetrics], known: Mapping[str, FrozenLeaf]) -> Iterator[tuple[str, str]]:
    seen: list[str] = []
    whole: set[str] = set()
    for row in rows:
        leaf = known.get(row.name)
        if row.name in seen:
            yield row.name, "the output is there twice"
        seen.append(row.name)
        if row.differs:
            whole.add(row.name)
        elif leaf is None:
            yield row.name, "the profile has no such output"
        elif (row.dtype, row.shape) != (leaf.right.dtype, leaf.right.shape):
            right = f"{leaf.right.dtype}{list(leaf.right.shape)}"
            yield row.name, f"{row.dtype}{list(row.shape)}, and the golden is {right}"
    for name in known:
        if name not in seen and not any(name.startswith((f"{each}[", f"{each}.")) for each in whole):
            yield name, "the output is missing"


def _steps(
    details: OutputDetails, row: OutputMetrics, scales: tuple[float, float], policy: Policy
) -> Iterator[str]:
    steps, error = details.steps or 0.0, row.max_abs or 0.0
    least, most = error / scales[1], error / scales[0]
    if not least * (1 - _SLACK) - _STEP_ROUNDING <= steps <= most * (1 + _SLACK) + _STEP_ROUNDING:
        between = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
        yield f"{steps:g} steps, and max_abs {error:g} is {between}"
    if details.granted and details.granted != policy.steps:
        yield f"{details.granted:g} steps granted, and the profile grants {policy.steps:g}"


def _sizes(row: OutputMetrics, golden: Floats, rmse: float) -> Iterator[str]:
    if float(golden.max()) >= LARGE_NUMBER:
        return
    norm, error = float(np.linalg.norm(golden)), rmse * math.sqrt(golden.size)
    if not 1 / LARGE_NUMBER < norm < LARGE_NUMBER or not 1 / LARGE_NUMBER < error < LARGE_NUMBER:
        return
    bits = math.log2(norm / error)
    if row.delivered_bits is None or abs(row.delivered_bits - bits) > _SLACK * max(1.0, abs(bits)):
        yield f"delivered_bits {row.delivered_bits}, and rmse {rmse:g} of this golden gives {bits:.6g}"
    smallest = float(golden[golden > 0].min())
    if row.max_rel is not None and row.max_rel > (row.max_abs or 0.0) / smallest * (1 + _SLACK):
        yield f"max_rel {row.max_rel:g} too large for max_abs {row.max_abs}"


def _frontier(row: OutputMetrics, golden: Floats, max_abs: float, rmse: float) -> Iterator[str]:
    largest = float(golden.max())
    if largest >= LARGE_NUMBER:
        return
    for atol, rtol in row.frontier:
        if max_abs > (atol + rtol * largest) * (1 + _SLACK):
            yield f"max_abs {max_abs:g} exceeds atol {atol:g} and rtol {rtol:g} of the frontier everywhere"
            return
        covered = math.sqrt(float(np.mean(np.square(atol + rtol * golden))))
        if rmse > covered * (1 + _SLACK) and rmse > 1 / LARGE_NUMBER:
            yield f"rmse {rmse:g} exceeds atol {atol:g} and rtol {rtol:g} of the frontier"
            return


def _noise(noise: Noise, spread: Floats, max_abs: float, rmse: float) -> Iterator[str]:
    least, most = float(spread.min()), float(spread.max())
    if not least > 1 / LARGE_NUMBER or not most < LARGE_NUMBER:
        return
    rms = rmse / math.sqrt(float(np.mean(np.square(spread))))
    if abs(noise.rms - rms) > _SLACK * rms:
        yield f"noise.rms {noise.rms:g}, and rmse {rmse:g} is {rms:.6g} times the frozen noise"
    if not max_abs / most * (1 - _SLACK) <= noise.max <= max_abs / least * (1 + _SLACK):
        between = f"{max_abs / most:.4g} to {max_abs / least:.4g}"
        yield f"noise.max {noise.max:g}, and max_abs {max_abs:g} is {between} times the frozen noise"
