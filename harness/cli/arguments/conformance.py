"""Arguments of `conform` and `verify`, the commands about submissions."""

import argparse
from pathlib import Path

from harness.cli.arguments.command import (
    ONE_ARRAY,
    Commands,
    add_command,
    add_json,
    add_provider_settings,
)
from harness.cli.arguments.values import seed, share


def add_conform(commands: Commands) -> None:
    """Declare `conform`."""
    conform = add_command(
        commands,
        "conform",
        "run a conformance profile, and make a submission of the result",
        "conform.conform",
        {
            0: "conformant",
            1: "partial, or not conformant",
            2: "an argument is wrong",
            3: "no complete run, or a submission that would be refused",
        },
    )
    conform.add_argument(
        "--profile", required=True, metavar="NAME@N", help="such as cnn@1; `ep-harness profiles list`"
    )
    add_target(conform, required=True)
    conform.add_argument(
        "--claim",
        action="append",
        default=[],
        dest="claims",
        metavar="FEATURE",
        help="extended feature that the product has, such as float16; may be repeated",
    )
    conform.add_argument("--vendor", default="", metavar="V", help="who answers for the submission")
    conform.add_argument("--product", default="", metavar="P", help="default: the provider's name")
    conform.add_argument("--contact", default="", metavar="C", help="address or URL for questions")
    conform.add_argument(
        "--waivers", type=Path, metavar="FILE", help="TOML: your words about cases that do not pass"
    )
    signature = conform.add_mutually_exclusive_group()
    signature.add_argument("--sign", type=Path, dest="key", metavar="KEY", help="sign with a key of OpenSSH")
    signature.add_argument(
        "--sigstore", action="store_true", dest="by_sigstore", help="sign by sigstore; needs a network"
    )
    conform.add_argument(
        "--out", type=Path, metavar="DIR", help="default: runs/conform-<profile>-<target>-<time>"
    )


def add_target(command: argparse.ArgumentParser, *, required: bool) -> None:
    """Declare the arguments that name one target."""
    command.add_argument(
        "--target",
        required=required,
        metavar="PROVIDER",
        help="exact name, such as QNNExecutionProvider; with --matrix a target's name",
    )
    command.add_argument("--matrix", type=Path, metavar="FILE", help="matrix file that has the target")
    add_provider_settings(command)
    place = command.add_mutually_exclusive_group()
    for name, what in (("browser", "onnxruntime-web in a browser"), ("node", "onnxruntime-node in Node.js")):
        place.add_argument(f"--{name}", action="store_const", const=name, dest="place", help=what)
    command.add_argument(
        "--software-gpu", action="store_true", help="with --browser: compute WebGPU on the processor"
    )


def add_verify(commands: Commands) -> None:
    """Declare `verify`."""
    verify = add_command(
        commands,
        "verify",
        "check submissions of a profile, without a network",
        "verify.verify",
        {
            0: "every submission is verified",
            1: "a submission is refused or marked",
            2: "an argument is wrong",
        },
    )
    verify.add_argument(
        "submissions",
        type=Path,
        nargs="+",
        metavar="SUBMISSION",
        help="folder or zip of a submission, or a folder of submissions; several are compared for copies",
    )
    verify.add_argument(
        "--signers", type=Path, metavar="FILE", help="allowed signers, as ssh-keygen reads them"
    )
    verify.add_argument(
        "--markdown", type=Path, metavar="FILE", help="also write a comment for a pull request"
    )
    verify.add_argument(
        "--rerun",
        type=share,
        dest="share",
        metavar="P%",
        help="also run so many of the cases, drawn at random, on --target, and compare",
    )
    verify.add_argument("--seed", type=seed, metavar="N", help="draws the cases of --rerun; default: any")
    add_target(verify, required=False)
    add_json(verify, ONE_ARRAY)
