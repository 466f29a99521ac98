"""Bars of a run's time, as flame graphs draw them: what is below a bar is what it consists of."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.core.timing.node_times import (
    PARTS_IN_WORDS,
    NodeTime,
    NodeTimes,
    Part,
    by_operator,
    middle,
    operator_words,
    time_leaves,
)
from harness.report.words.figures import brief, percentage

ROW_PX = 22
_NAME_CHARS = 120
_NARROWEST = 0.3
"""Percent of the run below which neighbours become one bar."""

_LEGIBLE = 2.5
"""Percent of the run from which on a bar has its name in it."""

_NOT_NODES: tuple[Part, ...] = ("outside", "between")


class FlameBar(msgspec.Struct, frozen=True, kw_only=True):
    """One bar: ``x`` and ``width`` in percent, ``y`` in pixels; ``tone`` is where it ran."""

    x: float
    y: int
    width: float
    tone: str
    text: str
    tip: str


class Flame(msgspec.Struct, frozen=True, kw_only=True):
    """All bars, the whole run on top; ``label`` is the picture in words, for screen readers."""

    bars: tuple[FlameBar, ...]
    height: int
    label: str


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What a bar stands for, and the pieces below it, in milliseconds."""

    name: str
    tone: str
    ms: float
    below: tuple["_Piece", ...] = ()


def flame_by_operator(times: NodeTimes) -> Flame:
    """Draw the run, below it its operators, the largest first, and below these their nodes."""
    found: dict[str, list[NodeTime]] = {}
    for one in time_leaves(times):
        found.setdefault(operator_words(one), []).append(one)
    pieces = [
        _Piece(
            name=name,
            tone=found[name][0].side,
            ms=middle(ms),
            below=tuple(
                _Piece(name=node.node, tone=node.side, ms=middle(node.ms))
                for node in sorted(found[name], key=lambda node: -middle(node.ms))
            ),
        )
        for name, (ms, _) in by_operator(times).items()
    ]
    return _drawn(times, pieces, "by operator")


def flame_by_node(times: NodeTimes) -> Flame:
    """Draw the run, below it its nodes in the order in which they ran, and below these their kernels."""
    kernels: dict[str, list[_Piece]] = {}
    for one in time_leaves(times):
        if one.inside:
            kernels.setdefault(one.inside, []).append(_piece(one))
    nodes = [node for node in times.nodes if not node.inside]
    pieces = [
        msgspec.structs.replace(_piece(node), below=tuple(kernels.get(node.node, ()))) for node in nodes
    ]
    return _drawn(times, pieces, "by node")


def _piece(node: NodeTime) -> _Piece:
    return _Piece(name=f"{node.op} {node.node}" if node.node else node.op, tone=node.side, ms=middle(node.ms))


def _drawn(times: NodeTimes, pieces: Sequence[_Piece], how: str) -> Flame:
    rest = [
        _Piece(name=PARTS_IN_WORDS[part], tone=part, ms=middle(times.parts.get(part, ())))
        for part in _NOT_NODES
    ]
    if times.left_out:
        rest.insert(
            0, _Piece(name=plural(times.left_out, "smaller node"), tone="between", ms=times.left_out_ms)
        )
    below = (*pieces, *rest)
    # Medians of the parts need not add up to that of the run.
    total = sum(piece.ms for piece in below) or 1.0
    whole = _Piece(name="a run", tone="run", ms=times.total_ms, below=below)
    bars = (_bar(whole, 0.0, 100.0, 0, times.total_ms), *_bars(below, 0.0, 1, total))
    return Flame(bars=bars, height=max(bar.y for bar in bars) + ROW_PX, label=f"Time of a run {how}")


def _bars(pieces: Sequence[_Piece], start: float, row: int, total: float) -> Iterator[FlameBar]:
    narrow: list[_Piece] = []
    at = start
    for piece in (*pieces, None):
        width = 0.0 if piece is None else 100 * piece.ms / total
        if piece is not None and width < _NARROWEST:
            narrow.append(piece)
            continue
        if narrow:
            few = narrow[0] if len(narrow) == 1 else _together(narrow)
            its = 100 * few.ms / total
            if its >= _NARROWEST / 3:
                yield _bar(few, at, its, row, total)
            at, narrow = at + its, []
        if piece is not None:
            yield _bar(piece, at, width, row, total)
            yield from _bars(piece.below, at, row + 1, total)
            at += width


def _together(pieces: Sequence[_Piece]) -> _Piece:
    tones = {piece.tone for piece in pieces}
    tone = pieces[0].tone if len(tones) == 1 else "between"
    return _Piece(name=f"{len(pieces)} small ones", tone=tone, ms=sum(piece.ms for piece in pieces))


def _bar(piece: _Piece, x: float, width: float, row: int, total: float) -> FlameBar:
    name = one_line(visible(piece.name), _NAME_CHARS)
    return FlameBar(
        x=round(x, 3),
        y=row * ROW_PX,
        width=round(min(width, 100.0 - x), 3),
        tone=piece.tone,
        text=name if width >= _LEGIBLE else "",
        tip=f"{name}: {brief(piece.ms)} ms, {percentage(min(1.0, piece.ms / total) if total else None)}",
    )
