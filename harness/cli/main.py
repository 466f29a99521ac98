"""Entry point: arguments in, exit code out; every user's error in one or two lines."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.core.errors import HarnessError
from harness.engine.tally import EXIT_INTERRUPTED, EXIT_USAGE

if TYPE_CHECKING:
    from harness.cli.selection import Selection

_MATRIX = "matrix file (TOML); see docs/reference/matrix.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments without the program's name; those of the process by default.

    Returns:
        0 as expected, 1 unexpected verdicts, 2 usage, 3 a required target was unavailable or the run is
        incomplete, 130 interrupted.
    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except HarnessError as error:
        print(f"ep-harness: {error}", file=sys.stderr)  # noqa: T201 - what a command is for
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output (head, less) has gone.
        sys.stderr.close()
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ep-harness",
        description="Does this model, on this execution provider, give the right answer, and did the "
        "provider really compute it?",
    )
    parser.add_argument("--version", action="version", version=f"ep-harness {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a matrix: live progress, records, report")
    run.set_defaults(command=_run)
    run.add_argument("matrix", type=Path, help=_MATRIX)
    place = run.add_mutually_exclusive_group()
    place.add_argument("--out", type=Path, metavar="DIR", help="run folder; default: runs/<matrix>-<time>")
    place.add_argument("--resume", type=Path, metavar="DIR", help="go on with a run that was broken off")
    _add_selection(run)
    run.add_argument("--no-report", action="store_true", help="do not render the HTML report")

    listing = commands.add_parser("list", help="show the plan of a matrix without running it")
    listing.set_defaults(command=_list)
    listing.add_argument("matrix", type=Path, nargs="?", help=_MATRIX)
    listing.add_argument("--suites", action="store_true", help="name the built-in suites instead")
    listing.add_argument("--json", action="store_true", help="one JSON array")
    listing.add_argument("--count", action="store_true", help="only how many cells each target has")
    _add_selection(listing)

    report = commands.add_parser("report", help="render the HTML report of finished runs")
    report.set_defaults(command=_report)
    report.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run folder")
    report.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the report")
    return parser


def _add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", metavar="GLOB", help="only these targets")
    command.add_argument("--model", metavar="GLOB", help="only these models: suite/model, or the model alone")
    command.add_argument("--shard", metavar="I/N", help="only the I-th of N shares, for N machines")
    command.add_argument(
        "--durations",
        type=Path,
        metavar="RUN",
        help="with --shard: an earlier run, to make shares equally long",
    )


def _selection(arguments: argparse.Namespace) -> "Selection":
    from harness.cli.selection import Selection

    return Selection(
        target=arguments.target,
        model=arguments.model,
        shard=arguments.shard,
        durations=arguments.durations,
    )


# Each command's module is imported when it is called: `--help` needs neither numpy nor onnx.


def _run(arguments: argparse.Namespace) -> int:
    from harness.cli.run import run

    return run(
        arguments.matrix,
        out=arguments.out,
        resume=arguments.resume,
        selection=_selection(arguments),
        with_report=not arguments.no_report,
    )


def _list(arguments: argparse.Namespace) -> int:
    from harness.cli.listing import list_plan, list_suites

    if arguments.suites:
        return list_suites(as_json=arguments.json)
    return list_plan(
        arguments.matrix,
        selection=_selection(arguments),
        as_json=arguments.json,
        count=arguments.count,
    )


def _report(arguments: argparse.Namespace) -> int:
    from harness.report import render

    print(render(arguments.runs, arguments.out))  # noqa: T201
    return 0
