"""Every command with its arguments, as `ep-harness --help` shows them."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.cli.command import add_age, add_command, add_group, add_json

if TYPE_CHECKING:
    from harness.cli.command import Commands

_MATRIX = "matrix file (TOML); `ep-harness init` writes one"
_MODELS = "only these models: suite/model, or the model alone"
_RUN = "run folder, or a folder of run folders, which count as one"
_ONE_OBJECT = "print one JSON object"
_ONE_ARRAY = "print one JSON array"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line.

    Of the parsed arguments, ``call`` is ``module.function`` in this folder. That function takes all other
    arguments by their names and returns the exit code.
    """
    root = argparse.ArgumentParser(
        prog="ep-harness",
        description="Does this model, on this execution provider (EP), give the right answer, and did the "
        "provider really compute it?",
        epilog="Begin with `ep-harness doctor`. Details: `ep-harness COMMAND --help`.",
    )
    root.add_argument("--version", action="version", version=f"ep-harness {__version__}")
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    # In the order in which a newcomer meets them.
    _add_first_steps(commands)
    _add_plans_and_runs(commands)
    _add_results(commands)
    _add_triage(commands)
    _add_history(add_group(commands, "history", "keep runs in a database; show trends and failing cells"))
    _add_studies(commands)
    _add_golden(add_group(commands, "golden", "record, verify or prune goldens: the CPU provider's results"))
    _add_runtime(add_group(commands, "runtime", "list, build or prune environments made of packages"))
    return root


def _add_first_steps(commands: "Commands") -> None:
    doctor = add_command(
        commands, "doctor", "show which providers work here, why others do not, what to do", "doctor.doctor"
    )
    doctor.add_argument(
        "matrix", type=Path, nargs="?", metavar="MATRIX", help="matrix file whose targets to try as well"
    )
    add_json(doctor, f"{_ONE_ARRAY}, with versions and devices")

    check = add_command(
        commands,
        "check",
        "test one provider with the operator suite, without a matrix file",
        "check.check",
        {
            0: "nothing failed",
            1: "something failed",
            2: "an argument is wrong",
            3: "the provider cannot be used, or the run is incomplete",
        },
    )
    check.add_argument("provider", metavar="PROVIDER", help="exact name, such as QNNExecutionProvider")
    _add_provider_settings(check)
    check.add_argument(
        "--suite",
        action="append",
        default=[],
        dest="suites",
        metavar="S",
        help="default: onnx-node; `ep-harness list --suites` names all",
    )
    check.add_argument("--model", metavar="GLOB", help=_MODELS)
    check.add_argument(
        "--out", type=Path, metavar="DIR", help="run folder; default: runs/check-<provider>-<time>"
    )
    _add_no_report(check)

    init = add_command(commands, "init", "write a matrix file for the providers that work here", "init.init")
    init.add_argument(
        "--out", type=Path, metavar="FILE", default=Path("matrix.toml"), help="default: matrix.toml"
    )


def _add_plans_and_runs(commands: "Commands") -> None:
    listing = add_command(
        commands, "list", "show the plan of a matrix, or the built-in suites", "listing.listing"
    )
    listing.add_argument("matrix", type=Path, nargs="?", metavar="MATRIX", help=_MATRIX)
    listing.add_argument("--suites", action="store_true", help="show the built-in suites instead")
    add_json(listing, _ONE_ARRAY)
    listing.add_argument("--count", action="store_true", help="show only the number of cells of each target")
    _add_selection(listing)

    run = add_command(
        commands,
        "run",
        "run a matrix: live progress, records, report",
        "run.run",
        {
            0: "every verdict is as expected",
            1: "some verdicts are not as expected",
            2: "an argument or the matrix is wrong",
            3: "a required target is unavailable, or the run is incomplete",
        },
    )
    run.add_argument("matrix", type=Path, metavar="MATRIX", help=_MATRIX)
    run.add_argument(
        "--triage",
        action="store_const",
        const=600.0,
        dest="triage_budget_s",
        help="after the last cell, explain failing ones for 10 minutes at most",
    )
    run.add_argument(
        "--triage-budget",
        type=_duration,
        dest="triage_budget_s",
        metavar="TIME",
        help="the same with another limit, such as 30m",
    )
    folder = run.add_mutually_exclusive_group()
    folder.add_argument("--out", type=Path, metavar="DIR", help="run folder; default: runs/<matrix>-<time>")
    folder.add_argument("--resume", type=Path, metavar="DIR", help="continue an interrupted run")
    _add_selection(run)
    _add_no_report(run)


