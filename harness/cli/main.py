"""Entry point: arguments in, exit code out; every user's error in one or two lines."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.cli.commands import add_age, add_command
from harness.cli.golden_arguments import add_golden_commands
from harness.cli.results import add_result_commands
from harness.core.errors import HarnessError
from harness.core.exit_code import EXIT_INTERRUPTED, EXIT_USAGE
from harness.core.text import visible

if TYPE_CHECKING:
    from harness.cli.check import Request
    from harness.cli.selection import Selection

_MATRIX = "matrix file (TOML); `ep-harness init` writes one"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments without the program's name; those of the process by default.

    Returns:
        0 as expected, 1 unexpected verdicts, 2 usage, 3 a required target was unavailable or the run is
        incomplete, 130 interrupted.
    """
    parser = _parser()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help(sys.stderr)  # the list of commands is what somebody wants who names none
        return EXIT_USAGE
    arguments = parser.parse_args(argv)
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
        description="Does this model, on this execution provider (EP), give the right answer, and did the "
        "provider really compute it?",
        epilog="Begin with `ep-harness doctor`; `ep-harness COMMAND --help` says more.",
    )
    parser.add_argument("--version", action="version", version=f"ep-harness {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    # In the order in which a newcomer meets them.
    doctor = add_command(commands, "doctor", "which providers can be used here, why not, what to do")
    doctor.set_defaults(command=_doctor)
    doctor.add_argument(
        "matrix", type=Path, nargs="?", metavar="MATRIX", help="matrix file whose targets are looked at, too"
    )
    doctor.add_argument("--json", action="store_true", help="one JSON array, with versions and devices")

    check = add_command(
        commands,
        "check",
        "one provider over the operator suite, without a matrix file",
        after="Exit code 0: nothing failed. 1: something did. 2: an argument is wrong. "
        "3: the provider cannot be used, or the run is incomplete.",
    )
    check.set_defaults(command=_check)
    check.add_argument("provider", metavar="PROVIDER", help="exact name, such as QNNExecutionProvider")
    _add_way_to_use(check)
    check.add_argument(
        "--suite", action="append", default=[], metavar="S", help="default: onnx-node; see list --suites"
    )
    check.add_argument("--model", metavar="GLOB", help="only these models: suite/model, or the model alone")
    check.add_argument("--out", type=Path, metavar="DIR", help="default: runs/check-<provider>-<time>")
    check.add_argument("--no-report", action="store_true", help="do not render the HTML report")

    init = add_command(commands, "init", "write a matrix for the providers that can be used here")
    init.set_defaults(command=_init)
    init.add_argument(
        "--out", type=Path, metavar="FILE", default=Path("matrix.toml"), help="default: matrix.toml"
    )

    listing = add_command(commands, "list", "show the plan of a matrix, or the suites, without running it")
    listing.set_defaults(command=_list)
    listing.add_argument("matrix", type=Path, nargs="?", metavar="MATRIX", help=_MATRIX)
    listing.add_argument("--suites", action="store_true", help="name the built-in suites instead")
    listing.add_argument("--json", action="store_true", help="one JSON array")
    listing.add_argument("--count", action="store_true", help="only how many cells each target has")
    _add_selection(listing)

    run = add_command(
        commands,
        "run",
        "run a matrix: live progress, records, report",
        after="Exit code 0: every verdict is as expected. 1: some are not. 2: an argument or the matrix is "
        "wrong. 3: a required target is unavailable, or the run is incomplete.",
    )
    run.set_defaults(command=_run)
    run.add_argument("matrix", type=Path, metavar="MATRIX", help=_MATRIX)
    place = run.add_mutually_exclusive_group()
    place.add_argument("--out", type=Path, metavar="DIR", help="run folder; default: runs/<matrix>-<time>")
    place.add_argument("--resume", type=Path, metavar="DIR", help="go on with a run that was broken off")
    _add_selection(run)
    run.add_argument("--no-report", action="store_true", help="do not render the HTML report")

    add_result_commands(commands)

    levels = add_command(commands, "levels", "what graph optimization makes of a model, level by level")
    levels.set_defaults(command=_levels)
    _add_model_and_targets(levels)
    levels.add_argument("--out", type=Path, metavar="DIR", help="write a page into this folder, too")
    levels.add_argument("--json", action="store_true", help="one JSON object in place of the tables")

    advise = add_command(
        commands,
        "advise",
        "the fastest configuration that passes, for one model",
        after="Exit code 0: something passes. 1: nothing does. 2: an argument is wrong.",
    )
    advise.set_defaults(command=_advise)
    _add_model_and_targets(advise)
    advise.add_argument("--budget", type=float, default=120.0, metavar="S", help="seconds; default: 120")
    advise.add_argument("--json", action="store_true", help="one JSON object, with every record")

    add_golden_commands(
        add_command(commands, "golden", "what the CPU provider computed: record, verify, prune")
    )
    _add_runtime(add_command(commands, "runtime", "environments that are built from package names"))
    return parser


def _add_runtime(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = add_command(commands, "list", "show what the cache holds")
    listing.set_defaults(command=_runtime_list)
    listing.add_argument("--json", action="store_true", help="one JSON array")

    build = add_command(commands, "build", "build ahead, such as for a machine that will be offline")
    build.set_defaults(command=_runtime_build)
    build.add_argument(
        "what",
        nargs="+",
        metavar="MATRIX-or-REQUIREMENT",
        help="matrix files (*.toml), for the runtimes of their targets; what else is named makes one runtime",
    )
    build.add_argument("--python", metavar="VERSION", help="Python for the named requirements, such as 3.11")

    prune = add_command(commands, "prune", "remove what has not been used for 30 days")
    prune.set_defaults(command=_runtime_prune)
    add_age(prune)


def _add_model_and_targets(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="an .onnx file, or suite/model: zoo/vit-small-op17")
    command.add_argument(
        "where",
        nargs="?",
        metavar="MATRIX-or-PROVIDER",
        help="a matrix file (*.toml), or a provider's exact name; default: whatever computes here",
    )
    _add_way_to_use(command)


def _add_way_to_use(command: argparse.ArgumentParser) -> None:
    command.add_argument("--plugin", metavar="PACKAGE-OR-PATH", help="plugin EP: its package or library")
    command.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="K=V",
        help="provider option, as often as needed: backend_type=htp",
    )
    command.add_argument(
        "--device", action="append", default=[], metavar="K=V", help="only a device that is so: type=NPU"
    )


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
    from harness.engine.prestarted import run_ahead

    run_ahead(arguments.matrix)  # before all that the next line imports

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

    return prune_runtimes(older_than_days=arguments.older_than)
