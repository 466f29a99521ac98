"""`ep-harness verify --rerun`: run some cases of a submission here, and compare."""

import contextlib
import secrets
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.annex.conformance.command_conform import Asked, finished_run, wanted_of
from harness.annex.conformance.command_conform_matrix import ConformOptions, write_matrix
from harness.annex.conformance.profiles.profile import Profile, load_profile, profiles_folder
from harness.annex.conformance.submission import STATEMENT
from harness.annex.conformance.submission_scrub import scrubbed
from harness.annex.conformance.submit import ProfileRun
from harness.annex.conformance.submitted_environment import submitted_environment_of
from harness.annex.conformance.verify.case_rerun import drawn_cases, other_fields, rerun_findings
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.conformance.verify.frozen_cases import frozen_cases
from harness.annex.conformance.verify.verification import Verification
from harness.cli.run import run


def rerun_submission(done: Verification, share: float, seed: int | None, target: Asked) -> Verification:
    """Run a share of a submission's cases on a target, and return the verification with what that shows.

    A refused submission is left as it is: nothing is run for it. Without a seed, the cases are drawn so that
    the submitter could not know them. The profile is the submission's, whatever ``target`` has.
    """
    if done.statement is None or done.outcome == "refused":
        return done
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    profile = load_profile(done.statement.profile.label)
    wanted = wanted_of(msgspec.structs.replace(target, profile=profile.label))
    if wanted.provider != done.statement.environment.provider:
        what = f"nothing was run: the target here has {wanted.provider}"
        return _with(done, [finding("rerun-elsewhere", STATEMENT, what)])
    drawn = msgspec.structs.replace(profile, cases=drawn_cases(profile, share, seed))
    with tempfile.TemporaryDirectory(prefix="ep-harness-rerun-") as folder:
        finished = _run(profile, drawn, wanted, Path(folder) / "run")
    fingerprint = scrubbed(dict(finished.info.targets.get(wanted.name, {})))
    here = submitted_environment_of(wanted.provider, fingerprint)
    frozen = frozen_cases(profile, profiles_folder() / f"{profile.label}.zip")
    other = other_fields(done.statement.environment, here)
    return _with(done, rerun_findings(profile, frozen, done.records, finished.records, other, seed))


def _run(profile: Profile, drawn: Profile, wanted: ConformOptions, folder: Path) -> ProfileRun:
    models = {case.name for case in drawn.cases}
    without = sorted({case.name for case in profile.cases} - models)
    file = write_matrix(drawn, wanted, folder, without)
    told: list[str] = []
    with contextlib.redirect_stdout(sys.stderr):  # stdout is for the result, which may be JSON
        run(file, out=folder, resume=None, with_report=False, told=told)
    return finished_run(wanted, folder, told)


def _with(done: Verification, more: Iterable[Finding]) -> Verification:
    return msgspec.structs.replace(done, findings=(*done.findings, *more))