def _add_results(commands: "Commands") -> None:
    report = add_command(
        commands, "report", "write a report of finished runs: HTML, Markdown, CSV, ...", "results.report"
    )
    report.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=_RUN)
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
        command.add_argument("old", type=Path, metavar="OLD", help=_RUN)
        command.add_argument("new", type=Path, metavar="NEW", help="the run to compare with it; same form")
    how = diff.add_mutually_exclusive_group()
    how.add_argument(
        "--format",
        dest="style",
        choices=("text", "markdown", "github"),
        default="text",
        help="default: text",
    )
    add_json(how, _ONE_OBJECT)
    gate.add_argument("--policy", type=Path, metavar="FILE", help="TOML; default: nothing may get worse")
    how = gate.add_mutually_exclusive_group()
    how.add_argument(
        "--github", action="store_true", help="print annotations, as on GitHub's runners by default"
    )
    add_json(how, _ONE_OBJECT)

    judge = add_command(commands, "judge", "judge a finished run again, with other tolerances", "judge.judge")
    judge.add_argument("run", type=Path, metavar="RUN", help="run folder; it is not changed")
    judge.add_argument(
        "--policy",
        required=True,
        metavar="FILE",
        help="file of [[tolerance]] entries, or a shipped one: calibrated, polygraphy",
    )
    judge.add_argument("--out", type=Path, metavar="DIR", help="write the judged run into a new folder")

    triage = add_command(
        commands,
        "triage",
        "explain failing cells: guilty node, minimal model, sentence",
        "triage.triage",
        {
            0: "each failure is explained",
            2: "an argument is wrong",
            3: "a failure is not explained: it did not appear again, or time ran out",
        },
    )
    triage.add_argument("run", type=Path, metavar="RUN", help="run folder")
    triage.add_argument(
        "cells", nargs="*", metavar="CELL", help="ids of cells; default: one of each group of failures"
    )
    triage.add_argument("--jobs", type=_count, metavar="N", help="targets at once; default: processors")
    triage.add_argument(
        "--budget", type=_duration, dest="budget_s", metavar="TIME", help="such as 10m; default: no limit"
    )
    triage.add_argument("--out", type=Path, metavar="DIR", help="default: the folder triage of the run")
    triage.add_argument("--resume", action="store_true", help="continue an interrupted triage")
    triage.add_argument(
        "--keep-weights",
        action="store_true",
        help="keep initializers; default: random numbers of their range",
    )


def _add_triage(commands: "Commands") -> None:
    replay = add_command(
        commands,
        "replay",
        "judge the fault of a bundle here, without running its script",
        "replay.replay_bundle",
        {
            0: "the fault is gone",
            1: "the fault is there",
            2: "the bundle or an argument is wrong",
            3: "it cannot be judged here, or it fails in another way",
        },
    )
    replay.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder or .zip")
    where = replay.add_mutually_exclusive_group()
    where.add_argument(
        "--target", metavar="MATRIX:NAME", help="a target of a matrix file; default: the bundle's own target"
    )
    where.add_argument("--provider", metavar="PROVIDER", help="exact name, such as QNNExecutionProvider")
    _add_provider_settings(replay)
    add_json(replay, _ONE_OBJECT)


def _add_history(commands: "Commands") -> None:
    add = add_command(commands, "add", "add runs; runs that are already there stay", "history.add")
    add.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=_RUN)

    show = add_command(
        commands, "show", "show trends, errors near their limit, and failing cells", "history.show"
    )
    which = show.add_mutually_exclusive_group()
    which.add_argument("--target", metavar="GLOB", help="only these targets")
    which.add_argument("--cell", metavar="ID", help="every result of one cell")
    how = show.add_mutually_exclusive_group()
    how.add_argument("--out", type=Path, metavar="DIR", help="write a page with charts into this folder")
    add_json(how, _ONE_OBJECT)
    for command in (add, show):
        command.add_argument(
            "--db",
            type=Path,
            dest="database",
            default=Path("history.sqlite"),
            metavar="FILE",
            help="default: history.sqlite",
        )


