"""The sentence about a fault: what is wrong, where and when, in plain words."""

import re
from collections.abc import Iterator, Sequence

from harness.annex.triage.failure_groups import NOT_PREFIX
from harness.annex.triage.published_model import shape_text
from harness.annex.triage.showing import Showing
from harness.annex.triage.signature import AT_OTHER_INPUTS
from harness.annex.triage.size_words import words_of_sizes
from harness.annex.triage.vary import DIMENSIONS, chosen
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.fault import Condition, Fault, GraphNode, ReducedModel
from harness.core.records.verdict import Phase, Verdict
from harness.core.text.errors import one_line
from harness.engine.processes.native_crash import died_in

NODES_NAMED = 4
ATTRIBUTES_NAMED = 4
OPERANDS_NAMED = 3
OPTIONS_NAMED = 4
MESSAGE_CHARS = 160
CHARS = 600
TRIVIAL = frozenset({"zeros", "ones"})
"""Values that hide most faults: if a fault is gone with them, this shows nothing."""

ORDINALS = ("first", "second", "third")

_PREFIX = re.compile(r"Non-zero status code returned while running .*? node\. Name:.*? Status Message: ")
"""Prefix that onnxruntime adds to an error of a kernel: the node is named anyway."""


_PHASES: dict[Phase | None, str] = {
    Phase.CREATE: "while it creates a session of",
    Phase.TEARDOWN: "while it closes a session of",
}


def sentence_of(fault: Fault, showing: Showing) -> str:
    """Return the sentence of a fault whose other fields are complete."""
    row, message = showing.row, showing.message
    said = one_line(_PREFIX.sub("", message), MESSAGE_CHARS)
    parts = [f"{_who(fault)} {_does(fault, showing, said)}{_figures(fault, row)}"]
    if fault.unconfirmed:
        parts.append(fault.unconfirmed)
    if showing.distinct > 1 and fault.signature.verdict is not Verdict.NONDETERMINISTIC:
        parts.append(f"{showing.distinct} different results in {showing.runs} equal runs")
    parts += showing.changed
    parts += _where(fault)
    parts += _when(fault)
    if fault.confirmation.outcome == "sometimes":
        parts.append(f"in {fault.confirmation.failures} of {fault.confirmation.trials} trials")
    return one_line("; ".join(parts), CHARS).rstrip(".") + "."


def _who(fault: Fault) -> str:
    name = fault.provider.removesuffix("ExecutionProvider") or fault.provider
    return f"{name} {fault.library}" if fault.library else name


def _does(fault: Fault, showing: Showing, said: str) -> str:
    what, signature, row = _what(fault), fault.signature, showing.row
    during = f"{_PHASES.get(signature.phase, 'while it runs')} {what}"
    dtype = f" for {row.dtype}" if row is not None and row.dtype else ""
    raises = f"fails {during}, which the CPU EP runs: {said or signature.verdict}"
    others = " for other inputs in the same session" if signature.message == AT_OTHER_INPUTS else ""
    if fault.unconfirmed or _is_unlocated(fault):
        wrong = f"differs from the CPU EP in {what}{dtype}{others}"
    else:
        wrong = f"computes {what} wrongly{dtype}{others}"
    drawn = row is not None and row.details is not None and row.details.distribution
    return {
        Verdict.CRASH: f"{_dies(fault)} {during}" + (f": {said}" if said else ""),
        Verdict.HANG: f"does not come to an end {during}",
        Verdict.OUT_OF_MEMORY: f"runs out of memory {during}" + (f": {said}" if said else ""),
        Verdict.ERROR: raises,
        Verdict.OPTION_REJECTED: f"makes no session: {said or 'an option is refused'}",
        Verdict.FALLBACK_AT_RUN: raises,
        Verdict.SHAPE_MISMATCH: f"gives an output of {what} {_other_shape(fault, showing)}{others}",
        Verdict.DTYPE_MISMATCH: f"gives an output of {what} another element type{others}",
        Verdict.NAN_MISMATCH: (
            f"computes {what}{dtype} with NaN or infinity in other places than the CPU EP{others}"
        ),
        Verdict.PRECISION_LOSS: f"computes {what}{dtype} in a precision that leaves too few bits",
        Verdict.NONDETERMINISTIC: _different(showing, f"{what}{dtype}"),
    }.get(signature.verdict, f"draws the numbers of {what} from another distribution" if drawn else wrong)


def _is_unlocated(fault: Fault) -> bool:
    return fault.location is not None and fault.location.unfinished


def _different(showing: Showing, what: str) -> str:
    """Describe how many results equal runs gave: this distinguishes random results from occasional ones."""
    if showing.distinct > 1:
        return f"gives {showing.distinct} different results for {what} in {showing.runs} equal runs"
    return f"gives different results for {what} in two runs of one session"


def _other_shape(fault: Fault, showing: Showing) -> str:
    """Return the shape that an output has, and the operand with the same shape, if exactly one has it."""
    if showing.row is None or not showing.expected:
        return "another shape"
    got = shape_text(showing.row.shape)
    node = next((one for one in fault.reduced.nodes if one.guilty), None) if fault.reduced else None
    shapes = {tensor.name: tensor.shape for tensor in fault.reduced.tensors} if fault.reduced else {}
    operands = [shapes.get(name) for name in node.inputs] if node is not None else []
    like = [ORDINALS[at] for at, shape in enumerate(operands[: len(ORDINALS)]) if shape == got]
    whose = f", that of its {like[0]} operand," if len(like) == 1 and len(operands) > 1 else ""
    return f"the shape {got or 'of a scalar'}{whose} in place of {showing.expected}"


