"""What a trace shows, in one sentence. Pure."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.records.record import Record
from harness.core.records.trace import (
    BAND,
    TogetherGuilty,
    TracedNode,
    TracedPartition,
    TracedTarget,
    TraceError,
    TraceFinding,
)
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line

_COUNTED = 1e6
"""Multiples up to which a number says more than that it is large."""

_NAMED = 4
"""Number of nodes that a sentence names."""

_AMPLIFIES = 16.0
"""A node that enlarges the relative error by more than this multiple amplifies it: it takes four bits."""

_BELOW_STEP = 1 / 4
"""Share of values smaller than a step from which on the range of a tensor is too wide for int8."""

_REACHES = 1 / 4
"""Share of an amplified error that the outputs have, so that it explains theirs."""

_FEW_BITS = 2.0**-7
"""Relative error from which on an amplified error is of interest: at most seven bits are left."""


_ROUNDED = {name: unit / 16 for name, unit in {**UNIT_ROUNDOFF, "int8": 2.0**-8}.items()}
"""Relative error from which on a node counts as one that rounds to a precision."""


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured: the record of the model as it is, its error, its nodes and its partitions.

    Attributes:
        end: The error of the model's own outputs; null if it has none.
        delivers: The precision whose noise errors are told in.
    """

    own: Record
    end: TraceError | None
    delivers: str
    nodes: tuple[TracedNode, ...]
    partitions: tuple[TracedPartition, ...] = ()

    @property
    def guilty(self) -> tuple[TracedNode, ...]:
        """Return the nodes that make an error that rounding does not explain."""
        return tuple(one for one in self.nodes if one.made is not None and one.made.is_beyond)

    @property
    def first_beyond(self) -> TracedNode | None:
        """Return the first node whose results are beyond the noise, and that inherits nothing of the kind."""
        beyond = [one for one in self.nodes if one.whole is not None and one.whole.is_beyond]
        fresh = [one for one in beyond if one.inherited is None or one.inherited <= BAND]
        return next(iter(fresh or beyond), None)


def found_of(traced: Traced, together: TogetherGuilty | None) -> TracedTarget:
    """Return the finding, its sentence, and the nodes that it names."""
    own, guilty = traced.own, traced.guilty
    bare = TracedTarget(
        target=own.target,
        provider=own.provider,
        sentence="",
        finding="unknown",
        verdict=str(own.verdict),
        delivers=traced.delivers,
        end=traced.end,
        guilty=tuple(one.node for one in guilty),
        shares=tuple(common_traits(guilty, traced.nodes)),
        together=together,
        guilty_partitions=tuple(one.number for one in traced.partitions if one.guilty),
    )
    finding, sentence, condition = _finding(traced, bare.shares, together)
    return msgspec.structs.replace(bare, finding=finding, sentence=sentence, condition=condition)


def _finding(
    traced: Traced, shares: Sequence[str], together: TogetherGuilty | None
) -> tuple[TraceFinding, str, float | None]:
    """Return the finding, its sentence, and by how much a node amplifies, in the order of certainty."""
    if (nothing := _nothing(traced)) is not None:
        return "unknown", nothing, None
    if traced.guilty:
        if all(_out_of_range(one) or _coarse_operand(traced, one) for one in traced.guilty):
            return "range", _range_sentence(traced), None
        return "made", _made_sentence(traced, shares), None
    if together is not None or any(one.guilty for one in traced.partitions):
        return "together", _together_sentence(together, traced), None
    if traced.end is not None and traced.end.is_beyond:
        return "unknown", _unknown_sentence(traced), None
    return _healthy(traced)


def _nothing(traced: Traced) -> str | None:
    """Return why nothing is known about the target; None if something is."""
    own = traced.own
    if traced.end is None:
        return f"Nothing is known: the model itself ends as {own.verdict}: {one_line(own.reason, 200)}"
    if own.family is Family.UNTESTED:
        return f"Nothing is shown about {own.provider}: {own.verdict}, so the CPU EP computes the model."
    return None


def _healthy(traced: Traced) -> tuple[TraceFinding, str, float | None]:
    amplifier = _amplifier(traced)
    if amplifier is not None:
        node, condition = amplifier
        return "amplified", _amplified_sentence(traced, node, condition), round(condition, 1)
    if traced.delivers != traced.own.precision or traced.delivers != "float32":
        return "everywhere", _everywhere_sentence(traced), None
    return "none", _none_sentence(traced), None


