"""Arguments of commands about submissions: `verify`."""

from pathlib import Path

from harness.cli.arguments.command import ONE_ARRAY, Commands, add_command, add_json
from harness.cli.arguments.conform import add_target
from harness.cli.arguments.values import seed, share


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
