"""`ep-harness list`: show the plan, or the built-in suites."""

from collections import Counter
from pathlib import Path
from typing import Any, Unpack

import msgspec

from harness.cli.output import print_result
from harness.cli.selection import Selected, Selection
from harness.core.text.errors import EXIT_OK, UsageError
from harness.corpus.suites.suites import suite_lines
from harness.plan.plan import Plan


def listing(
    matrix: Path | None, *, suites: bool, as_json: bool, count: bool, **selection: Unpack[Selected]
) -> int:
    """Print the ids of the planned cells, or their number for each target, or the built-in suites."""
    if not suites and matrix is None:
        raise UsageError.at("list", "no matrix file", "ep-harness list MATRIX, or ep-harness list --suites")
    if matrix is None or suites:
        rows = suite_lines()
        width = max(map(len, rows))
        lines = [f"{name:<{width}}  {text}" for name, text in rows.items()]
    else:
        rows, lines = (_counts if count else _cells)(Selection(**selection).plan(matrix))
    print_result(rows, lines, as_json=as_json)
    return EXIT_OK


def _counts(plan: Plan) -> tuple[Any, list[str]]:
    counts = Counter(cell.target for cell in plan.cells)
    lines = [f"{number:>8,}  {name}" for name, number in counts.items()]
    return dict(counts), [*lines, f"{counts.total():>8,}  cells in all"]


def _cells(plan: Plan) -> tuple[Any, list[str]]:
    rows = [{"cell": cell.id, **msgspec.structs.asdict(cell), "axes": dict(cell.axes)} for cell in plan.cells]
    return rows, [cell.id for cell in plan.cells]
