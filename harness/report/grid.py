"""The table of models by lanes."""

from collections.abc import Sequence

import msgspec

from harness.core.errors import one_line
from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.cell import ReportCell
from harness.report.figures import Share, brief, plural
from harness.report.lane import Lane
from harness.report.tone import SYMBOLS, spoken, tone

_TITLE_CHARS = 120
_TITLE_OPS = 4


class GridCell(msgspec.Struct, frozen=True, kw_only=True):
    """One square of the table.

    Attributes:
        tone: How its verdict looks.
        symbol: The verdict's symbol.
        text: Delivered bits of a pass where there are any; else the verdict, spoken, and whether it is flaky.
        title: What a pointer resting on it shows; empty where there are details.
        anchor: Fragment of its details; empty where there are none.
        expected: False where the verdict is not what the matrix expects.
    """

    tone: str
    symbol: str
    text: str
    title: str
    anchor: str
    expected: bool


class GridRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model; a square per lane, None where the lane has no record of it."""

    model: str
    cells: tuple[GridCell | None, ...]


class GridSuite(msgspec.Struct, frozen=True, kw_only=True):
    """The models of one suite, sorted; per lane how many of the tried cells passed."""

    name: str
    passed: tuple[Share, ...]
    rows: tuple[GridRow, ...]


def grid(cells: Sequence[ReportCell], lanes: Sequence[Lane]) -> tuple[GridSuite, ...]:
    """Lay the cells out: suites and models sorted by name, lanes in the order given."""
    column = {lane: index for index, lane in enumerate(lanes)}
    suites: dict[str, dict[str, list[ReportCell | None]]] = {}
    for cell in cells:
        rows = suites.setdefault(cell.record.suite, {})
        row = rows.setdefault(cell.record.model, [None] * len(lanes))
        row[column[cell.lane]] = cell
    return tuple(_suite(name, suites[name], len(lanes)) for name in sorted(suites))


def least_bits(record: Record) -> float | None:
    """Delivered bits of the least precise output; None where every output is exact or not a float."""
    return min((o.delivered_bits for o in record.outputs if o.delivered_bits is not None), default=None)


def _suite(name: str, rows: dict[str, list[ReportCell | None]], lanes: int) -> GridSuite:
    passed = []
    for index in range(lanes):
        families = [cell.record.verdict.family for row in rows.values() if (cell := row[index])]
        tried = sum(f not in (Family.SKIPPED, Family.EXCLUDED, Family.MISSING) for f in families)
        passed.append(Share(families.count(Family.PASSED), tried))
    return GridSuite(
        name=name,
        passed=tuple(passed),
        rows=tuple(
            GridRow(model=model, cells=tuple(_square(cell) if cell else None for cell in rows[model]))
            for model in sorted(rows)
        ),
    )


def _square(cell: ReportCell) -> GridCell:
    record = cell.record
    look = tone(record.verdict)
    return GridCell(
        tone=look,
        symbol=SYMBOLS[look],
        text=_text(record),
        # Where there are details the link leads to the same text; twice, it would double the page.
        title="" if cell.anchor else _title(record),
        anchor=cell.anchor,
        expected=record.expected,
    )


def _text(record: Record) -> str:
    if record.verdict.family is not Family.PASSED:
        return spoken(record.verdict) + (", flaky" if record.flaky else "")
    bits = least_bits(record)
    return "" if bits is None else f"{bits:.1f}"


def _title(record: Record) -> str:
    if record.verdict in (Verdict.PASS, Verdict.PASS_PARTIAL):
        parts = [_placed(record), _headroom(record), _first_run(record)]
    else:
        parts = [record.cause.replace("_", " "), record.reason]
    return one_line(" · ".join(part for part in parts if part), _TITLE_CHARS)


def _placed(record: Record) -> str:
    if record.placement is None:
        return ""
    ops = list(record.placement.ep_ops)
    names = ", ".join(ops[:_TITLE_OPS]) + (", …" if len(ops) > _TITLE_OPS else "")
    on_cpu = f", {record.placement.cpu_nodes:,} on the CPU" if record.placement.cpu_nodes else ""
    return f"{plural(record.placement.ep_nodes, 'node')} on the EP{on_cpu}: {names}"


def _headroom(record: Record) -> str:
    used = [output.headroom for output in record.outputs if output.headroom is not None]
    if not used:
        return ""
    return "exact" if max(used) == 0 else f"error {brief(max(used))} of the allowed"


def _first_run(record: Record) -> str:
    took = record.timings_ms.get("first_run")
    return "" if took is None else f"{brief(took)} ms"