def _dies(fault: Fault) -> str:
    """Describe how a process ended: by a signal, or by its own exit."""
    cause = fault.signature.cause or "exit code 0"
    verb = "ends its process with" if cause.startswith("exit code") else "dies of"
    return f"{verb} {cause}{died_in(fault.crash)}"


def _what(fault: Fault) -> str:
    """Name the guilty operators with the attributes that are set."""
    reduced = fault.reduced
    if reduced is None or _is_unlocated(fault):
        return f"the model of {fault.representative}"
    nodes = [node for node in reduced.nodes if node.guilty] or list(reduced.nodes)
    if len(nodes) > NODES_NAMED:
        return f"{len(nodes)} nodes (from {nodes[0].op_type} to {nodes[-1].op_type})"
    return " + ".join(_named(node, reduced) for node in nodes)


def _named(node: GraphNode, reduced: ReducedModel) -> str:
    kinds = {tensor.name: tensor for tensor in reduced.tensors}
    inputs = [kinds[name] for name in node.inputs if name in kinds and kinds[name].dtype]
    typed = dict.fromkeys(f"{one.dtype}[{one.shape}]" for one in inputs[:OPERANDS_NAMED])
    shown = list(node.attributes.items())[:ATTRIBUTES_NAMED]
    attributes = ", ".join(f"{key}={value}" for key, value in shown)
    shape = f" of {' and '.join(typed)}" if typed else ""
    domain = f"{node.domain}." if node.domain else ""
    return f"{domain}{node.op_type}({attributes}){shape}" if attributes else f"{domain}{node.op_type}{shape}"


def _figures(fault: Fault, row: OutputMetrics | None) -> str:
    if row is None or fault.signature.verdict is not Verdict.MISMATCH or not row.mismatched:
        return ""
    share = row.mismatched / max(row.elements, 1)
    error = "" if row.max_abs is None else f", off by up to {row.max_abs:.2g}"
    return f" ({share:.2g} of the elements{error})" if share < 1 else f" (all elements{error})"


def _where(fault: Fault) -> Iterator[str]:
    location = fault.location
    if location is not None and location.unfinished:
        first, last = location.op_types[0], location.op_types[-1]
        yield f"not located yet, {len(location.nodes)} candidates (from {first} to {last})"
    if location is not None and location.fused:
        operators = ", ".join(location.fused_op_types)
        yield f"only if {len(location.fused)} nodes are compiled together: {operators}"
    if location is not None and location.decomposed:
        yield f"right if {', '.join(location.decomposed)} is decomposed"
    if location is not None and location.onwards:
        yield "the nodes behind it fail as well, with the right inputs"
    if fault.scenario:
        yield f"in scenario {fault.scenario}"
    if fault.usage is not None:
        yield f"only {fault.usage.words}"
    if fault.preceding:
        yield f"after {', '.join(_preceding(fault))} in the same process"


def _preceding(fault: Fault) -> Iterator[str]:
    """Yield the cells that must run before, with the remaining operators of their models."""
    for number, cell in enumerate(fault.preceding):
        nodes = fault.preceding_reduced[number].nodes if number < len(fault.preceding_reduced) else ()
        named = 0 < len(nodes) <= NODES_NAMED
        yield f"{cell} ({' + '.join(node.op_type for node in nodes)})" if named else cell


def _when(fault: Fault) -> Iterator[str]:
    """Describe which document allows the failure, and what removes it."""
    conditions = fault.conditions
    for one in chosen(conditions, "accuracy", fails=False):
        yield f"within the error that {one.value} allows for {one.name}"
    for kind, words in (
        ("graph_optimization", "right at graph optimization"),
        ("optimizer", "right without optimizer"),
        ("option", ""),
        ("precision", "right at precision"),
        ("dtype", "right in"),
        ("opset", "right at opset"),
        ("attribute", "right with the default of"),
        ("shape", ""),
        ("values", "right with values"),
        ("scenario", "right in scenario"),
        ("runtime", "right with"),
        ("original", "right for the model that this one is a variant of,"),
    ):
        gone = [one for one in chosen(conditions, kind, fails=False) if one.value not in TRIVIAL]
        if kind == "shape":
            yield from _shapes(fault)
        elif kind == "option":
            yield from _options(gone)
        elif gone:
            yield f"{words} {', '.join(dict.fromkeys(map(_value, gone)))}"


def _options(gone: Sequence[Condition]) -> Iterator[str]:
    """Describe the options that it must lack to be right, and the values with which it is right."""
    needed = {one.name: one for one in gone if one.value.startswith(NOT_PREFIX)}
    if needed:
        told = (f"{name}={one.value.removeprefix(NOT_PREFIX)}" for name, one in needed.items())
        yield f"right without option {', '.join(told)}"
    others = [f"{one.name}={one.value}" for one in gone if one.name not in needed]
    if others:
        more = len(others) - OPTIONS_NAMED
        rest = f" and {more} more" if more > 0 else ""
        yield f"right with option {', '.join(others[:OPTIONS_NAMED])}{rest}"


def _shapes(fault: Fault) -> Iterator[str]:
    """Describe which sizes of a dimension are right."""
    inputs = [one for one in fault.reduced.tensors if one.role == "input"] if fault.reduced else []
    for name, axis in DIMENSIONS.items():
        tried = [one for one in fault.conditions if one.kind == "shape" and one.name == name]
        own = {one.shape.split("x")[axis] for one in inputs}
        failing = {one.value for one in tried if one.fails} | own
        right = {one.value for one in tried if one.fails is False}
        told = words_of_sizes(
            name, *({int(size) for size in sizes if size.isdecimal()} for sizes in (failing, right))
        )
        if told:
            yield told


def _value(condition: Condition) -> str:
    if condition.kind in {"attribute", "optimizer"}:
        return condition.name
    if condition.name and condition.value:
        return f"{condition.name} = {condition.value}"
    return condition.value or condition.name
