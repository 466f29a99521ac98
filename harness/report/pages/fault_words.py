"""The known facts about a fault, in words for somebody who has not triaged it."""

from collections.abc import Iterable, Iterator

import msgspec

from harness.core.records.fault import Condition, Fault, Frame, Location, ReducedModel, Repetition
from harness.core.records.verdict import Verdict
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.report.runs.fault_merge import ReportFault
from harness.report.words.figures import Share, first_of, multiple
from harness.report.words.tone import spoken

_NAME_CHARS = 60
_MESSAGE_CHARS = 600
_SHOWN_NAMES = 8
_SHOWN_VALUES = 12
_SHOWN_FRAMES = 30

_WRONG_VALUES = (
    Verdict.MISMATCH,
    Verdict.PRECISION_LOSS,
    Verdict.NAN_MISMATCH,
    Verdict.SHAPE_MISMATCH,
    Verdict.DTYPE_MISMATCH,
    Verdict.NONDETERMINISTIC,
)

_VARIED = {
    "accuracy": "error allowed for",
    "dtype": "element type",
    "graph_optimization": "graph optimization",
    "optimizer": "optimizer switched off",
    "runtime": "other runtime",
    "target": "other target",
    "values": "input values",
}

_WEIGHTS = {"kept": "as in the model", "random": "replaced by random numbers", "single": "one value in each"}


class ConditionRow(msgspec.Struct, frozen=True, kw_only=True):
    """All variations of one kind, as values in words.

    Attributes:
        fails: Values with which the failure is still there.
        right: Values with which it is gone.
        unknown: Values with which it could not be judged, and the trial's result.
    """

    varied: str
    fails: str
    right: str
    unknown: str


class ShownFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One frame of a native stack; ``place`` is its function, or its offset in the library."""

    place: str
    library: str
    culprit: bool


def facts(shown: ReportFault, runs: int) -> Iterator[tuple[str, str]]:
    """Yield ``(label, text)`` pairs about a fault, with its run if the report shows several ``runs``."""
    fault = shown.fault
    yield "Seen on", _listed(_where(shown, runs))
    yield "How often", confirmed(fault.confirmation)
    signature = fault.signature
    if signature.phase is not None:
        yield "Fails in", f"phase {signature.phase.value}"
    if signature.cause:
        yield "Cause", _name(signature.cause)
    if signature.message:
        # For wrong values this is the run that shows them.
        label = "Shown by" if signature.verdict in _WRONG_VALUES else "Message"
        yield label, one_line(signature.message, _MESSAGE_CHARS)
    yield from _needs(fault)
    if fault.location is not None:
        yield from located(fault.location)
    if fault.reduced is not None:
        yield from reduced(fault.reduced)
    if fault.trials:
        yield "Effort", f"{plural(fault.trials, 'trial')} in {fault.seconds:,.1f} s"


def _needs(fault: Fault) -> Iterator[tuple[str, str]]:
    """Yield the inputs, and what else a fault needs beside its model."""
    if fault.fed:
        yield "Fed", one_line(fault.fed, _MESSAGE_CHARS)
    if fault.scenario:
        yield "Needs", f"scenario {_name(fault.scenario)}"
    if fault.usage is not None:
        yield "Shows only", fault.usage.words
    if fault.preceding:
        yield "Needs before it", f"in the same process: {_listed(fault.preceding, _MESSAGE_CHARS)}"


def confirmed(found: Repetition) -> str:
    """Return how often a failure appeared when its cell was repeated."""
    trials = f"{found.failures:,} of {plural(found.trials, 'trial')}"
    if found.outcome == "always":
        return f"every time: {trials}"
    if found.outcome == "sometimes":
        percent = Share(found.failures, found.trials).percent
        return f"sometimes: {trials} ({percent}); gone only if {plural(found.repeats, 'trial')} in a row pass"
    if found.outcome == "never":
        return f"not again: {trials}"
    return f"unknown: the trials did not run; {trials} failed"


def located(location: Location) -> Iterator[tuple[str, str]]:
    """Yield where in its model the failure is, and what the experiments showed."""
    names = [
        f"{_name(name)} ({_name(op)})" for name, op in zip(location.nodes, location.op_types, strict=False)
    ]
    if location.exact:
        yield "Located in", f"node {_listed(names)} of the cell's model"
    else:
        yield "Located in", f"one of {plural(len(names), 'node')} of the cell's model: {_listed(names)}"
    if location.alone is not None:
        yield "On its own", "fails with right inputs" if location.alone else "right, given right inputs"
    if location.cumulative is not None:
        end = "fails" if location.cumulative else "right"
        yield "Model up to there", f"{end}, if everything behind it is cut off"
    if location.onwards is not None:
        end = "fails too" if location.onwards else "right"
        where = "there is another fault" if location.onwards else "the failure is here alone"
        yield "Model behind it", f"{end} with right values in place of its results: {where}"
    if location.fused:
        yield "Only together", f"fails only while compiled together: {_listed(map(_name, location.fused))}"
    if location.decomposed:
        smaller = _listed(map(_name, location.decomposed))
        yield "Taken apart", f"right if written as smaller operators: {smaller}"
    if location.error_ratio is not None:
        yield "Error", f"{multiple(location.error_ratio)} the rounding noise of the node"


def reduced(model: ReducedModel) -> Iterator[tuple[str, str]]:
    """Yield how far the model was reduced, and what remains of it."""
    opsets = [f"{_name(domain or 'ai.onnx')} {version}" for domain, version in model.opsets.items()]
    nodes = f"{len(model.nodes):,} of {plural(model.nodes_before, 'node')}"
    nbytes = f"{model.bytes:,} of {model.bytes_before:,} bytes"
    yield "Minimal model", f"{nodes}, {nbytes}" + (f"; opset {_listed(opsets)}" if opsets else "")
    if any(tensor.role == "initializer" for tensor in model.tensors):
        yield "Its weights", _WEIGHTS[model.weights]
    if not model.complete:
        yield "Reduction", "not finished: time ran out, a smaller model may fail too"


def condition_rows(conditions: Iterable[Condition]) -> tuple[ConditionRow, ...]:
    """Return a row for each thing that was varied, in the order of the trials."""
    rows: dict[tuple[str, str], list[Condition]] = {}
    for condition in conditions:
        rows.setdefault((condition.kind, condition.name), []).append(condition)
    return tuple(
        ConditionRow(
            varied=f"{_VARIED.get(kind, kind)} {_name(name)}".strip(),
            fails=_listed((_value(one) for one in tried if one.fails is True), shown=_SHOWN_VALUES),
            right=_listed((_value(one, "pass") for one in tried if one.fails is False), shown=_SHOWN_VALUES),
            unknown=_listed((_value(one) for one in tried if one.fails is None), shown=_SHOWN_VALUES),
        )
        for (kind, name), tried in rows.items()
    )


def frames(fault: Fault) -> tuple[ShownFrame, ...]:
    """Return the innermost frames of a crash."""
    if fault.crash is None:
        return ()
    libraries = [frame.library for frame in fault.crash.frames]
    culprit = libraries.index(fault.crash.culprit) if fault.crash.culprit in libraries else None
    return tuple(
        ShownFrame(place=_place(frame), library=_name(frame.library), culprit=number == culprit)
        for number, frame in enumerate(fault.crash.frames[:_SHOWN_FRAMES])
    )


def _where(shown: ReportFault, runs: int) -> Iterator[str]:
    for found in shown.found:
        fault = found.fault
        versions = [
            f"{_name(fault.provider)} {_name(fault.library)}".strip(),
            f"onnxruntime {_name(fault.onnxruntime)}" if fault.onnxruntime else "",
        ]
        run = f" in {_name(found.run)}" if runs > 1 else ""
        yield f"{_name(fault.target)}{run} ({', '.join(filter(None, versions))})"


def _place(frame: Frame) -> str:
    offset = f"+ 0x{frame.offset:x}"
    return f"{one_line(frame.function, 200)} {offset}" if frame.function else offset


def _value(condition: Condition, usual: str = "") -> str:
    verdict = condition.verdict.replace("_", " ")
    told = f" ({_name(verdict)})" if verdict and verdict != usual else ""
    return f"{_name(condition.value)}{told}"


def _name(text: str) -> str:
    return one_line(text, _NAME_CHARS)


def _listed(names: Iterable[str], chars: int = 0, *, shown: int = _SHOWN_NAMES) -> str:
    text = ", ".join(first_of(list(dict.fromkeys(names)), shown))
    return one_line(text, chars) if chars else text


def title(fault: Fault) -> str:
    """Return the operators that contain a fault, or its verdict if it was not located."""
    if fault.location is None or not fault.location.op_types:
        return spoken(fault.signature.verdict)
    return _listed(map(_name, fault.location.op_types), shown=3)
