"""Entry point: arguments in, exit code out; every user's error in one or two lines."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.cli.results import add_result_commands
from harness.core.errors import HarnessError
from harness.core.text import visible
from harness.engine.tally import EXIT_INTERRUPTED, EXIT_USAGE

if TYPE_CHECKING:
    from harness.cli.check import Request
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
        # Names from models and runs may stand in it.
        print(visible(f"ep-harness: {error}"), file=sys.stderr)  # noqa: T201 - what a command is for
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

    check = commands.add_parser("check", help="one provider over the operator suite, without a matrix file")
    check.set_defaults(command=_check)
    check.add_argument("provider", metavar="PROVIDER", help="exact name, such as QNNExecutionProvider")
    check.add_argument("--plugin", metavar="PACKAGE-OR-PATH", help="plugin EP: its package or library")
    check.add_argument("--option", action="append", default=[], metavar="K=V", help="provider option")
    check.add_argument("--device", action="append", default=[], metavar="K=V", help="only such a device")
    check.add_argument("--suite", action="append", default=[], metavar="S", help="default: onnx-node")
    check.add_argument("--model", metavar="GLOB", help="only these models: suite/model, or the model alone")
    check.add_argument("--out", type=Path, metavar="DIR", help="default: runs/check-<provider>-<time>")
    check.add_argument("--no-report", action="store_true", help="do not render the HTML report")

    levels = commands.add_parser("levels", help="what graph optimization makes of a model, level by level")
    levels.set_defaults(command=_levels)
    _add_model_and_targets(levels)
    levels.add_argument("--out", type=Path, metavar="DIR", help="write a page into this folder, too")
    levels.add_argument("--json", action="store_true", help="one JSON object in place of the tables")

    advise = commands.add_parser("advise", help="the fastest configuration that passes, for one model")
    advise.set_defaults(command=_advise)
    _add_model_and_targets(advise)
    advise.add_argument("--budget", type=float, default=120.0, metavar="S", help="seconds; default: 120")
    advise.add_argument("--json", action="store_true", help="one JSON object, with every record")

    listing = commands.add_parser("list", help="show the plan of a matrix without running it")
    listing.set_defaults(command=_list)
    listing.add_argument("matrix", type=Path, nargs="?", help=_MATRIX)
    listing.add_argument("--suites", action="store_true", help="name the built-in suites instead")
    listing.add_argument("--json", action="store_true", help="one JSON array")
    listing.add_argument("--count", action="store_true", help="only how many cells each target has")
    _add_selection(listing)

    doctor = commands.add_parser("doctor", help="which providers can be used here, why not, what to do")
    doctor.set_defaults(command=_doctor)
    doctor.add_argument("matrix", type=Path, nargs="?", help="matrix file whose targets are looked at, too")
    doctor.add_argument("--json", action="store_true", help="one JSON array, with versions and devices")

    init = commands.add_parser("init", help="write a matrix for the providers that can be used here")
    init.set_defaults(command=_init)
    init.add_argument(
        "--out", type=Path, metavar="FILE", default=Path("matrix.toml"), help="default: matrix.toml"
    )

    add_result_commands(commands)
    _add_runtime(commands.add_parser("runtime", help="environments that are built from package names"))
    return parser


def _add_runtime(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="show what the cache holds")
    listing.set_defaults(command=_runtime_list)
    listing.add_argument("--json", action="store_true", help="one JSON array")

    build = commands.add_parser("build", help="build ahead, such as for a machine that will be offline")
    build.set_defaults(command=_runtime_build)
    build.add_argument(
        "what",
        nargs="+",
        metavar="MATRIX-or-REQUIREMENT",
        help="matrix files (*.toml), for the runtimes of their targets; what else is named makes one runtime",
    )
    build.add_argument("--python", metavar="VERSION", help="Python for the named requirements, such as 3.11")

    prune = commands.add_parser("prune", help="remove what has not been used for 30 days")
    prune.set_defaults(command=_runtime_prune)
    which = prune.add_mutually_exclusive_group()
    which.add_argument("--older-than", type=float, default=30.0, metavar="DAYS", help="other than 30 days")
    which.add_argument("--all", action="store_true", help="remove every one")


def _add_model_and_targets(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="an .onnx file, or suite/model: zoo/vit-small-op17")
    command.add_argument(
        "where",
        nargs="?",
        metavar="MATRIX-or-PROVIDER",
        help="a matrix file (*.toml), or a provider's exact name; default: whatever computes here",
    )
    command.add_argument("--plugin", metavar="PACKAGE-OR-PATH", help="plugin EP: its package or library")
    command.add_argument("--option", action="append", default=[], metavar="K=V", help="provider option")
    command.add_argument("--device", action="append", default=[], metavar="K=V", help="only such a device")


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


def _check(arguments: argparse.Namespace) -> int:
    from harness.cli.check import Request, check

    request = Request(
        provider=arguments.provider,
        plugin=arguments.plugin,
        options=arguments.option,
        device=arguments.device,
        suites=arguments.suite,
    )
    return check(request, model=arguments.model, out=arguments.out, with_report=not arguments.no_report)


def _levels(arguments: argparse.Namespace) -> int:
    from harness.cli.levels import levels

    return levels(
        arguments.model,
        arguments.where,
        _way_to_use(arguments),
        out=arguments.out,
        as_json=arguments.json,
    )


def _advise(arguments: argparse.Namespace) -> int:
    from harness.cli.advise import advise_on

    return advise_on(
        arguments.model,
        arguments.where,
        _way_to_use(arguments),
        budget_s=arguments.budget,
        as_json=arguments.json,
    )


def _way_to_use(arguments: argparse.Namespace) -> "Request":
    from harness.cli.check import Request

    return Request(
        provider=arguments.where or "",
        plugin=arguments.plugin,
        options=arguments.option,
        device=arguments.device,
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


def _doctor(arguments: argparse.Namespace) -> int:
    from harness.cli.doctor import doctor

    return doctor(arguments.matrix, as_json=arguments.json)


def _init(arguments: argparse.Namespace) -> int:
    from harness.cli.init import init

    return init(arguments.out)


def _runtime_list(arguments: argparse.Namespace) -> int:
    from harness.cli.runtime import list_runtimes

    return list_runtimes(as_json=arguments.json)


def _runtime_build(arguments: argparse.Namespace) -> int:
    from harness.cli.runtime import build_runtimes

    return build_runtimes(arguments.what, python_version=arguments.python)


def _runtime_prune(arguments: argparse.Namespace) -> int:
    from harness.cli.runtime import prune_runtimes

    return prune_runtimes(older_than_days=0.0 if arguments.all else arguments.older_than)
