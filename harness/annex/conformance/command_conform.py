"""`ep-harness conform`: run a profile on one target, and make a submission of the result."""

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import msgspec

from harness.annex.conformance.command_conform_matrix import (
    ConformOptions,
    wanted_here,
    wanted_of_matrix,
    wanted_of_request,
    write_matrix,
)
from harness.annex.conformance.command_conform_text import conform_summary, verified
from harness.annex.conformance.level import case_label
from harness.annex.conformance.profiles.profile import Profile, load_profile
from harness.annex.conformance.profiles.profile_suite import open_profile
from harness.annex.conformance.submission import Level
from harness.annex.conformance.submit import (
    Claim,
    ProfileRun,
    Submission,
    signed_by_sigstore,
    signed_by_ssh,
    submission_of,
    write_submission,
)
from harness.annex.conformance.verify.finding import FindingWeight
from harness.annex.conformance.waivers import load_waivers
from harness.cli.output import print_lines
from harness.cli.run import run
from harness.cli.targets import ProviderRequest
from harness.core.files.reading import MOST_SETTINGS, read_regular
from harness.core.records.record import decode_record
from harness.core.records.run_info import RunInfo
from harness.core.text.errors import (
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_UNEXPECTED,
    UsageError,
    valid_names,
)
from harness.run.run_folder import RECORDS, default_folder


class Asked(ProviderRequest, frozen=True, kw_only=True):
    """The arguments of the command, except its folder; with a matrix ``provider`` is a target's name.

    Attributes:
        matrix: A matrix file; None for a provider.
        claims: Features that the product claims.
        vendor: As in ``Claim``, like the next ones.
        key: A private key of OpenSSH to sign with.
    """

    profile: str
    matrix: Path | None = None
    claims: Sequence[str] = ()
    vendor: str = ""
    product: str = ""
    contact: str = ""
    waivers: Path | None = None
    key: Path | None = None
    by_sigstore: bool = False


def conform(asked: Asked, *, out: Path | None) -> int:
    """Run a profile, write a submission beside the run, and tell its level.

    An interrupted run also gives a submission, which lists its open cases.

    Returns:
        0 conformant, 1 partial or not, 3 the target cannot be used, the run is incomplete, or the submission
        would be refused.
    """
    profile = load_profile(asked.profile)
    open_profile(profile.label)  # refuses an altered archive before anything is written
    claim = claim_of(asked, profile)
    wanted = wanted_of(asked)
    home = out or default_folder(PurePath(f"conform-{profile.label}-{wanted.name}.toml"))
    folder = home / f"{profile.label}-{wanted.name}"
    if folder.exists():
        raise UsageError.at(folder, "there is a submission already", "choose another folder: --out")
    code, submission = run_profile(claim, wanted, home / "run")
    try:
        submission = _signed(submission, asked)
    finally:
        write_submission(submission, folder)  # a result is kept even if it cannot be signed
    outcome = verified(folder)
    print_lines(["", *conform_summary(submission, folder, outcome, dt.datetime.now(dt.UTC).date())])
    if code in {EXIT_INCOMPLETE, EXIT_INTERRUPTED} or outcome.startswith(FindingWeight.REFUSED):
        return EXIT_INCOMPLETE
    return EXIT_OK if submission.result.level is Level.CONFORMANT else EXIT_UNEXPECTED


def run_profile(claim: Claim, wanted: ConformOptions, folder: Path) -> tuple[int, Submission]:
    """Run the profile of a claim on a target, in a new folder; return the run's exit code and the result."""
    file = write_matrix(claim.profile, wanted, folder)
    told: list[str] = []
    code = run(file, out=folder, resume=None, with_report=False, told=told)
    return code, submission_of(claim, finished_run(wanted, folder, told), dt.datetime.now(dt.UTC))


def claim_of(asked: Asked, profile: Profile) -> Claim:
    """Return what is claimed of a profile.

    Raises:
        UsageError: A feature is none of the profile, there is no such key, or the waivers are wrong.
    """
    features = [feature.name for feature in profile.features]
    for name in asked.claims:
        if name not in features:
            what = f"{profile.label} has no feature {name!r}"
            raise UsageError.at("--claim", what, valid_names(name, features))
    if asked.key is not None and not asked.key.is_file():
        raise UsageError.at(f"--sign {asked.key}", "there is no such key", "ssh-keygen -t ed25519 makes one")
    waivers = content = None
    if asked.waivers is not None:
        waivers = load_waivers(asked.waivers, tuple(case_label(case) for case in profile.cases))
        content = read_regular(asked.waivers, MOST_SETTINGS).decode("utf-8-sig").encode()
    return Claim(
        profile=profile,
        features=frozenset(asked.claims),
        vendor=asked.vendor,
        product=asked.product,
        contact=asked.contact,
        waivers=waivers or (),
        waivers_content=content or b"",
        command=("ep-harness", "conform", *_words(asked)),
    )


def _words(asked: Asked) -> Iterator[str]:
    """Yield the arguments that decide the result, in a fixed order."""
    yield from ("--profile", asked.profile, "--target", asked.provider)
    for flag, one in {"--matrix": asked.matrix, "--plugin": asked.plugin}.items():
        if one is not None:
            yield from (flag, str(one))
    for flag, many in {"--option": asked.options, "--device": asked.device}.items():
        for each in many:
            yield from (flag, each)
    if asked.place:
        yield f"--{asked.place}"
    if asked.software_gpu:
        yield "--software-gpu"
    for each in sorted(set(asked.claims)):
        yield from ("--claim", each)


def wanted_of(asked: Asked) -> ConformOptions:
    """Return the requested target."""
    has_settings = any((asked.plugin, asked.options, asked.device, asked.place, asked.software_gpu))
    if asked.matrix is not None:
        if has_settings:
            what = "the target of a matrix file has its own plugin, options, device and runtime"
            raise UsageError.at("--matrix", what, "change the file, or leave it out")
        return wanted_of_matrix(asked.provider, asked.matrix)
    return wanted_of_request(asked) if has_settings else wanted_here(asked)


def finished_run(wanted: ConformOptions, folder: Path, told: Sequence[str]) -> ProfileRun:
    """Return a run with its records, whether or not it came to its end."""
    info = msgspec.json.decode((folder / "run.json").read_bytes(), type=RunInfo)
    lines = (folder / RECORDS).read_bytes().splitlines()
    return ProfileRun(
        target=wanted.name,
        provider=wanted.provider,
        info=info,
        records=tuple(decode_record(line) for line in lines),
        told=told,
    )


def _signed(submission: Submission, asked: Asked) -> Submission:
    if asked.key is not None:
        return signed_by_ssh(submission, asked.key)
    return signed_by_sigstore(submission) if asked.by_sigstore else submission
