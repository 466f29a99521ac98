"""Arguments of `doctor`, `check`, `init` and `record`, the commands without a matrix file."""

import argparse
from pathlib import Path

from harness.cli.arguments import declare
from harness.cli.arguments.values import count


def add_first_steps(commands: declare.Commands) -> None:
    """Declare `doctor`, `check`, `init` and `record`."""
    _add_doctor(commands)
    _add_check(commands)
    _add_init(commands)
    _add_record(commands)


def _add_doctor(commands: declare.Commands) -> None:
    doctor = declare.command(
        commands, "doctor", "show which providers work here, why others do not, what to do", "doctor.doctor"
    )
    declare.path(doctor, "matrix", "MATRIX", "matrix file: start and try its targets as well", nargs="?")
    _plugins(doctor)
    declare.json(doctor, f"{declare.ONE_ARRAY}, with versions and devices")


def _plugins(command: argparse.ArgumentParser) -> None:
    declare.repeated(
        command,
        "--plugin",
        "PACKAGE-OR-PATH",
        "a plugin EP besides the installed ones: its package or library; may be repeated",
        dest="plugins",
    )


def _add_check(commands: declare.Commands) -> None:
    check = declare.command(
        commands,
        "check",
        "test a provider, or a folder of models, without a matrix file",
        "check.check",
        {
            0: "nothing failed",
            1: "something failed",
            2: "an argument is wrong",
            3: "the provider cannot be used, cells are missing, or none was judged",
        },
    )
    declare.value(
        check,
        "what",
        "PROVIDER-or-FOLDER",
        "exact name, such as QNNExecutionProvider; or a folder of models, in which those that generate "
        "text do so",
    )
    declare.value(
        check,
        "provider",
        "PROVIDER",
        "after a folder: exact name of a provider; default: all that work here",
        nargs="?",
        default="",
    )
    declare.provider_settings(check)
    declare.env(check)
    declare.place(
        check, "test {}; PROVIDER may then be a name such as webgpu", ", with SwiftShader of Chromium"
    )
    declare.repeated(
        check,
        "--suite",
        "S",
        "test with this suite alone; `ep-harness list --suites` names all; may be repeated",
        dest="suites",
    )
    how_much = check.add_mutually_exclusive_group()
    for extent, what in (
        ("quick", "ONNX's operator tests alone"),
        ("thorough", "besides the usual tests, fuzz until 15 minutes are over"),
    ):
        how_much.add_argument(
            f"--{extent}", action="store_const", const=extent, default="", dest="extent", help=what
        )
    declare.models(check)
    declare.path(check, "--out", "DIR", "run folder; default: runs/check-<provider>-<time>")
    declare.baselines(check)
    declare.no_report(check)
    declare.native_stack(check)


def _add_init(commands: declare.Commands) -> None:
    init = declare.command(
        commands, "init", "write a matrix file for the models and providers here", "init.init"
    )
    _plugins(init)
    declare.path(init, "--out", "FILE", "default: matrix.toml", default=Path("matrix.toml"))


def _add_record(commands: declare.Commands) -> None:
    record = declare.command(
        commands,
        "record",
        "save what an application feeds its models, as their test data",
        "record.record",
        {2: "an argument is wrong; any other code is the application's"},
    )
    declare.value(record, "command", "COMMAND", "the application and its arguments, after --", nargs="+")
    declare.value(
        record, "--calls", "N", "different calls to save for each model; default: 3", type=count, default=3
    )
    declare.path(record, "--out", "DIR", "folder for the data; default: beside each model")
    declare.value(
        record,
        "--max-mib",
        "MIB",
        "data to save for each model, at most; default: 256",
        type=count,
        default=256,
    )
