"""Arguments of `list` and `run`."""

from harness.cli.arguments.command import (
    MATRIX,
    ONE_ARRAY,
    Commands,
    add_command,
    add_flag,
    add_json,
    add_no_report,
    add_path,
    add_selection,
    add_value,
)
from harness.cli.arguments.values import duration_s


def add_runs(commands: Commands) -> None:
    """Declare `list` and `run`."""
    listing = add_command(
        commands, "list", "show the plan of a matrix, or the built-in suites", "listing.listing"
    )
    add_path(listing, "matrix", "MATRIX", MATRIX, nargs="?")
    add_flag(listing, "--suites", "show the built-in suites instead")
    add_json(listing, ONE_ARRAY)
    add_flag(listing, "--count", "show only the number of cells of each target")
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
    add_path(run, "matrix", "MATRIX", MATRIX)
    run.add_argument(
        "--triage",
        action="store_const",
        const=600.0,
        dest="triage_budget_s",
        help="after the last cell, explain failing ones for 10 minutes at most",
    )
    add_value(
        run,
        "--triage-budget",
        "TIME",
        "the same with another limit, such as 30m",
        type=duration_s,
        dest="triage_budget_s",
    )
    folder = run.add_mutually_exclusive_group()
    add_path(folder, "--out", "DIR", "run folder; default: runs/<matrix>-<time>")
    add_path(folder, "--resume", "DIR", "continue an interrupted run")
    add_selection(run)
    add_no_report(run)
