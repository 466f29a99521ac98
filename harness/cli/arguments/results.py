"""Arguments of commands about finished runs: `report`, `diff`, `gate`, `judge`, `query` and `history`."""

import argparse
from pathlib import Path

from harness.cli.arguments.command import (
    ONE_OBJECT,
    RUN,
    Commands,
    add_command,
    add_flag,
    add_json,
    add_path,
    add_value,
)

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
        add_path(command, "old", "OLD", RUN)
        add_path(command, "new", "NEW", "the run to compare with it; same form")
    how = diff.add_mutually_exclusive_group()
    how.add_argument(
        "--format",
        dest="style",
        choices=("text", "markdown", "github"),
        default="text",
        help="default: text",
    )
    add_json(how, ONE_OBJECT)
    add_path(gate, "--policy", "FILE", "TOML; default: nothing may get worse")
    how = gate.add_mutually_exclusive_group()
    add_flag(how, "--github", "print annotations, as on GitHub's runners by default")
    add_json(how, ONE_OBJECT)

    judge = add_command(commands, "judge", "judge a finished run again, with other tolerances", "judge.judge")
    add_path(judge, "run", "RUN", "run folder; it is not changed")
    add_value(
        judge,
        "--policy",
        "FILE",
        "file of [[tolerance]] entries, or a shipped one: calibrated, polygraphy",
        required=True,
    )
    add_path(judge, "--out", "DIR", "write the judged run into a new folder")


def _add_report(commands: Commands) -> None:
    report = add_command(
        commands, "report", "write a report of finished runs: HTML, Markdown, CSV, ...", "results.report"
    )
    add_path(report, "runs", "RUN", RUN, nargs="+")
    add_path(report, "--out", "DIR", "folder of the report", required=True)
    add_value(
        report,
        "--format",
        "F,F",
        "html (default), markdown, csv, json, junit, badge; separate several with commas",
        dest="formats",
        default="html",
    )
    add_path(report, "--templates", "DIR", "HTML templates that replace shipped ones")
    add_path(report, "--baseline", "RUN", "show changes since this run (HTML)")
    add_path(report, "--history", "FILE", "show since when faults are there (HTML)")
    add_flag(
        report,
        "--over-time",
        "RUN is a folder of successive runs: the newest in full, and the trends of all; default: if "
        "there are more than 16 runs of one matrix in it",
    )
    _add_store(report)


def add_query(commands: Commands) -> None:
    """Declare `query`."""
    query = add_command(
        commands, "query", "answer an SQL query about the results of many runs", "query.query"
    )
    add_path(query, "runs", "RUNS", RUNS)
    add_value(
        query, "sql", "SQL", "one SELECT, in the SQL of DuckDB; views: records, runs, targets, environments"
    )
    query.add_argument(
        "--format",
        dest="style",
        choices=("table", "csv", "json", "parquet"),
        default="table",
        help="default: table",
    )
    add_path(query, "--out", "FILE", "write a file instead of printing")
    _add_store(query)


def _add_store(command: argparse.ArgumentParser) -> None:
    add_path(command, "--store", "DIR", "folder that keeps what was read of the runs; default: in the cache")


def add_history(commands: Commands) -> None:
    """Declare the commands of `history`."""
    add = add_command(commands, "add", "add runs; runs that are already there stay", "history.add")
    add_path(add, "runs", "RUN", RUN, nargs="+")

    show = add_command(
        commands, "show", "show trends, errors near their limit, and failing cells", "history.show"
    )
    add_path(show, "runs", "RUNS", f"{RUNS}; default: the database of --db", nargs="?")
    which = show.add_mutually_exclusive_group()
    add_value(which, "--target", "GLOB", "only these targets")
    add_value(which, "--cell", "ID", "every result of one cell")
    how = show.add_mutually_exclusive_group()
    add_path(how, "--out", "DIR", "write a page with charts into this folder")
    add_json(how, ONE_OBJECT)
    _add_store(show)
    for command in (add, show):
        add_path(
            command,
            "--db",
            "FILE",
            "default: history.sqlite",
            dest="database",
            default=Path("history.sqlite"),
        )
