"""Arguments of `conform`, `verify`, `publish` and `profiles`, the commands about profiles and submissions."""

import argparse
import datetime as dt

from harness.cli.arguments.command import (
    ONE_ARRAY,
    ONE_OBJECT,
    Commands,
    add_command,
    add_flag,
    add_json,
    add_list,
    add_path,
    add_place,
    add_provider_settings,
    add_value,
)
from harness.cli.arguments.values import seed, share

_CODES = {
    0: "always, unless an argument is wrong",
    2: "an argument is wrong, or a profile is altered",
}
_LABEL = "label of a profile, such as cnn@1"


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
    add_value(conform, "--profile", "NAME@N", "such as cnn@1; `ep-harness profiles list`", required=True)
    add_target(conform, required=True)
    add_list(
        conform,
        "--claim",
        "FEATURE",
        "extended feature that the product has, such as float16; may be repeated",
        dest="claims",
    )
    add_value(conform, "--vendor", "V", "who answers for the submission", default="")
    add_value(conform, "--product", "P", "default: the provider's name", default="")
    add_value(conform, "--contact", "C", "address or URL for questions", default="")
    add_path(conform, "--waivers", "FILE", "TOML: your words about cases that do not pass")
    signature = conform.add_mutually_exclusive_group()
    add_path(signature, "--sign", "KEY", "sign with a key of OpenSSH", dest="key")
    add_flag(signature, "--sigstore", "sign by sigstore; needs a network", dest="by_sigstore")
    add_path(conform, "--out", "DIR", "default: runs/conform-<profile>-<target>-<time>")


def add_target(command: argparse.ArgumentParser, *, required: bool) -> None:
    """Declare the arguments that name one target."""
    add_value(
        command,
        "--target",
        "PROVIDER",
        "exact name, such as QNNExecutionProvider; with --matrix a target's name",
        required=required,
        dest="provider",
    )
    add_path(command, "--matrix", "FILE", "matrix file that has the target")
    add_provider_settings(command)
    add_place(command, "{}")


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
    add_path(
        verify,
        "submissions",
        "SUBMISSION",
        "folder or zip of a submission, or a folder of submissions; several are compared for copies",
        nargs="+",
    )
    add_path(verify, "--signers", "FILE", "allowed signers, as ssh-keygen reads them")
    add_path(verify, "--markdown", "FILE", "also write a comment for a pull request")
    add_value(
        verify,
        "--rerun",
        "P%",
        "also run so many of the cases, drawn at random, on --target, and compare",
        type=share,
        dest="share",
    )
    add_value(verify, "--seed", "N", "draws the cases of --rerun; default: any", type=seed)
    add_target(verify, required=False)
    add_json(verify, ONE_ARRAY)


def add_publication(commands: Commands) -> None:
    """Declare `publish`."""
    publish = add_command(
        commands,
        "publish",
        "write a static site of conformance submissions",
        "publish.publish",
        {
            0: "every submission is published",
            1: "some submission is refused; the site lists it with the reason",
            2: "an argument is wrong, or there is no submission",
        },
    )
    add_path(publish, "submissions", "SUBMISSIONS", "folder of submissions: folders or zips")
    add_path(publish, "--out", "DIR", "folder of the site", required=True)
    add_value(publish, "--title", "TEXT", "headline of the site", default="Execution provider conformance")
    add_value(
        publish,
        "--day",
        "YYYY-MM-DD",
        "day on which waivers count or not; default: today",
        type=dt.date.fromisoformat,
    )
    add_path(publish, "--signers", "FILE", "allowed signers, as ssh-keygen reads them; see `verify`")


def add_profiles(commands: Commands) -> None:
    """Declare the commands of `profiles`."""
    listed = add_command(commands, "list", "list the profiles", "profiles.list_profiles", _CODES)
    add_json(listed, ONE_ARRAY)
    shown = add_command(commands, "show", "show a profile with its cases", "profiles.show", _CODES)
    add_value(shown, "label", "PROFILE", _LABEL)
    add_json(shown, ONE_OBJECT)
    export = add_command(
        commands, "export", "check the archive of a profile, and copy it", "profiles.export", _CODES
    )
    add_value(export, "label", "PROFILE", _LABEL)
    add_path(export, "--out", "FILE", "a new file", required=True)
