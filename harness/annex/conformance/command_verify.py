"""`ep-harness verify`: check submissions of a conformance profile, without a network."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.annex.conformance.submission import STATEMENT
from harness.annex.conformance.verify.opening import submissions_in
from harness.annex.conformance.verify.verification import verify_submissions as verify_all
from harness.annex.conformance.verify.verification_text import json_of, markdown_of, submission_lines
from harness.cli.output import print_result
from harness.core.files.writing import write_aside, writing
from harness.core.text.errors import EXIT_OK, EXIT_UNEXPECTED, Problem, UsageError

if TYPE_CHECKING:
    from harness.annex.conformance.command_conform import Asked


def verify(
    submissions: Sequence[Path],
    signers: Path | None,
    markdown: Path | None,
    *,
    as_json: bool,
    share: float | None = None,
    seed: int | None = None,
    target: "Asked | None" = None,
) -> int:
    """Verify submissions and print what is found.

    Returns:
        0 if every submission is verified, 1 if one is refused or marked.
    """
    if (share is None) != (target is None):
        raise UsageError.at("verify", "--rerun and --target belong together", "--rerun 5% --target PROVIDER")
    if missing := [path for path in submissions if not path.exists()]:
        raise UsageError(*(Problem(where=str(path), what="there is no such submission") for path in missing))
    done = verify_all([*_each(submissions)], signers=signers)
    if share is not None and target is not None:
        from harness.annex.conformance.command_verify_rerun import (
            rerun_submission,  # an engine takes 0.2 s to import
        )

        done = tuple(rerun_submission(one, share, seed, target) for one in done)
    if markdown is not None:
        with writing(markdown, hint=""):
            write_aside(markdown, markdown_of(done))
    lines = (line for one in done for line in submission_lines(one))
    print_result(json_of(done), lines, as_json=as_json)
    return EXIT_OK if all(one.outcome == "verified" for one in done) else EXIT_UNEXPECTED


def _each(paths: Sequence[Path]) -> list[Path]:
    """Return the submissions; a folder without a statement stands for the submissions in it."""
    found: list[Path] = []
    for path in paths:
        holds_some = path.is_dir() and not (path / STATEMENT).exists()
        found += (submissions_in(path) if holds_some else ()) or (path,)
    return found
