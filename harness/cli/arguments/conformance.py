"""Arguments of `conform`, `verify`, `publish` and `profiles`, the commands about profiles and submissions."""

import argparse
import datetime as dt

from harness.cli.arguments import declare
from harness.cli.arguments.values import seed, share

_CODES = {0: "always, unless an argument is wrong", 2: "an argument is wrong, or a profile is altered"}
_LABEL = "label of a profile, such as cnn@1"


def add_conform(commands: declare.Commands) -> None:
    """Declare `conform`."""
    conform = declare.command(
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
    declare.value(conform, "--profile", "NAME@N", "such as cnn@1; `ep-harness profiles list`", required=True)
    add_target(conform, required=True)
    declare.repeated(
        conform,
        "--claim",
        "FEATURE",
        "extended feature that the product has, such as float16; may be repeated",
        dest="claims",
    )
    declare.value(conform, "--vendor", "V", "party that answers for the submission", default="")
    declare.value(conform, "--product", "P", "default: the provider's name", default="")
    declare.value(conform, "--contact", "C", "address or URL for questions", default="")
    declare.path(conform, "--waivers", "FILE", "TOML: your explanation of cases that do not pass")
    signature = conform.add_mutually_exclusive_group()
    declare.path(signature, "--sign", "KEY", "sign with a key of OpenSSH", dest="key")
    declare.flag(signature, "--sigstore", "sign by sigstore; needs a network", dest="by_sigstore")
    declare.path(conform, "--out", "DIR", "default: runs/conform-<profile>-<target>-<time>")


def add_target(command: argparse.ArgumentParser, *, required: bool) -> None:
    """Declare the arguments that name one target."""
    declare.value(
        command,
        "--target",
        "PROVIDER",
        "exact name, such as QNNExecutionProvider; with --matrix a target's name",
        required=required,
        dest="provider",
    )
    declare.path(command, "--matrix", "FILE", "matrix file that has the target")
    declare.provider_settings(command)
    declare.place(command, "{}")


def add_verify(commands: declare.Commands) -> None:
    """Declare `verify`."""
    verify = declare.command(
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
    declare.path(
        verify,
        "submissions",
        "SUBMISSION",
        "folder or zip of a submission, or a folder of submissions; several are compared for copies",
        nargs="+",
    )
    declare.path(verify, "--signers", "FILE", "allowed signers, as ssh-keygen reads them")
    declare.path(verify, "--markdown", "FILE", "also write a comment for a pull request")
    declare.value(
        verify,
        "--rerun",
        "P%",
        "also run so many of the cases, drawn at random, on --target, and compare",
        type=share,
        dest="share",
    )
    declare.value(verify, "--seed", "N", "draws the cases of --rerun; default: any", type=seed)
    add_target(verify, required=False)
    declare.json(verify, declare.ONE_ARRAY)


def add_publication(commands: declare.Commands) -> None:
    """Declare `publish`."""
    publish = declare.command(
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
    declare.path(publish, "submissions", "SUBMISSIONS", "folder of submissions: folders or zips")
    declare.path(publish, "--out", "DIR", "folder of the site", required=True)
    declare.value(
        publish, "--title", "TEXT", "headline of the site", default="Execution provider conformance"
    )
    declare.value(
        publish,
        "--day",
        "YYYY-MM-DD",
        "day on which waivers count or not; default: today",
        type=dt.date.fromisoformat,
    )
    declare.path(publish, "--signers", "FILE", "allowed signers, as ssh-keygen reads them; see `verify`")


def add_profiles(commands: declare.Commands) -> None:
    """Declare the commands of `profiles`."""
    listed = declare.command(commands, "list", "list the profiles", "profiles.list_profiles", _CODES)
    declare.json(listed, declare.ONE_ARRAY)
    shown = declare.command(commands, "show", "show a profile with its cases", "profiles.show", _CODES)
    declare.value(shown, "label", "PROFILE", _LABEL)
    declare.json(shown, declare.ONE_OBJECT)
    export = declare.command(
        commands, "export", "check the archive of a profile, and copy it", "profiles.export", _CODES
    )
    declare.value(export, "label", "PROFILE", _LABEL)
    declare.path(export, "--out", "FILE", "a new file", required=True)