def common_traits(guilty: Sequence[TracedNode], nodes: Sequence[TracedNode]) -> list[str]:
    """Return what all guilty nodes have in common and no other node of the same kind has.

    The operator comes first; what tells them from the healthy nodes of that operator follows.
    """
    if not guilty:
        return []
    op_types = {one.op_type for one in guilty}
    if len(op_types) > 1:
        dtypes = {one.dtype for one in guilty}
        return [f"type {dtypes.pop()}"] if len(dtypes) == 1 and _distinct("dtype", guilty, nodes) else []
    (operator,) = op_types
    others = [one for one in nodes if one.op_type == operator and one not in guilty and one.made is not None]
    found = [f"operator {operator}"]
    if not others:
        return found
    for trait in sorted(set.intersection(*map(_traits, guilty))):
        if all(trait not in _traits(one) for one in others):
            found.append(trait)  # noqa: PERF401 - the traits of the others are computed lazily
    return found


def _traits(node: TracedNode) -> set[str]:
    attributes = {f"attribute {one}" for one in node.attributes.split("; ") if one}
    return {f"type {node.dtype}", f"shape {list(node.shape)}", *attributes}


def _distinct(field: str, guilty: Sequence[TracedNode], nodes: Sequence[TracedNode]) -> bool:
    values = {getattr(one, field) for one in guilty}
    return all(getattr(one, field) not in values for one in nodes if one not in guilty)


def _out_of_range(node: TracedNode) -> bool:
    return node.range is not None and (node.range.too_large > 0 or node.range.clipped > 0)


def _made_sentence(traced: Traced, shares: Sequence[str]) -> str:
    guilty = traced.guilty
    worst = max(guilty, key=lambda one: _size(one.made))
    others = Counter(one.op_type for one in traced.nodes)[worst.op_type] - len(guilty)
    told = [one.removeprefix("operator ") for one in shares]
    common = ""
    if len(guilty) > 1:
        common = f", which share {' and '.join(told)}" if told else ""
        common += f"; {others} other {worst.op_type} are healthy" if told and others > 0 else ""
    where = _names(guilty)
    error = _error_words(worst.made, traced.delivers)
    spread = "" if len(guilty) == 1 else "up to "
    end = _end_words(traced)
    if traced.end is not None and not traced.end.is_beyond:
        end = f"It does not reach the outputs, or only nodes that a fusion replaces make it. {end}"
    return f"Made at {where}{common}: on golden inputs {spread}{error}. {end}"


def _coarse_operand(traced: Traced, node: TracedNode) -> TracedNode | None:
    """Return the node whose results are quantized too coarsely to be read by another one; None if none is."""
    coarse = (
        one
        for one in traced.nodes
        if one.node in node.inputs and one.range is not None and one.range.below_step > _BELOW_STEP
    )
    return next(coarse, None)


def _range_sentence(traced: Traced) -> str:
    guilty = traced.guilty
    first = guilty[0]
    assert first.range is not None  # noqa: S101 - it is out of range, or its floats are quantized
    coarse = _coarse_operand(traced, first)
    if coarse is not None and coarse.range is not None:
        what = (
            f"quantization leaves nothing of {coarse.range.below_step:.2g} of the values that it reads from "
            f"{_name(coarse)}, whose range is {coarse.range.low:.3g} to {coarse.range.high:.3g}"
        )
    elif first.range.clipped:
        what = f"quantization clips {first.range.clipped:.2g} of the values that it reads"
    else:
        largest = max(abs(first.range.low), abs(first.range.high))
        what = f"its values reach {largest:.3g}, beyond the range of {traced.delivers}"
    more = f", and {len(guilty) - 1} more of the kind" if len(guilty) > 1 else ""
    return f"Inherited from a range: at {_name(first)} {what}{more}. {_end_words(traced)}"


def _together_sentence(together: TogetherGuilty | None, traced: Traced) -> str:
    """Tell the fewest nodes that were found; without them, a partition of which only the whole is wrong."""
    guilty = sorted((one for one in traced.partitions if one.guilty), key=lambda one: -_size(one.made))
    parts: list[str] = []
    if together is not None:
        operators = ", ".join(dict.fromkeys(together.op_types))
        names = ", ".join(one_line(name, 60) for name in together.nodes[-_NAMED:])
        error = _error_words(together.made, traced.delivers)
        parts.append(
            f"Made by {len(together.nodes)} nodes together ({operators}; up to {names}), each of which is "
            f"right alone: {error}."
        )
        home = [one for one in traced.partitions if one.number == together.partition]
        parts += [f"The provider compiles them in {_partition_words(one, traced)}." for one in home]
    else:
        where, error = _partition_words(guilty[0], traced), _error_words(guilty[0].made, traced.delivers)
        parts.append(f"Made by {where}: right alone node by node, wrong as compiled, with {error}.")
    if len(guilty) > 1:
        parts.append(f"Partitions that are wrong as compiled: {len(guilty)} of {len(traced.partitions)}.")
    if traced.end is not None and not traced.end.is_beyond:
        parts.append("It does not reach the outputs.")
    return " ".join([*parts, _end_words(traced)])


