"""Which run folders are meant by a path: one run, or a folder of several."""

from pathlib import Path

from harness.core.errors import Problem, UsageError


def run_folders(path: Path) -> tuple[Path, ...]:
    """The folder itself where it is a run, else the runs directly below it, by name.

    So the shards of a night, downloaded into one folder, are named at once.

    Raises:
        UsageError: There is no such folder, or no run in it.
    """
    if not path.is_dir():
        hint = "give the --out of a run, or a folder of runs"
        raise UsageError(Problem(where=str(path), what="there is no such run folder", hint=hint))
    if (path / "run.json").exists() or (path / "records.jsonl").exists():
        return (path,)
    found = tuple(sorted(each.parent for each in path.glob("*/run.json")))
    if not found:
        what = "no run: neither run.json nor folders with one"
        raise UsageError(
            Problem(where=str(path), what=what, hint="give the --out of a run, or a folder of runs")
        )
    return found
