"""`ep-harness baseline write`: the known failures of a run as a file that travels."""

from collections.abc import Sequence
from pathlib import Path

from harness.cli.output import notify, print_lines
from harness.core.files.writing import write_aside, writing
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_OK, UsageError, valid_names
from harness.core.text.globs import glob_matcher
from harness.plan.baseline_file import baseline_text, load_baselines
from harness.report.changes.run_comparison import read_side
from harness.report.runs.baseline_of import baselines_of, file_name, known_lines

DEFAULT_FOLDER = Path("baselines")


def write(run: Path, *, out: Path | None, target: Sequence[str]) -> int:
    """Write the baseline of a run, or of the shards of one, and print its content.

    Returns:
        Return 0; 3 if the run is incomplete: its missing cells count as unexpected if they fail later.
    """
    side = read_side(run)
    for notice in side.notices:
        notify(notice)
    names = sorted({record.target for _, record in side.records})
    for glob in target:
        if not any(map(glob_matcher((glob,)), names)):
            raise UsageError.at(
                "--target", f"no target of the run matches {glob!r}", valid_names(glob, names)
            )
    found = baselines_of(side, glob_matcher(target))
    path = out or DEFAULT_FOLDER
    if path.suffix != ".toml":
        path /= file_name(side, found)
    if path.exists():
        _check_is_baseline(path)
    with writing(path, "the baseline"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, baseline_text(found))
    print_lines([*known_lines(found), f"baseline  {path}"])
    if not side.complete:
        notify("the run is incomplete: cells without a result are not in the baseline")
    return EXIT_OK if side.complete else EXIT_INCOMPLETE


def _check_is_baseline(path: Path) -> None:
    """Refuse to replace any other kind of file, such as the matrix."""
    try:
        load_baselines(path)
    except UsageError as error:
        raise UsageError.at(path, "there is a file that is no baseline", "choose another --out") from error
