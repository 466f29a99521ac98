"""The commands `conform`, `submit`, `verify` and `profiles`."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.argument_values import seed as seed_of
from harness.cli.argument_values import share as share_of
from harness.cli.command_type import Command, CommandGroup
from harness.cli.options import Argument, GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_ARRAY, ONE_OBJECT, PlaceOptions, ProviderSettings, as_json

if TYPE_CHECKING:
    from harness.annex.conformance.command_conform import Asked

_CODES = {0: "always, unless an argument is wrong", 2: "an argument is wrong, or a profile is altered"}
_LABEL = "label of a profile, such as cnn@1"
_PROVIDER = "exact name, such as QNNExecutionProvider; with --matrix a target's name"


class _TargetSettings:
    """`--matrix` and the settings of a provider, which together with `--target` name one target."""

    def __init__(self, options: Options) -> None:
        self._matrix = options.path("--matrix", "FILE", "matrix file that has the target")
        self._settings = ProviderSettings(options)
        self._place = PlaceOptions(options, "{}")

    def asked(self, given: GivenArguments, profile: str, provider: str) -> "Asked":
        """Return the target that a profile is to run on."""
        from harness.annex.conformance.command_conform import Asked

        return Asked(
            profile=profile,
            provider=provider,
            matrix=given[self._matrix],
            plugin=given[self._settings.plugin],
            options=given[self._settings.options],
            device=given[self._settings.device],
            place=given[self._place.place],
            software_gpu=given[self._place.software_gpu],
        )


def _declare_conform(options: Options) -> RunCommand:
    profile = options.required("--profile", "NAME@N", "such as cnn@1; `ep-harness profiles list`", str)
    provider = options.required("--target", "PROVIDER", _PROVIDER, str)
    target = _TargetSettings(options)
    text = "extended feature that the product has, such as float16; may be repeated"
    claims = options.repeated("--claim", "FEATURE", text, str)
    vendor = options.value("--vendor", "V", "who answers for the submission", str, "")
    product = options.value("--product", "P", "default: the provider's name", str, "")
    contact = options.value("--contact", "C", "address or URL for questions", str, "")
    waivers = options.path("--waivers", "FILE", "TOML: your words about cases that do not pass")
    signature = options.either()
    key = signature.path("--sign", "KEY", "sign with a key of OpenSSH")
    by_sigstore = signature.flag("--sigstore", "sign by sigstore; needs a network")
    out = options.path("--out", "DIR", "default: runs/conform-<profile>-<target>-<time>")

    def run(given: GivenArguments) -> int:
        import msgspec

        from harness.annex.conformance.command_conform import conform

        asked = msgspec.structs.replace(
            target.asked(given, given[profile], given[provider]),
            claims=given[claims],
            vendor=given[vendor],
            product=given[product],
            contact=given[contact],
            waivers=given[waivers],
            key=given[key],
            by_sigstore=given[by_sigstore],
        )
        return conform(asked, out=given[out])

    return run


def _declare_submit(options: Options) -> RunCommand:
    text = "which cases run; `ep-harness profiles list`"
    profile = options.value("--profile", "NAME@N", text, str, "quick@1")
    text = "such as QNNExecutionProvider; default: the only accelerator that works here"
    provider = options.value("--target", "PROVIDER", text, str, "")
    target = _TargetSettings(options)
    out = options.path("--out", "FILE", "a new file; default: submission-<profile>-<target>-<time>.zip")

    def run(given: GivenArguments) -> int:
        from harness.annex.conformance.command_submit import submit

        return submit(target.asked(given, given[profile], given[provider]), out=given[out])

    return run


def _declare_verify(options: Options) -> RunCommand:
    text = "folder or zip of a submission, or a folder of submissions; several are compared for copies"
    submissions = options.many("SUBMISSION", text, Path)
    signers = options.path("--signers", "FILE", "allowed signers, as ssh-keygen reads them")
    markdown = options.path("--markdown", "FILE", "also write a comment for a pull request")
    text = "also run so many of the cases, drawn at random, on --target, and compare"
    share = options.value("--rerun", "P%", text, share_of)
    seed = options.value("--seed", "N", "draws the cases of --rerun; default: any", seed_of)
    provider: Argument[str | None] = options.value("--target", "PROVIDER", _PROVIDER, str)
    target = _TargetSettings(options)
    json = as_json(options, ONE_ARRAY)

    def run(given: GivenArguments) -> int:
        from harness.annex.conformance.command_verify import verify

        named = given[provider]
        return verify(
            given[submissions],
            given[signers],
            given[markdown],
            as_json=given[json],
            share=given[share],
            seed=given[seed],
            target=None if named is None else target.asked(given, "", named),
        )

    return run


def _declare_list(options: Options) -> RunCommand:
    json = as_json(options, ONE_ARRAY)

    def run(given: GivenArguments) -> int:
        from harness.annex.conformance.command_profiles import list_profiles

        return list_profiles(as_json=given[json])

    return run


def _declare_show(options: Options) -> RunCommand:
    label = options.one("PROFILE", _LABEL, str)
    json = as_json(options, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.annex.conformance.command_profiles import show_profile

        return show_profile(given[label], as_json=given[json])

    return run


def _declare_export(options: Options) -> RunCommand:
    label = options.one("PROFILE", _LABEL, str)
    out = options.required("--out", "FILE", "a new file", Path)

    def run(given: GivenArguments) -> int:
        from harness.annex.conformance.command_profiles import export

        return export(given[label], out=given[out])

    return run


CONFORM = Command(
    name="conform",
    summary="run a conformance profile, and make a submission of the result",
    aim="publish",
    declare=_declare_conform,
    exit_codes={
        0: "conformant",
        1: "partial, or not conformant",
        2: "an argument is wrong",
        3: "no complete run, or a submission that would be refused",
    },
)
SUBMIT = Command(
    name="submit",
    summary="test this machine's device, and write its result as one file",
    aim="publish",
    declare=_declare_submit,
    exit_codes={
        0: "the file is written, whatever the result",
        2: "an argument is wrong, or no accelerator works here, or several do",
        3: "no file: no complete run, or a submission that would be refused",
    },
)
VERIFY = Command(
    name="verify",
    summary="check submissions of a profile, without a network",
    aim="publish",
    declare=_declare_verify,
    exit_codes={
        0: "every submission is verified",
        1: "a submission is refused or marked",
        2: "an argument is wrong",
    },
)
PROFILES = CommandGroup(
    name="profiles",
    summary="list, show or export the profiles of conformance",
    aim="publish",
    commands=(
        Command(name="list", summary="list the profiles", declare=_declare_list, exit_codes=_CODES),
        Command(
            name="show", summary="show a profile with its cases", declare=_declare_show, exit_codes=_CODES
        ),
        Command(
            name="export",
            summary="check the archive of a profile, and copy it",
            declare=_declare_export,
            exit_codes=_CODES,
        ),
    ),
)
