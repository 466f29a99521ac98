"""The second data set of a bundle: other inputs, for a failure that shows only after or beside them."""

from harness.agent.other_inputs import other_inputs
from harness.core.fault import Signature
from harness.core.scenario import PLAIN, SCENARIOS
from harness.core.value import STRING, Tensor, tensor
from harness.corpus.data_sets import DataSet
from harness.triage.check import Check
from harness.triage.lab import Axes
from harness.triage.signature import OTHER_INPUTS
from harness.triage.subject import Subject
from harness.triage.usage import usage_of

CONCURRENT = "concurrent"


def other_set(subject: Subject, check: Check) -> DataSet | None:
    """Return the inputs that a trial runs between or beside those of a model, with what the CPU EP computes.

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
    changed = other_inputs(arrays)
    if changed is None:
        return None
    inputs = tuple(
        (name, tensor(changed[name]) if name in changed else value) for name, value in subject.inputs
    )
    other = Subject(model=subject.model, inputs=inputs, external=subject.external)
    golden = check.lab.golden(other)
    return None if golden is None else DataSet(name="", inputs=inputs, expected=golden)


def _needs_others(signature: Signature, axes: Axes) -> bool:
    scenario, usage = dict(axes).get("scenario", PLAIN), usage_of(axes)
    if scenario == CONCURRENT:
        return True
    further_runs = usage is not None and (usage.runs or 1) > 1
    return SCENARIOS[scenario].swaps_inputs and (further_runs or signature.message == OTHER_INPUTS)
