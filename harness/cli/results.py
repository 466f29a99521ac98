"""The commands about finished runs, report, diff, gate and history: their arguments."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.commands import add_command

if TYPE_CHECKING:
    from harness.cli.commands import Commands

_RUN = "run folder, or a folder of run folders, which count as one"


def add_result_commands(commands: "Commands") -> None:
    """Declare them. Each one's module is imported when it is called: `--help` needs no numpy."""
    report = add_command(commands, "report", "files of finished runs, to be read and published")
    report.set_defaults(command=_report)
    report.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=_RUN)
    report.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the report")
    report.add_argument(
        "--format",
        default="html",
        metavar="F,F",
        help="html (default), markdown, csv, json, junit, badge; several with commas between them",
    )
    report.add_argument(
        "--templates", type=Path, metavar="DIR", help="HTML templates that replace shipped ones"
    )
    report.add_argument("--baseline", type=Path, metavar="RUN", help="tell the changes since this run (HTML)")

    diff = add_command(commands, "diff", "two runs, cell by cell: regressed, fixed, changed, new, gone")
    diff.set_defaults(command=_diff)
    _add_sides(diff)
    how = diff.add_mutually_exclusive_group()
    how.add_argument("--format", choices=("text", "markdown", "github"), default="text", help="default: text")
    how.add_argument("--json", action="store_true", help="one JSON object")

    gate = add_command(
        commands,
        "gate",
        "two runs, for CI: exit code 1 where a policy does not allow it",
        after="Exit code 0: the run may pass. 1: a limit is exceeded. 2: an argument or the policy is wrong.",
    )
    gate.set_defaults(command=_gate)
    _add_sides(gate)
    gate.add_argument("--policy", type=Path, metavar="FILE", help="TOML; default: nothing may be worse")
    gate_how = gate.add_mutually_exclusive_group()
    gate_how.add_argument("--github", action="store_true", help="annotations, as on GitHub's runners anyway")
    gate_how.add_argument("--json", action="store_true", help="one JSON object")

    judge = add_command(commands, "judge", "a finished run under other tolerances, without a device")
    judge.set_defaults(command=_judge)
    judge.add_argument("run", type=Path, metavar="RUN", help="run folder; it stays as it is")
    judge.add_argument(
        "--policy",
        required=True,
        metavar="FILE",
        help="[[tolerance]] entries, or a shipped one: calibrated, polygraphy",
    )
    judge.add_argument("--out", type=Path, metavar="DIR", help="write the run as it would have been")

    _add_history(add_command(commands, "history", "runs over time: trends, and since when a cell fails"))


def _add_sides(command: argparse.ArgumentParser) -> None:
    command.add_argument("old", type=Path, metavar="OLD", help=_RUN)
    command.add_argument("new", type=Path, metavar="NEW", help="the same of the run in question")


def _add_history(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    add = add_command(commands, "add", "add runs; what is there already stays as it is")
    add.set_defaults(command=_history_add)
    add.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=_RUN)

    show = add_command(commands, "show", "trends, errors near their limit, failing cells and since when")
    show.set_defaults(command=_history_show)
    which = show.add_mutually_exclusive_group()
    which.add_argument("--target", metavar="GLOB", help="only these targets")
    which.add_argument("--cell", metavar="ID", help="every result of one cell")
    how = show.add_mutually_exclusive_group()
    how.add_argument("--out", type=Path, metavar="DIR", help="write a page with charts into this folder")
    how.add_argument("--json", action="store_true", help="one JSON object")
    for command in (add, show):
        command.add_argument(
            "--db", type=Path, default=Path("history.sqlite"), metavar="FILE", help="default: history.sqlite"
        )


def _report(arguments: argparse.Namespace) -> int:
    from harness.cli.report import report

    return report(
        arguments.runs,
        out=arguments.out,
        formats=arguments.format,
        templates=arguments.templates,
        baseline=arguments.baseline,
    )


def _diff(arguments: argparse.Namespace) -> int:
    from harness.cli.diff import diff

    return diff(arguments.old, arguments.new, style=arguments.format, as_json=arguments.json)


def _gate(arguments: argparse.Namespace) -> int:
    from harness.cli.gate import gate

    return gate(
        arguments.old,
        arguments.new,
        policy=arguments.policy,
        github=arguments.github,
        as_json=arguments.json,
    )


def _judge(arguments: argparse.Namespace) -> int:
    from harness.cli.judge import judge

    return judge(arguments.run, arguments.policy, arguments.out)


def _history_add(arguments: argparse.Namespace) -> int:
    from harness.cli.history import add

    return add(arguments.runs, arguments.db)


def _history_show(arguments: argparse.Namespace) -> int:
    from harness.cli.history import show

    return show(
        arguments.db,
        target=arguments.target,
        cell=arguments.cell,
        out=arguments.out,
        as_json=arguments.json,
    )
