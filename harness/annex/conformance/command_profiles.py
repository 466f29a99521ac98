"""`ep-harness profiles`: list the conformance profiles, show one, or copy its archive."""

from collections import Counter
from pathlib import Path

import msgspec

from harness.annex.conformance.level import case_label
from harness.annex.conformance.profiles.profile import Profile, load_profile, profile_labels, profiles_folder
from harness.annex.conformance.profiles.profile_suite import checked_files
from harness.cli.output import print_lines, print_result
from harness.core.files.writing import write_new
from harness.core.text.errors import EXIT_OK, UsageError, one_line


def list_profiles(*, as_json: bool) -> int:
    """Print the labels of the shipped profiles, with their titles and numbers of cases."""
    profiles = [load_profile(label) for label in profile_labels()]
    width = max((len(one.label) for one in profiles), default=0)
    lines = (f"{one.label:<{width}}  {len(one.cases):>4} cases  {one.title}" for one in profiles)
    print_result([_summary(one) for one in profiles], lines, as_json=as_json)
    return EXIT_OK


def show_profile(label: str, *, as_json: bool) -> int:
    """Print one profile with its cases."""
    profile = load_profile(label)
    counts = Counter(case.feature for case in profile.cases)
    lines = [f"{profile.label}: {profile.title}", profile.about, f"SHA-256 {profile.digest}", ""]
    lines += [f"{counts['core']:>5}  core"]
    lines += [f"{counts[one.name]:>5}  {one.name}: {one.meaning}" for one in profile.features]
    lines += ["", *(f"{case.feature}  {case_label(case)}" for case in profile.cases)]
    print_result(msgspec.to_builtins(profile), lines, as_json=as_json)
    return EXIT_OK


def export(label: str, *, out: Path) -> int:
    """Copy the archive of a profile to a file, after a check of all its digests."""
    archive = profiles_folder() / f"{label}.zip"
    profile = load_profile(label)
    checked_files(profile, archive)
    try:
        write_new(out, archive.read_bytes())
    except OSError as error:
        taken = isinstance(error, FileExistsError)
        what = "the file exists" if taken else f"cannot be written: {one_line(error.strerror or error)}"
        raise UsageError.at(out, what, "choose another file: --out") from error
    print_lines([f"{out}  {len(profile.cases)} cases  SHA-256 {profile.archive}"])
    return EXIT_OK


def _summary(profile: Profile) -> dict[str, object]:
    return {
        "label": profile.label,
        "title": profile.title,
        "cases": len(profile.cases),
        "features": [one.name for one in profile.features],
        "digest": profile.digest,
        "archive": profile.archive,
    }
