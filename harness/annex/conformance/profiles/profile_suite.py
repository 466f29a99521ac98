"""A profile as a suite: its archive, checked and unpacked into the cache."""

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path

from harness.annex.conformance.profiles.case_files import by_case, digests_of
from harness.annex.conformance.profiles.profile import (
    Profile,
    ProfileCase,
    ProfileRules,
    load_profile,
    profile_labels,
    profiles_folder,
)
from harness.annex.conformance.profiles.profile_archive import read_profile_archive
from harness.core.comparison.noise_limits import NoiseLimits
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.text.errors import UsageError, one_line
from harness.corpus.caches.cache import cache_root, fill_once
from harness.corpus.suites.suite import Suite, SuiteSource

PROFILE = "profile:"
"""Before the label of a profile, in the name of its suite in a matrix."""


def open_profile(label: str) -> Suite:
    """Open a shipped profile as a suite; the first use unpacks its archive.

    Raises:
        UsageError: There is no such profile, or its archive is missing or altered.
    """
    profile = load_profile(label)
    return profile_suite(profile, profiles_folder() / f"{profile.label}.zip")


def profile_suite(profile: Profile, archive: Path) -> Suite:
    """Return the suite of a profile and its archive.

    Raises:
        UsageError: The archive cannot be read, or is not that of the profile.
    """
    entry = cache_root() / "profiles" / f"{profile.archive}-{profile.digest[:16]}"
    root = fill_once(entry, functools.partial(_unpack, profile, archive))
    policies = {case.name: policy_of_case(profile.rules, case) for case in profile.cases}
    return Suite(
        name=suite_name(profile), root=root, kind="built_in", names=tuple(sorted(policies)), policies=policies
    )


def frozen_policies(label: str) -> tuple[str, Mapping[tuple[str, str], Policy]] | None:
    """Return the name of a profile in cells, and the policy of each model and scenario.

    Returns:
        None if no profile of this label is shipped.
    """
    if label not in profile_labels():
        return None
    profile = load_profile(label)
    return suite_name(profile), {case.key: policy_of_case(profile.rules, case) for case in profile.cases}


def suite_name(profile: Profile) -> str:
    """Return the name of a profile in ids of cells, where ``@`` would have to be escaped."""
    return f"{profile.name}-{profile.version}"


def policy_of_case(rules: ProfileRules, case: ProfileCase) -> Policy:
    """Return the policy by which a profile judges one of its cases.

    Nothing else has an influence: neither a matrix, nor the precision that a provider uses by default.
    """
    rtol, atol = rules.tolerances[case.precision]
    return Policy(
        precision=case.precision,
        fixed=Tolerance(rtol=rtol, atol=atol),
        judge_by="both",
        limits=NoiseLimits(rms=rules.noise_rms, max=rules.noise_max),
        steps=rules.steps,
    )


def checked_files(profile: Profile, archive: Path) -> dict[str, Mapping[str, bytes]]:
    """Return the files of each case of a profile, after a check of all digests.

    Raises:
        UsageError: The archive cannot be read, or is not that of the profile.
    """
    try:
        content = archive.read_bytes()
        if hashlib.sha256(content).hexdigest() != profile.archive:
            raise ValueError("its SHA-256 is not the one that the profile names")  # noqa: TRY301
        files = by_case(read_profile_archive(content), {case.name for case in profile.cases})
        for case in profile.cases:
            found = digests_of(files[case.name])
            for part in found.__struct_fields__:
                if getattr(found, part) != getattr(case, part):
                    raise ValueError(f"{case.name}: the {part} has another digest than the profile names")  # noqa: TRY301
    except (OSError, ValueError) as error:
        what = f"the archive of {profile.label} cannot be used: {one_line(error)}"
        raise UsageError.at(archive, what, "install the harness again") from error
    return dict(files)


def _unpack(profile: Profile, archive: Path, folder: Path) -> None:
    for name, files in checked_files(profile, archive).items():
        for path, content in files.items():
            target = folder / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


SOURCE = SuiteSource(
    form="profile:NAME@N",
    line="the frozen cases of a conformance profile",
    open=lambda name: open_profile(name.removeprefix(PROFILE)),
)
