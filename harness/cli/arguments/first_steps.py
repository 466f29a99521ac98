"""Arguments of `doctor`, `check` and `init`, the commands without a matrix file."""

from pathlib import Path

from harness.cli.arguments.command import (
    MODELS,
    ONE_ARRAY,
    Commands,
    add_command,
    add_json,
    add_no_report,
    add_provider_settings,
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
    doctor.add_argument(
        "matrix", type=Path, nargs="?", metavar="MATRIX", help="matrix file whose targets to try as well"
    )
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
    check.add_argument(
        "what",
        metavar="PROVIDER-or-FOLDER",
        help="exact name, such as QNNExecutionProvider; or a folder of models, in which those that generate "
        "text do so",
    )
    check.add_argument(
        "provider",
        nargs="?",
        default="",
        metavar="PROVIDER",
        help="after a folder: exact name of a provider; default: all that work here",
    )
    add_provider_settings(check)
    place = check.add_mutually_exclusive_group()
    for name, what in (("browser", "onnxruntime-web in a browser"), ("node", "onnxruntime-node in Node.js")):
        place.add_argument(
            f"--{name}",
            action="store_const",
            const=name,
            dest="place",
            help=f"test {what}; PROVIDER may then be a name such as webgpu",
        )
    check.add_argument(
        "--software-gpu",
        action="store_true",
        help="with --browser: compute WebGPU on the processor, with SwiftShader of Chromium",
    )
    check.add_argument(
        "--suite",
        action="append",
        default=[],
        dest="suites",
        metavar="S",
        help="default: onnx-node, and none beside a folder; `ep-harness list --suites` names all",
    )
    check.add_argument("--model", metavar="GLOB", help=MODELS)
    check.add_argument(
        "--out", type=Path, metavar="DIR", help="run folder; default: runs/check-<provider>-<time>"
    )
    add_no_report(check)


def _add_init(commands: Commands) -> None:
    init = add_command(commands, "init", "write a matrix file for the providers that work here", "init.init")
    init.add_argument(
        "--out", type=Path, metavar="FILE", default=Path("matrix.toml"), help="default: matrix.toml"
    )
