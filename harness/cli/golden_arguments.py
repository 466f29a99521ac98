"""The commands about goldens, record, verify and prune: their arguments."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.commands import add_age, add_command

if TYPE_CHECKING:
    from harness.cli.commands import Commands


def add_golden_commands(parser: argparse.ArgumentParser) -> None:
    """Declare them. Their module is imported when one is called: `--help` needs no numpy."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_record(commands)
    _add_verify(commands)
    _add_prune(commands)


def _add_record(commands: "Commands") -> None:
    record = add_command(
        commands,
        "record",
        "compute and keep the goldens of a matrix's models",
        after="Exit code 0: done. 2: an argument or the matrix is wrong. 3: a model could not be read, or "
        "there is no onnxruntime to compute it.",
    )
    record.set_defaults(command=_record)
    record.add_argument("matrix", type=Path, metavar="MATRIX", help="matrix file (TOML)")
    record.add_argument("--model", metavar="GLOB", help="only these models: suite/model, or the model alone")
    record.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write models, inputs and outputs into a new folder as well, in ONNX's own layout",
    )
    record.add_argument("--json", action="store_true", help="one JSON object")


def _add_verify(commands: "Commands") -> None:
    verify = add_command(
        commands,
        "verify",
        "compute goldens anew, and say which outputs moved",
        after="Exit code 0: nothing moved. 1: an output did, or a model is computed no longer or only now, "
        "or what was recorded has been altered. 2: an argument or the matrix is wrong. 3: a model could not "
        "be read, or there is nothing to compute it with.",
    )
    verify.set_defaults(command=_verify)
    verify.add_argument(
        "what",
        type=Path,
        nargs="?",
        metavar="MATRIX-or-DIR",
        help="matrix file, for what the cache keeps of its models; or a folder that `record --out` wrote; "
        "default: the goldens that come with this package",
    )
    verify.add_argument("--model", metavar="GLOB", help="only these models: suite/model, or the model alone")
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
    verify.add_argument("--json", action="store_true", help="one JSON object")


def _add_prune(commands: "Commands") -> None:
    prune = add_command(
        commands, "prune", "remove goldens and models made from others that nothing has used for 30 days"
    )
    prune.set_defaults(command=_prune)
    add_age(prune)
    prune.add_argument("--json", action="store_true", help="one JSON object")


def _record(arguments: argparse.Namespace) -> int:
    from harness.cli.golden import record_goldens

    return record_goldens(arguments.matrix, model=arguments.model, out=arguments.out, as_json=arguments.json)


def _verify(arguments: argparse.Namespace) -> int:
    from harness.cli.golden import Where, verify_goldens
    from harness.data_files import data_root

    where = Where(packages=arguments.packages, python_version=arguments.python, target=arguments.target)
    what = arguments.what or data_root() / "golden"
    return verify_goldens(what, where, model=arguments.model, as_json=arguments.json)


def _prune(arguments: argparse.Namespace) -> int:
    from harness.cli.golden import prune

    return prune(older_than_days=arguments.older_than, as_json=arguments.json)