def _partition_words(one: TracedPartition, traced: Traced) -> str:
    first, last = one_line(one.first, 60), one_line(one.last, 60)
    otherwise = ""
    if one.compiled == "otherwise":
        otherwise = ", which the provider takes otherwise when they are alone"
    count = len(traced.partitions)
    return f"partition {one.number + 1} of {count}, {one.nodes} nodes from {first} to {last}{otherwise}"


def _amplified_sentence(traced: Traced, node: TracedNode, condition: float) -> str:
    before = (_relative(node) or 0.0) / condition
    return (
        f"Amplified at {_name(node)}, a cancellation: its relative error is {condition:.3g} times that of "
        f"its inputs ({before:.2g} becomes {_relative(node):.2g}), as the model's own rounding noise does in "
        f"{traced.delivers}. No node makes more than rounding."
    )


def _everywhere_sentence(traced: Traced) -> str:
    multiples = sorted(
        one.made.noise
        for one in traced.nodes
        if one.made is not None and one.made.noise and (one.made.relative or 0.0) > _ROUNDED[traced.delivers]
    )
    middle = multiples[len(multiples) // 2] if multiples else 0.0
    return (
        f"Everywhere alike: the target computes in {traced.delivers}; nodes make {middle:.2g} times its "
        f"rounding noise (median of {len(multiples)}). {_end_words(traced)}"
    )


def _none_sentence(traced: Traced) -> str:
    noises = [one.made.noise for one in traced.nodes if one.made is not None and one.made.noise is not None]
    return (
        f"No error but rounding: no node makes more than {max(noises, default=0.0):.2g} times the rounding "
        f"noise of {traced.delivers}. {_end_words(traced)}"
    )


def _unknown_sentence(traced: Traced) -> str:
    first = traced.first_beyond
    where = "" if first is None else f", first at {_name(first)}"
    return (
        f"Not located: the outputs are beyond the noise{where}, but each node is right alone on golden "
        f"inputs. {_end_words(traced)}"
    )


def _amplifier(traced: Traced) -> tuple[TracedNode, float] | None:
    """Return the node that enlarges a relative error most, and by how much."""
    relative = {one.node: _relative(one) for one in traced.nodes}
    end = None if traced.end is None else traced.end.relative
    found = []

    def reaches(after: float) -> bool:
        """Whether the outputs still have much of it."""
        return end is not None and end >= _REACHES * after

    for node in traced.nodes:
        after = relative[node.node]
        before = [value for name in node.inputs if (value := relative.get(name))]
        if after and after > _FEW_BITS and reaches(after) and before and after / max(before) > _AMPLIFIES:
            found.append((node, after / max(before)))
    return max(found, key=lambda pair: pair[1], default=None)


def _relative(node: TracedNode) -> float | None:
    return None if node.whole is None else node.whole.relative


def _size(error: TraceError | None) -> float:
    return float("inf") if error is None or error.noise is None else error.noise


def _error_words(error: TraceError | None, delivers: str) -> str:
    if error is None:
        return "an unknown error"
    if error.differs:
        return f"another {error.differs}"
    parts = []
    if error.noise is not None:
        times = "more than a million" if error.noise >= _COUNTED else f"{error.noise:.3g}"
        parts.append(f"{times} times its rounding noise in {delivers}")
    if error.relative is not None:
        parts.append(f"relative error {error.relative:.2g}")
    if error.special:
        parts.append(f"NaN or infinity on one side only ({error.special:,})")
    return ", ".join(parts) or "other values"


def _end_words(traced: Traced) -> str:
    end = traced.end
    if end is None or end.exact:
        return "The outputs are exact."
    return f"The outputs have {_error_words(end, traced.delivers)}."


def _names(nodes: Sequence[TracedNode]) -> str:
    if len(nodes) == 1:
        return _name(nodes[0])
    listed = ", ".join(one_line(one.node, 60) for one in nodes[:_NAMED])
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"{len(nodes)} nodes ({listed}{more})"


def _name(node: TracedNode) -> str:
    return f"{node.op_type} {one_line(node.node, 80)}"
