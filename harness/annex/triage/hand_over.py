"""From a studied failure to its bundle: expected and found outputs, and limits between healthy and wrong."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.agent.other_inputs import reversed_inputs
from harness.annex.triage.bundle import BundleContents, ModelSource, PrecedingModel, write_bundle
from harness.annex.triage.distance import distance
from harness.annex.triage.failure_check import FailureCheck
from harness.annex.triage.lab import CellAxes
from harness.annex.triage.played_sets import limits_of_sets, played_sets
from harness.annex.triage.session_use import usage_of
from harness.annex.triage.signature import AT_FIRST_RUN, AT_OTHER_INPUTS
from harness.annex.triage.study_request import Reproduced
from harness.annex.triage.subject import Subject
from harness.core.comparison.noise_limits import DEFAULT_LIMITS
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.fault import Fault, Signature
from harness.core.records.scenario import PLAIN, SCENARIOS
from harness.core.values.value import STRING, NamedValues, Tensor, leaves, tensor
from harness.corpus.beside.data_sets import DataSet
from harness.plan.selector import Selector
from harness.plan.target import Target
from harness.plan.tolerance_entry import ToleranceEntry

OF_ERROR = 0.5
"""Limit as a share of the error, if the rounding noise of the model is unknown."""

_BY_NOISE = ToleranceEntry(selector=Selector(), noise=DEFAULT_LIMITS)
"""Policy for a model whose error the tolerance of its cell would pass."""

CONCURRENT = "concurrent"


def hand_over(
    folder: Path,
    fault: Fault,
    reproduced: Reproduced,
    target: Target,
    tolerance: ToleranceEntry | None,
    fingerprint: Mapping[str, Any],
) -> None:
    """Write the bundle of a fault, with its smallest model.

    Target and tolerance are the matrix's for the cell.

    Raises:
        UsageError: The folder cannot be written.
        ValueError: The bundle would not show the fault.
    """
    subject, match, check = reproduced.subject, reproduced.match, reproduced.check
    signature, found = fault.signature, NamedValues()
    if signature.message == AT_FIRST_RUN:
        (again,) = check.lab.run([check.trial(subject)], fresh=True)
        found = again.outputs
    expected = check.lab.golden(subject) or ()
    other = other_set(subject, check)
    limits = dict(allowed_distances(match.seen.record.outputs, expected, found))
    if signature.message == AT_OTHER_INPUTS:
        limits = dict(limits_for_others(match.seen.record.other))
    inputs: NamedValues = subject.inputs
    further: tuple[DataSet, ...] = () if other is None else (other,)
    model = ModelSource(content=subject.model, folder=subject.external)
    if signature.message == AT_FIRST_RUN and (played := played_sets(subject, check)) is not None:
        first, *rest = played.data_sets
        model = ModelSource(content=played.model)
        inputs, expected, found, further = first.inputs, first.expected, (), tuple(rest)
        limits = dict(limits_of_sets(match.seen.record.outputs, OF_ERROR))
    plugin = fingerprint.get("plugin")
    library = plugin.get("library") if isinstance(plugin, Mapping) else None
    write_bundle(
        folder,
        BundleContents(
            fault=fault,
            model=model,
            inputs=inputs,
            expected=expected,
            found=found,
            limits=limits,
            further=further,
            preceding=tuple(
                PrecedingModel(model=ModelSource(content=one.model, folder=one.external), inputs=one.inputs)
                for one in check.after
            ),
            target=target,
            axes=dict(check.axes),
            tolerance=tolerance if match.fails else _BY_NOISE,
            fingerprint=fingerprint,
            library=Path(library) if isinstance(library, str) and Path(library).is_file() else None,
            printed=match.seen.printed,
            time_limit_s=target.timeouts_s.create + target.timeouts_s.run,
        ),
    )


def allowed_distances(
    rows: tuple[OutputMetrics, ...], expected: NamedValues, found: NamedValues
) -> Iterator[tuple[str, float]]:
    """Yield for each wrong output the largest distance that is no fault.

    It is the geometric mean of the observed error and of the model's rounding noise, so both have the same
    room; see ``harness.annex.triage.distance``.
    """
    by_name = {row.name: row for row in rows}
    given = dict(found)
    for name, value in expected:
        wrong = []
        for leaf, right in leaves(name, value):
            other = dict(leaves(name, given[name])).get(leaf) if name in given else None
            row = by_name.get(leaf)
            if not isinstance(right, Tensor) or not isinstance(other, Tensor) or row is None:
                continue
            if right.dtype != other.dtype or right.array.shape != other.array.shape:
                continue
            error = distance(right, other)
            if math.isinf(error):  # all expected values are zero: any number is as good a limit
                error = 1.0
            if row.mismatched or (row.noise is not None and row.noise.max > 1):
                wrong.append(error / math.sqrt(max(row.noise.rms, 4.0)) if row.noise else error * OF_ERROR)
        if wrong:
            yield name, min(wrong)


def limits_for_others(rows: tuple[OutputMetrics, ...]) -> Iterator[tuple[str, float]]:
    """Yield for each output that is wrong for other inputs the largest distance that is no fault."""
    for row in rows:
        is_wrong = row.mismatched or (row.noise is not None and row.noise.max > 1)
        if row.relative_error and is_wrong:
            error = min(row.relative_error, 1.0)
            yield row.name, error / math.sqrt(max(row.noise.rms, 4.0)) if row.noise else error * OF_ERROR


def other_set(subject: Subject, check: FailureCheck) -> DataSet | None:
    """Return the data set with a trial's other inputs and the CPU EP's results for them.

    Returns:
        None if the failure needs none, if the model has no other inputs, or if the CPU EP refuses them.
    """
    if not _needs_others(check.signature, check.axes):
        return None
    arrays = {
        name: value.array
        for name, value in subject.inputs
        if isinstance(value, Tensor) and value.dtype != STRING
    }
    changed = reversed_inputs(arrays)
    if changed is None:
        return None
    inputs = tuple(
        (name, tensor(changed[name]) if name in changed else value) for name, value in subject.inputs
    )
    other = Subject(model=subject.model, inputs=inputs, external=subject.external)
    golden = check.lab.golden(other)
    return None if golden is None else DataSet(name="", inputs=inputs, expected=golden)


def _needs_others(signature: Signature, axes: CellAxes) -> bool:
    scenario, usage = dict(axes).get("scenario", PLAIN), usage_of(axes)
    if scenario == CONCURRENT:
        return True
    further_runs = usage is not None and (usage.runs or 1) > 1
    return SCENARIOS[scenario].swaps_inputs and (further_runs or signature.message == AT_OTHER_INPUTS)
