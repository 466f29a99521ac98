"""Arguments of `list` and `run`."""

from pathlib import Path

from harness.cli.arguments.command import (
    MATRIX,
    ONE_ARRAY,
    Commands,
    add_command,
    add_json,
    add_no_report,
    add_selection,
)
from harness.cli.arguments.values import duration_s


def add_runs(commands: Commands) -> None:
    """Declare `list` and `run`."""
    listing = add_command(
        commands, "list", "show the plan of a matrix, or the built-in suites", "listing.listing"
    )
    listing.add_argument("matrix", type=Path, nargs="?", metavar="MATRIX", help=MATRIX)
    listing.add_argument("--suites", action="store_true", help="show the built-in suites instead")
    add_json(listing, ONE_ARRAY)
    listing.add_argument("--count", action="store_true", help="show only the number of cells of each target")
    add_selection(listing)

    run = add_command(
        commands,
        "run",
        "run a matrix: live progress, records, report",
        "run.run",
        {
            0: "every verdict is as expected",
            1: "some verdicts are not as expected",
            2: "an argument or the matrix is wrong",
            3: "a required target is unavailable, cells are missing, or none was judged",
        },
    )
    run.add_argument("matrix", type=Path, metavar="MATRIX", help=MATRIX)
    run.add_argument(
        "--triage",
        action="store_const",
        const=600.0,
        dest="triage_budget_s",
        help="after the last cell, explain failing ones for 10 minutes at most",
    )
    run.add_argument(
        "--triage-budget",
        type=duration_s,
        dest="triage_budget_s",
        metavar="TIME",
        help="the same with another limit, such as 30m",
    )
    folder = run.add_mutually_exclusive_group()
    folder.add_argument("--out", type=Path, metavar="DIR", help="run folder; default: runs/<matrix>-<time>")
    folder.add_argument("--resume", type=Path, metavar="DIR", help="continue an interrupted run")
    add_selection(run)
    add_no_report(run)
