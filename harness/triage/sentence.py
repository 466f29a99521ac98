"""The sentence about a fault: what is wrong, where and when, as a person would write it."""

import re
from collections.abc import Iterator, Sequence

from harness.core.errors import one_line
from harness.core.fault import Condition, Fault, GraphNode, NativeCrash, ReducedModel
from harness.core.output_metrics import OutputMetrics
from harness.core.verdict import Phase, Verdict
from harness.triage.native import involved_libraries
from harness.triage.signature import OTHER_INPUTS
from harness.triage.vary import chosen

NODES_NAMED = 4
ATTRIBUTES_NAMED = 4
MESSAGE_CHARS = 160
FUNCTION_CHARS = 100
CHARS = 600
TRIVIAL = frozenset({"zeros", "ones"})
"""Values that hide most faults: that a fault is gone with them says nothing."""

_PREFIX = re.compile(r"Non-zero status code returned while running .*? node\. Name:.*? Status Message: ")
"""What onnxruntime puts before an error of a kernel: the node is named anyway."""


_PHASES: dict[Phase | None, str] = {
    Phase.CREATE: "while it creates a session of",
    Phase.TEARDOWN: "while it closes a session of",
}


def sentence_of(fault: Fault, row: OutputMetrics | None, message: str) -> str:
    """Return the sentence of a fault.

    Args:
        fault: All but its sentence.
        row: The worst output of the reduced model; None if nothing was compared.
        message: What the reduced model's error said; empty if there was none.
    """
    said = one_line(_PREFIX.sub("", message), MESSAGE_CHARS)
    parts = [f"{_who(fault)} {_does(fault, row, said)}{_figures(fault, row)}"]
    if fault.unconfirmed:
        parts.append(fault.unconfirmed)
    parts += _where(fault)
    parts += _when(fault.conditions)
    if fault.confirmation.outcome == "sometimes":
        parts.append(f"in {fault.confirmation.failures} of {fault.confirmation.trials} trials")
    return one_line("; ".join(parts), CHARS).rstrip(".") + "."


def _who(fault: Fault) -> str:
    name = fault.provider.removesuffix("ExecutionProvider") or fault.provider
    return f"{name} {fault.library}" if fault.library else name


def _does(fault: Fault, row: OutputMetrics | None, said: str) -> str:
    what, signature = _what(fault), fault.signature
    during = f"{_PHASES.get(signature.phase, 'while it runs')} {what}"
    dtype = f" for {row.dtype}" if row is not None and row.dtype else ""
    raises = f"fails {during}, which the CPU EP runs: {said or signature.verdict}"
    others = " for other inputs in the same session" if signature.message == OTHER_INPUTS else ""
    if fault.unconfirmed:
        wrong = f"differs from the CPU EP in {what}{dtype}{others}"
    else:
        wrong = f"computes {what} wrongly{dtype}{others}"
    return {
        Verdict.CRASH: f"dies of {signature.cause or 'a signal'}{_died_in(fault.crash)} {during}",
        Verdict.HANG: f"does not come to an end {during}",
        Verdict.OUT_OF_MEMORY: f"runs out of memory {during}",
        Verdict.ERROR: raises,
        Verdict.OPTION_REJECTED: raises,
        Verdict.FALLBACK_AT_RUN: raises,
        Verdict.SHAPE_MISMATCH: f"gives an output of {what} another shape{others}",
        Verdict.DTYPE_MISMATCH: f"gives an output of {what} another element type{others}",
        Verdict.NAN_MISMATCH: (
            f"computes {what}{dtype} with NaN or infinity in other places than the CPU EP{others}"
        ),
        Verdict.PRECISION_LOSS: f"computes {what}{dtype} in a precision that leaves too few bits",
        Verdict.NONDETERMINISTIC: f"gives different results for {what}{dtype} in two runs of one session",
    }.get(signature.verdict, wrong)


def _died_in(crash: NativeCrash | None) -> str:
    """Return the library, and the innermost function that has a name."""
    libraries = involved_libraries(crash) if crash is not None else ()
    if crash is None or not libraries:
        return ""
    named = next((one for one in crash.frames if one.function and one.library in libraries), None)
    if named is None:
        return f" in {libraries[0]}"
    function = one_line(named.function.partition("(")[0], FUNCTION_CHARS)
    if named.library == libraries[0]:
        return f" in {function} of {named.library}"
    return f" in {libraries[0]}, called by {function} of {named.library},"


def _what(fault: Fault) -> str:
    """Name the guilty operators with the attributes that are set."""
    reduced = fault.reduced
    if reduced is None:
        return f"the model of {fault.representative}"
    nodes = [node for node in reduced.nodes if node.guilty] or list(reduced.nodes)
    if len(nodes) > NODES_NAMED:
        return f"{len(nodes)} nodes (from {nodes[0].op_type} to {nodes[-1].op_type})"
    return " + ".join(_named(node, reduced) for node in nodes)


def _named(node: GraphNode, reduced: ReducedModel) -> str:
    kinds = {tensor.name: tensor for tensor in reduced.tensors}
    inputs = [kinds[name] for name in node.inputs if name in kinds and kinds[name].dtype]
    shown = list(node.attributes.items())[:ATTRIBUTES_NAMED]
    attributes = ", ".join(f"{key}={value}" for key, value in shown)
    shape = f" of {inputs[0].dtype}[{inputs[0].shape}]" if inputs else ""
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
    """Yield the cells that must run before, with the operators that are left of their models."""
    for number, cell in enumerate(fault.preceding):
        nodes = fault.preceding_reduced[number].nodes if number < len(fault.preceding_reduced) else ()
        named = 0 < len(nodes) <= NODES_NAMED
        yield f"{cell} ({' + '.join(node.op_type for node in nodes)})" if named else cell


def _when(conditions: Sequence[Condition]) -> Iterator[str]:
    """Say which document allows the failure, and what makes it go away."""
    for one in chosen(conditions, "accuracy", fails=False):
        yield f"within the error that {one.value} allows for {one.name}"
    for kind, words in (
        ("graph_optimization", "right at graph optimization"),
        ("optimizer", "right without optimizer"),
        ("option", "right without option"),
        ("precision", "right at precision"),
        ("dtype", "right in"),
        ("opset", "right at opset"),
        ("attribute", "right with the default of"),
        ("shape", "right with"),
        ("values", "right with values"),
        ("scenario", "right in scenario"),
        ("runtime", "right with"),
        ("original", "right for the model that this one is a variant of,"),
    ):
        gone = [one for one in chosen(conditions, kind, fails=False) if one.value not in TRIVIAL]
        if gone:
            yield f"{words} {', '.join(_value(one) for one in gone)}"


def _value(condition: Condition) -> str:
    if condition.kind in {"attribute", "optimizer", "option"}:
        return condition.name
    if condition.name and condition.value:
        return f"{condition.name} = {condition.value}"
    return condition.value or condition.name
