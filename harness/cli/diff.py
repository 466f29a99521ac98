"""`ep-harness diff`: two runs, cell by cell."""

import sys
from pathlib import Path

import msgspec

from harness.report.diff import Diff, compare, read_side
from harness.report.diff_text import diff_github, diff_lines, diff_markdown
from harness.report.json_text import inert_json
from harness.report.merge import MergedRun

FORMATS = {"text": diff_lines, "markdown": diff_markdown, "github": diff_github}


def diff(old: Path, new: Path, *, style: str, as_json: bool) -> int:
    """Print what changed between two runs; each may be a folder of runs.

    Returns:
        0, whatever changed: whether that is good enough is for ``gate`` to say.

    Raises:
        UsageError: A run cannot be read, or contradicts itself.
    """
    found, _ = compared(old, new)
    lines = [msgspec.json.format(inert_json(found)).decode()] if as_json else FORMATS[style](found)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def compared(old: Path, new: Path) -> tuple[Diff, tuple[MergedRun, MergedRun]]:
    """The difference of two runs, and the runs."""
    sides = read_side(old), read_side(new)
    return compare(*sides, names=(str(old), str(new))), sides