def _add_studies(commands: "Commands") -> None:
    levels = add_command(
        commands, "levels", "show what each graph optimization level does to a model", "levels.levels"
    )
    advise = add_command(
        commands,
        "advise",
        "find the fastest configuration that passes, for one model",
        "advise.advise_on",
        {0: "a configuration passes", 1: "none passes", 2: "an argument is wrong"},
    )
    for command in (levels, advise):
        command.add_argument(
            "model", metavar="MODEL", help=".onnx file, or suite/model such as zoo/vit-small-op17"
        )
        command.add_argument(
            "provider",
            nargs="?",
            default="",
            metavar="MATRIX-or-PROVIDER",
            help="matrix file (*.toml), or exact name of a provider; default: all that work here",
        )
        _add_provider_settings(command)
    levels.add_argument("--out", type=Path, metavar="DIR", help="also write a page into this folder")
    add_json(levels, f"{_ONE_OBJECT} in place of the tables")
    advise.add_argument(
        "--budget", type=float, dest="budget_s", default=120.0, metavar="S", help="seconds; default: 120"
    )
    add_json(advise, f"{_ONE_OBJECT}, with every record")


def _add_golden(commands: "Commands") -> None:
    record = add_command(
        commands,
        "record",
        "compute and keep the goldens of a matrix's models",
        "golden.record",
        {
            0: "all goldens are recorded",
            2: "an argument or the matrix is wrong",
            3: "a model could not be read, or there is no onnxruntime to compute it",
        },
    )
    record.add_argument("matrix", type=Path, metavar="MATRIX", help=_MATRIX)
    record.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="also write models, inputs and outputs into a new folder, in ONNX's own layout",
    )
    verify = add_command(
        commands,
        "verify",
        "compute goldens again, and show which outputs changed",
        "golden.verify",
        {
            0: "no output changed",
            1: "an output or a refusal changed, or a recorded file was altered",
            2: "an argument or the matrix is wrong",
            3: "a model could not be read, or there is no onnxruntime to compute it",
        },
    )
    verify.add_argument(
        "what",
        type=Path,
        nargs="?",
        metavar="MATRIX-or-DIR",
        help="matrix file: verify what the cache holds of its models; folder: verify what `record --out` "
        "wrote; default: the goldens shipped with this package",
    )
    verify.add_argument(
        "--packages",
        nargs="+",
        default=[],
        metavar="REQUIREMENT",
        help="compute with this onnxruntime, such as onnxruntime==1.24.1; default: the harness's own",
    )
    verify.add_argument("--python", metavar="VERSION", help="Python for the packages, such as 3.11")
    verify.add_argument(
        "--target", metavar="NAME", help="compute in the runtime of this target of the matrix"
    )
    for command in (record, verify):
        command.add_argument("--model", metavar="GLOB", help=_MODELS)
        add_json(command, _ONE_OBJECT)
    prune = add_command(
        commands, "prune", "remove goldens and derived models unused for 30 days", "golden.prune"
    )
    add_age(prune)
    add_json(prune, _ONE_OBJECT)


def _add_runtime(commands: "Commands") -> None:
    listing = add_command(commands, "list", "show the environments in the cache", "runtime.list_runtimes")
    add_json(listing, _ONE_ARRAY)

    build = add_command(
        commands,
        "build",
        "build environments ahead, such as for an offline machine",
        "runtime.build_runtimes",
    )
    build.add_argument(
        "what",
        nargs="+",
        metavar="MATRIX-or-REQUIREMENT",
        help="matrix files (*.toml): build the runtimes of their targets; requirements: build one runtime "
        "of all of them",
    )
    build.add_argument("--python", metavar="VERSION", help="Python for the requirements, such as 3.11")

    prune = add_command(commands, "prune", "remove environments unused for 30 days", "runtime.prune_runtimes")
    add_age(prune)


def _add_provider_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument("--plugin", metavar="PACKAGE-OR-PATH", help="plugin EP: its package or library")
    command.add_argument(
        "--option",
        action="append",
        default=[],
        dest="options",
        metavar="K=V",
        help="provider option, such as backend_type=htp; may be repeated",
    )
    command.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="K=V",
        help="only devices with this property, such as type=NPU; may be repeated",
    )


def _add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", metavar="GLOB", help="only these targets")
    command.add_argument("--model", metavar="GLOB", help=_MODELS)
    command.add_argument("--shard", metavar="I/N", help="only the I-th of N shares, for N machines")
    command.add_argument(
        "--durations",
        type=Path,
        metavar="RUN",
        help="with --shard: an earlier run, to make shares equally long",
    )


def _add_no_report(command: argparse.ArgumentParser) -> None:
    command.add_argument("--no-report", action="store_false", dest="with_report", help="write no HTML report")


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def _duration(text: str) -> float:
    number, unit = text[:-1], text[-1:]
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    try:
        seconds = float(number) * units[unit]
    except (KeyError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; expected 90s, 10m or 1.5h")
    return seconds
