"""`ep-harness doctor`: show which providers work here, why others do not, and what to do."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cli.init import plugins_from_here
from harness.cli.output import notify, print_result, wrapped
from harness.core.text.errors import EXIT_OK, one_line
from harness.core.text.visible_text import WIDTH, visible
from harness.plan.matrix import read_matrix
from harness.studies.usable_providers import ABSENT, DoctorRow, examine

_NAME_WIDTH = 30
"""Columns of a name; the longest of the catalogue has 29."""


def doctor(matrix: Path | None, *, plugins: list[str], as_json: bool) -> int:
    """Print one row for each target of a matrix, each provider and each plugin, then what to do next.

    Returns:
        Always 0; only a run fails when a ``required`` target is missing.
    """
    rows = examine(None if matrix is None else read_matrix(matrix), notify, plugins_from_here(plugins))
    print_result(rows, page(rows), as_json=as_json)
    return EXIT_OK


def page(rows: Sequence[DoctorRow]) -> Iterator[str]:
    """Yield lines of at most 80 columns: tables, remarks, then the next steps."""
    ordered = sorted(rows, key=_rank)
    for title, some in (
        ("target", [row for row in ordered if row.target]),
        ("provider", [row for row in ordered if not row.target]),
    ):
        if some:
            yield f"{title:<{_NAME_WIDTH}} {'state':<11} what"
            yield from (_line(row) for row in some)
            yield ""
    yield from _notes("remarks", [(_name(row), remark) for row in ordered for remark in row.remarks])
    yield from _notes("next steps", [(_name(row), _step(row)) for row in ordered if row.advice])
    usable = sum(row.computes for row in rows)
    yield f"{usable} of {len(rows)} work here; --json has versions, devices and reasons"


def _name(row: DoctorRow) -> str:
    return one_line(visible(row.target or row.provider), 60)


def _rank(row: DoctorRow) -> tuple[bool, bool, bool]:
    """Sort key: rows that compute, other usable ones, unavailable ones, absent ones."""
    return not row.usable, not row.nodes, row.cause in ABSENT


def _line(row: DoctorRow) -> str:
    what = one_line(visible(_what(row)), WIDTH - _NAME_WIDTH - 13)
    return f"{one_line(_name(row), _NAME_WIDTH):<{_NAME_WIDTH}} {row.state:<11} {what}"


def _what(row: DoctorRow) -> str:
    if row.cause == "library_missing":
        return f"{row.cause}: {row.reason.partition(' is missing')[0]}"
    if not row.usable:
        _, also, why = row.reason.rpartition("; ") if row.cause in ABSENT else ("", "", "")
        return f"{row.cause}{also}{why.removesuffix(' only')}" if also else row.cause
    if not row.nodes:
        return "0 nodes: computes nothing itself"
    device = row.devices[0]["device"] if row.devices else {}
    on = f"{device.get('type', '')} {device.get('vendor', '')}".strip()
    settings = [f"{key}={value}" for key, value in row.options.items()]
    onnxruntime = f"onnxruntime {row.versions.get('onnxruntime', '')}" if row.target else ""
    return "; ".join(filter(None, (onnxruntime, on, *settings)))


def _step(row: DoctorRow) -> str:
    """Return the advice, with the reason if it needs one."""
    why = f" ({row.cause}: {row.reason})" if row.cause and (row.target or row.cause not in ABSENT) else ""
    return f"{row.advice}{why}"


def _notes(title: str, notes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield notes after the names that they apply to; equal notes become one."""
    about: dict[str, list[str]] = {}
    for label, note in notes:
        about.setdefault(one_line(visible(note), 600), []).append(label)
    if not about:
        return
    yield title
    for note, labels in about.items():
        yield from wrapped(f"{', '.join(labels)}: {note}", "  ", "    ")
    yield ""
