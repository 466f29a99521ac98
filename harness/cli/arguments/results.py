"""Arguments of commands about finished runs: `report`, `diff`, `gate`, `judge`, `query` and `history`."""

import argparse
from pathlib import Path

from harness.cli.arguments import declare

RUNS = "folder of successive runs, each a run folder or a folder of its shards"


def add_results(commands: declare.Commands) -> None:
    """Declare `report`, `operators`, `diff`, `gate` and `judge`."""
    _add_report(commands)
    _add_operators(commands)
    diff = declare.command(commands, "diff", "compare two runs cell by cell", "results.diff")
    gate = declare.command(
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
        declare.path(command, "old", "OLD", declare.RUN)
        declare.path(command, "new", "NEW", "the run to compare with it; same form")
        declare.path(
            command,
            "--earlier",
            "RUN",
            "runs before OLD, same form: they show how far latencies differ from night to night",
            nargs="+",
            default=(),
        )
    how = diff.add_mutually_exclusive_group()
    how.add_argument(
        "--format", dest="style", choices=("text", "markdown", "github"), default="text", help="default: text"
    )
    declare.json(how, declare.ONE_OBJECT)
    declare.path(gate, "--policy", "FILE", "TOML; default: nothing may get worse")
    declare.value(
        gate,
        "--min-agreement",
        "SHARE",
        "least share of a task's answers that agree, such as 0.98, in every cell that has some",
        type=float,
    )
    how = gate.add_mutually_exclusive_group()
    declare.flag(how, "--github", "print annotations, as on GitHub's runners by default")
    declare.json(how, declare.ONE_OBJECT)

    judge = declare.command(
        commands, "judge", "judge a finished run again, with other tolerances", "judge.judge"
    )
    declare.path(judge, "run", "RUN", "run folder; it is not changed")
    declare.value(
        judge,
        "--policy",
        "FILE",
        "file of [[tolerance]] entries, or a shipped one: default, polygraphy",
        required=True,
    )
    declare.path(judge, "--out", "DIR", "write the judged run into a new folder")


def _add_report(commands: declare.Commands) -> None:
    report = declare.command(
        commands, "report", "write a report of finished runs: HTML, Markdown, CSV, ...", "results.report"
    )
    declare.path(report, "runs", "RUN", declare.RUN, nargs="+")
    declare.path(report, "--out", "DIR", "folder of the report", required=True)
    declare.value(
        report,
        "--format",
        "F,F",
        "html (default), markdown, csv, json, junit, badge; separate several with commas",
        dest="formats",
        default="html",
    )
    declare.path(report, "--templates", "DIR", "HTML templates that replace shipped ones")
    declare.path(report, "--baseline", "RUN", "show changes since this run (HTML)")
    declare.path(report, "--history", "FILE", "show the first run with each fault (HTML)")
    declare.flag(
        report,
        "--over-time",
        "RUN is a folder of successive runs: the newest in full, and the trends of all; default: if "
        "there are more than 16 runs of one matrix in it",
    )
    _add_store(report)


def _add_operators(commands: declare.Commands) -> None:
    operators = declare.command(
        commands,
        "operators",
        "compare a list of operators with a run of a provider",
        "operators.operators",
        {
            0: "each entry that was tried is right",
            1: "an entry is wrong, or its operator was left to the CPU provider",
            2: "an argument is wrong",
            3: "no entry was tried",
        },
    )
    declare.path(operators, "run", "RUN", declare.RUN)
    declare.path(
        operators, "listed", "LIST", "TOML with [[operators]], or CSV: operator, opset, types, ranks, notes"
    )
    declare.value(operators, "--target", "NAME", "default: the only target besides the CPU provider's")
    declare.json(operators, declare.ONE_OBJECT)


def add_baseline(commands: declare.Commands) -> None:
    """Declare the commands of `baseline`."""
    write = declare.command(
        commands,
        "write",
        "write the failures of a run and its kind of machine to a file",
        "baseline.write",
        {
            0: "it is written",
            2: "an argument or the run is wrong",
            3: "it is written, but the run is incomplete",
        },
    )
    declare.path(write, "run", "RUN", declare.RUN)
    declare.path(
        write, "--out", "FILE-OR-FOLDER", "in a folder the file gets a name by its class; default: baselines"
    )
    declare.targets(write)


def add_query(commands: declare.Commands) -> None:
    """Declare `query`."""
    query = declare.command(
        commands, "query", "answer an SQL query about the results of many runs", "query.query"
    )
    declare.path(query, "runs", "RUNS", RUNS)
    declare.value(
        query, "sql", "SQL", "one SELECT, in the SQL of DuckDB; views: records, runs, targets, environments"
    )
    query.add_argument(
        "--format",
        dest="style",
        choices=("table", "csv", "json", "parquet"),
        default="table",
        help="default: table",
    )
    declare.path(query, "--out", "FILE", "write a file instead of printing")
    _add_store(query)


def _add_store(command: argparse.ArgumentParser) -> None:
    declare.path(
        command, "--store", "DIR", "folder that keeps the data read from the runs; default: in the cache"
    )


def add_history(commands: declare.Commands) -> None:
    """Declare the commands of `history`."""
    add = declare.command(
        commands,
        "add",
        "add runs; runs that are already there stay",
        "history.add",
        {
            0: "the runs are there",
            1: "the same, but cells count as not run: parts of a run disagree",
            2: "an argument or a run is wrong",
        },
    )
    declare.path(add, "runs", "RUN", declare.RUN, nargs="+")

    show = declare.command(
        commands, "show", "show trends, errors near their limit, and failing cells", "history.show"
    )
    declare.path(show, "runs", "RUNS", f"{RUNS}; default: the database of --db", nargs="?")
    which = show.add_mutually_exclusive_group()
    declare.value(which, "--target", "GLOB", "only these targets")
    declare.value(which, "--cell", "ID", "every result of one cell")
    how = show.add_mutually_exclusive_group()
    declare.path(how, "--out", "DIR", "write a page with charts into this folder")
    declare.json(how, declare.ONE_OBJECT)
    _add_store(show)
    for command in (add, show):
        declare.path(
            command,
            "--db",
            "FILE",
            "default: history.sqlite",
            dest="database",
            default=Path("history.sqlite"),
        )
