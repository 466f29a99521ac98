"""Freeze the profiles of ``selection.json``: one index and one archive for each."""

import hashlib
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from benchmarks.profiles.plans import FEATURES, PLANS
from harness.core.noise import DEFAULT_LIMITS
from harness.core.policy import DEFAULT_STEPS
from harness.core.tolerance import DEFAULTS
from harness.profiles.archive import write_archive
from harness.profiles.profile import CORE, SCHEMA, Feature, Profile, Rules, encode_profile
from harness.studies.freeze import Candidate, freeze

SELECTION = Path(__file__).with_name("selection.json")

MOST_BYTES = 1_000_000
"""Of an archive, which lies in the repository."""

RULES = Rules(
    tolerances={name: (one.rtol, one.atol) for name, one in DEFAULTS.items() if name != "float64"},
    noise_rms=DEFAULT_LIMITS.rms,
    noise_max=DEFAULT_LIMITS.max,
    steps=DEFAULT_STEPS,
)
"""The harness's own limits, of the day on which a profile is frozen."""


def freeze_profiles(labels: Sequence[str], folder: Path) -> int:
    """Freeze profiles, print what was refused, and return an exit code."""
    selection = msgspec.json.decode(SELECTION.read_bytes(), type=dict[str, list[Candidate]])
    code = 0
    for label in labels or sorted(selection):
        features_of({one.feature for one in selection[label]})  # an unknown one ends it before the work
        with tempfile.TemporaryDirectory() as scratch:
            frozen = freeze(selection[label], RULES, Path(scratch), _note)
        content = write_archive(frozen.files)
        name, _, version = label.partition("@")
        profile = Profile(
            schema=SCHEMA,
            name=name,
            version=int(version),
            title=PLANS[label].title,
            about=PLANS[label].about,
            archive=hashlib.sha256(content).hexdigest(),
            rules=RULES,
            features=features_of({case.feature for case in frozen.cases}),
            cases=frozen.cases,
        )
        for candidate, why in sorted(frozen.refused.items()):
            print(f"{label}: {candidate}: {why}")
        print(f"{label}: {len(frozen.cases)} cases, {len(frozen.refused)} refused, {len(content)} bytes")
        if len(content) > MOST_BYTES or not frozen.cases:
            print(f"{label}: not written: an archive has at most {MOST_BYTES} bytes, and some case")
            code = 1
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{label}.zip").write_bytes(content)
        (folder / f"{label}.json").write_bytes(encode_profile(profile))
    return code


def features_of(names: Collection[str]) -> tuple[Feature, ...]:
    """Return the extended features of these names, in the order of pages.

    Raises:
        ValueError: A feature has no meaning.
    """
    if unknown := set(names) - {CORE} - FEATURES.keys():
        raise ValueError(f"no meaning of the feature {min(unknown)!r} is written down")
    return tuple(Feature(name=name, meaning=meaning) for name, meaning in FEATURES.items() if name in names)


def _note(text: str) -> None:
    print(text, file=sys.stderr)
