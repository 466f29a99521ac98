"""Arguments of commands about finished runs: `report`, `diff`, `gate`, `judge`, `query` and `history`."""

import argparse
from pathlib import Path

from harness.cli.arguments.command import ONE_OBJECT, RUN, Commands, add_command, add_json

RUNS = "folder of successive runs, each a run folder or a folder of its shards"


def add_results(commands: Commands) -> None:
    """Declare `report`, `diff`, `gate` and `judge`."""
    _add_report(commands)
    diff = add_command(commands, "diff", "compare two runs cell by cell", "results.diff")
    gate = add_command(
        commands,
        "gate",
        "compare two runs for CI: exit code 1 if a policy is violated",
        "results.gate",
        {
            0: "the new run may pass",
            1: "a limit of the policy is exceeded",
            2: "an argument or the policy is wrong",
        },
    )
    for command in (diff, gate):
        command.add_argument("old", type=Path, metavar="OLD", help=RUN)
        command.add_argument("new", type=Path, metavar="NEW", help="the run to compare with it; same form")
    how = diff.add_mutually_exclusive_group()
    how.add_argument(
        "--format",
        dest="style",
        choices=("text", "markdown", "github"),
        default="text",
        help="default: text",
    )
    add_json(how, ONE_OBJECT)
    gate.add_argument("--policy", type=Path, metavar="FILE", help="TOML; default: nothing may get worse")
    how = gate.add_mutually_exclusive_group()
    how.add_argument(
        "--github", action="store_true", help="print annotations, as on GitHub's runners by default"
    )
    add_json(how, ONE_OBJECT)

    judge = add_command(commands, "judge", "judge a finished run again, with other tolerances", "judge.judge")
    judge.add_argument("run", type=Path, metavar="RUN", help="run folder; it is not changed")
    judge.add_argument(
        "--policy",
        required=True,
        metavar="FILE",
        help="file of [[tolerance]] entries, or a shipped one: calibrated, polygraphy",
    )
    judge.add_argument("--out", type=Path, metavar="DIR", help="write the judged run into a new folder")


def _add_report(commands: Commands) -> None:
    report = add_command(
        commands, "report", "write a report of finished runs: HTML, Markdown, CSV, ...", "results.report"
    )
    report.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=RUN)
    report.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the report")
    report.add_argument(
        "--format",
        dest="formats",
        default="html",
        metavar="F,F",
        help="html (default), markdown, csv, json, junit, badge; separate several with commas",
    )
    report.add_argument(
        "--templates", type=Path, metavar="DIR", help="HTML templates that replace shipped ones"
    )
    report.add_argument("--baseline", type=Path, metavar="RUN", help="show changes since this run (HTML)")
    report.add_argument(
        "--history", type=Path, metavar="FILE", help="show since when faults are there (HTML)"
    )
    report.add_argument(
        "--over-time",
        action="store_true",
        help="RUN is a folder of successive runs: the newest in full, and the trends of all; default: if "
        "there are more than 16 runs of one matrix in it",
    )
    _add_store(report)


def add_query(commands: Commands) -> None:
    """Declare `query`."""
    query = add_command(
        commands, "query", "answer an SQL query about the results of many runs", "query.query"
    )
    query.add_argument("runs", type=Path, metavar="RUNS", help=RUNS)
    query.add_argument(
        "sql",
        metavar="SQL",
        help="one SELECT, in the SQL of DuckDB; views: records, runs, targets, environments",
    )
    query.add_argument(
        "--format",
        dest="style",
        choices=("table", "csv", "json", "parquet"),
        default="table",
        help="default: table",
    )
    query.add_argument("--out", type=Path, metavar="FILE", help="write a file instead of printing")
    _add_store(query)


def _add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--store",
        type=Path,
        metavar="DIR",
        help="folder that keeps what was read of the runs; default: in the cache",
    )


def add_history(commands: Commands) -> None:
    """Declare the commands of `history`."""
    add = add_command(commands, "add", "add runs; runs that are already there stay", "history.add")
    add.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=RUN)

    show = add_command(
        commands, "show", "show trends, errors near their limit, and failing cells", "history.show"
    )
    show.add_argument(
        "runs", type=Path, nargs="?", metavar="RUNS", help=f"{RUNS}; default: the database of --db"
    )
    which = show.add_mutually_exclusive_group()
    which.add_argument("--target", metavar="GLOB", help="only these targets")
    which.add_argument("--cell", metavar="ID", help="every result of one cell")
    how = show.add_mutually_exclusive_group()
    how.add_argument("--out", type=Path, metavar="DIR", help="write a page with charts into this folder")
    add_json(how, ONE_OBJECT)
    _add_store(show)
    for command in (add, show):
        command.add_argument(
            "--db",
            type=Path,
            dest="database",
            default=Path("history.sqlite"),
            metavar="FILE",
            help="default: history.sqlite",
        )
