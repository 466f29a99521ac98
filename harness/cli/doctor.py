"""`ep-harness doctor`: which providers can be used here, why not, and what to do."""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.core.errors import one_line
from harness.core.text import visible
from harness.plan.matrix import load_matrix
from harness.run.summary import WIDTH
from harness.studies.doctor import Row, examine

NAME_WIDTH = 30
"""Columns for a name: the longest of the catalogue has 29."""

ABSENT = frozenset({"not_in_build", "not_installed"})
"""Causes that speak for themselves where nothing but the harness's own interpreter is meant."""


def doctor(matrix: Path | None, *, as_json: bool) -> int:
    """Print one row for each target of a matrix and each provider, then what to do next.

    Returns:
        0, whatever is found: what has to be there is for ``required`` targets of a run to say.

    Raises:
        UsageError: The matrix is wrong, or the cache cannot be written.
    """
    rows = examine(None if matrix is None else load_matrix(matrix), tell)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(rows)).decode() + "\n")
    else:
        sys.stdout.write("\n".join(page(rows)) + "\n")
    return 0


def page(rows: Sequence[Row]) -> Iterator[str]:
    """The lines for a terminal, at most 80 columns wide: tables, remarks, then the next steps."""
    ordered = sorted(rows, key=_rank)
    for title, some in (
        ("target", [row for row in ordered if row.target]),
        ("provider", [row for row in ordered if not row.target]),
    ):
        if some:
            yield f"{title:<{NAME_WIDTH}} {'state':<11} what"
            yield from (_line(row) for row in some)
            yield ""
    yield from _notes("remarks", [(name(row), remark) for row in ordered for remark in row.remarks])
    yield from _notes("next steps", [(name(row), _step(row)) for row in ordered if row.advice])
    usable = sum(row.usable and bool(row.nodes) for row in rows)
    yield f"{usable} of {len(rows)} can be used here; --json has versions, devices and reasons"


def name(row: Row) -> str:
    """What a row is called: its target, else its provider."""
    return one_line(visible(row.target or row.provider), 60)


def tell(text: str) -> None:
    """A line for people, out of the way of what is printed for programs."""
    sys.stderr.write(visible(text) + "\n")


def _rank(row: Row) -> tuple[bool, bool, bool]:
    """Usable ones first, of these the ones that compute; those last that are not here at all."""
    return not row.usable, not row.nodes, row.cause in ABSENT


def _line(row: Row) -> str:
    what = one_line(visible(_what(row)), WIDTH - NAME_WIDTH - 13)
    return f"{one_line(name(row), NAME_WIDTH):<{NAME_WIDTH}} {row.state:<11} {what}"


def _what(row: Row) -> str:
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


def _step(row: Row) -> str:
    """The advice; and why, where that is not plain."""
    why = f" ({row.cause}: {row.reason})" if row.cause and (row.target or row.cause not in ABSENT) else ""
    return f"{row.advice}{why}"


def _notes(title: str, notes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Notes under the names that they are about; a note that several have stands once."""
    about: dict[str, list[str]] = {}
    for label, note in notes:
        about.setdefault(one_line(visible(note), 600), []).append(label)
    if not about:
        return
    yield title
    for note, labels in about.items():
        yield from _wrapped(f"{', '.join(labels)}: {note}")
    yield ""


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
