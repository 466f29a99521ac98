"""`ep-harness list`: the plan, or the built-in suites."""

import sys
from collections import Counter
from pathlib import Path

import msgspec

from harness.cli.selection import Selection
from harness.core.errors import Problem, UsageError
from harness.corpus.suites import SUITES
from harness.engine.prepare import prepare


def list_plan(matrix: Path | None, *, selection: Selection, as_json: bool, count: bool) -> int:
    """Print the ids of the planned cells, or their number for each target.

    Raises:
        UsageError: No matrix, a wrong one, or a glob that matches nothing.
    """
    if matrix is None:
        raise UsageError(
            Problem(
                where="list",
                what="no matrix file",
                hint="ep-harness list MATRIX, or ep-harness list --suites",
            )
        )
    plan = selection.of(prepare(matrix)[0])
    if count:
        counts = Counter(cell.target for cell in plan.cells)
        rows: object = dict(counts)
        lines = [f"{number:>8,}  {name}" for name, number in counts.items()]
        lines.append(f"{counts.total():>8,}  cells in all")
    else:
        rows = [
            {
                "cell": cell.id,
                "suite": cell.suite,
                "model": cell.model,
                "target": cell.target,
                "axes": dict(cell.axes),
            }
            for cell in plan.cells
        ]
        lines = [cell.id for cell in plan.cells]
    _print(rows, lines, as_json=as_json)
    return 0


def list_suites(*, as_json: bool) -> int:
    """Print the built-in suites with one line each."""
    width = max(map(len, SUITES))
    _print(SUITES, [f"{name:<{width}}  {text}" for name, text in SUITES.items()], as_json=as_json)
    return 0


def _print(rows: object, lines: list[str], *, as_json: bool) -> None:
    text = msgspec.json.format(msgspec.json.encode(rows)).decode() if as_json else "\n".join(lines)
    sys.stdout.write(text + "\n")
