"""Arguments of `list`, `ops` and `run`."""

from harness.cli.arguments import declare
from harness.cli.arguments.values import duration_s


def add_runs(commands: declare.Commands) -> None:
    """Declare `list`, `ops` and `run`."""
    listing = declare.command(
        commands, "list", "show the plan of a matrix, or the built-in suites", "listing.listing"
    )
    declare.path(listing, "matrix", "MATRIX", declare.MATRIX, nargs="?")
    declare.flag(listing, "--suites", "show the built-in suites instead")
    declare.json(listing, declare.ONE_ARRAY)
    declare.flag(listing, "--count", "show only the number of cells of each target")
    declare.selection(listing)

    ops = declare.command(commands, "ops", "show what the harness knows about an operator", "ops.ops")
    declare.value(
        ops,
        "name",
        "NAME",
        "operator, such as Gelu or com.microsoft.Gelu; default: all, without meanings and sources",
        nargs="?",
        default="",
    )
    declare.json(ops, declare.ONE_ARRAY)

    run = declare.command(
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
    declare.path(run, "matrix", "MATRIX", declare.MATRIX)
    run.add_argument(
        "--triage",
        action="store_const",
        const=600.0,
        dest="triage_budget_s",
        help="after the last cell, explain failing ones for 10 minutes at most",
    )
    declare.value(
        run,
        "--triage-budget",
        "TIME",
        "the same with another limit, such as 30m",
        type=duration_s,
        dest="triage_budget_s",
    )
    folder = run.add_mutually_exclusive_group()
    declare.path(folder, "--out", "DIR", "run folder; default: runs/<matrix>-<time>")
    declare.path(folder, "--resume", "DIR", "continue an interrupted run")
    declare.selection(run)
    declare.baselines(run)
    declare.no_report(run)
    declare.native_stack(run)
