"""Two runs compared, as they are named: folders, folders of runs, or runs that have been read."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.core.text.errors import UsageError
from harness.report.changes.diff import compare_merged
from harness.report.changes.run_diff import Diff
from harness.report.changes.speed_file import read_speed
from harness.report.runs.merge import merge
from harness.report.runs.merged_run import MergedRun
from harness.report.runs.read import RunData, read_run, run_folders


def read_side(path: Path) -> MergedRun:
    """Read a run, or a folder of runs, as one side of a comparison.

    Raises:
        UsageError: It cannot be read.
    """
    return merge([read_run(folder, compact=True) for folder in run_folders(path)], as_one=True)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, and what changed between them.

    Attributes:
        diff: What changed.
        old: The first run; of a folder of runs, all of them as one.
        new: The second run, likewise.
        notices: Problems of their data, such as records that this version cannot read; one line each.
    """

    diff: Diff
    old: MergedRun
    new: MergedRun
    notices: tuple[str, ...]


def compare_runs(
    old: RunData | Path | str,
    new: RunData | Path | str,
    *,
    earlier: Sequence[RunData | Path | str] = (),
    speed: Path | None = None,
) -> Comparison:
    """Compare two runs cell by cell.

    Args:
        old: A run folder, or a folder of runs that count as one; or what ``read_run`` returns.
        new: The run that is compared with it.
        earlier: More nights before ``old``, which show how far latencies differ from night to night.
        speed: What `compare-speed --out` wrote: it decides on the latency of its cells.

    Raises:
        UsageError: A run or the file cannot be read, or the file has no cell of both runs.
    """
    sides = _side(old), _side(new)
    nights = [_side(night) for night in earlier]
    told = {} if speed is None else read_speed(speed)
    both = [{record.cell for _, record in side.records} for side in sides]
    if speed is not None and not told.keys() & both[0] & both[1]:
        hint = "compare the speed of the matrix of these runs"
        raise UsageError.at(speed, "it has no cell that is in both runs", hint)
    diff = compare_merged(*sides, names=(_name(old), _name(new)), earlier=nights, speed=told)
    notices = tuple(notice for side in (*sides, *nights) for notice in side.notices)
    return Comparison(diff=diff, old=sides[0], new=sides[1], notices=notices)


def _side(run: RunData | Path | str) -> MergedRun:
    return merge([run], as_one=True) if isinstance(run, RunData) else read_side(Path(run))


def _name(run: RunData | Path | str) -> str:
    return str(run.folder if isinstance(run, RunData) else run)
