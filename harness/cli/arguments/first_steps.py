"""Arguments of `doctor`, `check` and `init`, the commands without a matrix file."""

from pathlib import Path

from harness.cli.arguments.command import (
    MODELS,
    ONE_ARRAY,
    Commands,
    add_command,
    add_json,
    add_list,
    add_no_report,
    add_path,
    add_place,
    add_provider_settings,
    add_value,
)


def add_first_steps(commands: Commands) -> None:
    """Declare `doctor`, `check` and `init`."""
    _add_doctor(commands)
    _add_check(commands)
    _add_init(commands)


def _add_doctor(commands: Commands) -> None:
    doctor = add_command(
        commands, "doctor", "show which providers work here, why others do not, what to do", "doctor.doctor"
    )
    add_path(doctor, "matrix", "MATRIX", "matrix file whose targets to try as well", nargs="?")
    add_json(doctor, f"{ONE_ARRAY}, with versions and devices")


def _add_check(commands: Commands) -> None:
    check = add_command(
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
    add_value(
        check,
        "what",
        "PROVIDER-or-FOLDER",
        "exact name, such as QNNExecutionProvider; or a folder of models, in which those that generate "
        "text do so",
    )
    add_value(
        check,
        "provider",
        "PROVIDER",
        "after a folder: exact name of a provider; default: all that work here",
        nargs="?",
        default="",
    )
    add_provider_settings(check)
    add_place(check, "test {}; PROVIDER may then be a name such as webgpu", ", with SwiftShader of Chromium")
    add_list(
        check,
        "--suite",
        "S",
        "default: onnx-node, and none beside a folder; `ep-harness list --suites` names all",
        dest="suites",
    )
    add_value(check, "--model", "GLOB", MODELS)
    add_path(check, "--out", "DIR", "run folder; default: runs/check-<provider>-<time>")
    add_no_report(check)


def _add_init(commands: Commands) -> None:
    init = add_command(commands, "init", "write a matrix file for the providers that work here", "init.init")
    add_path(init, "--out", "FILE", "default: matrix.toml", default=Path("matrix.toml"))
