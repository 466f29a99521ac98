"""Freeze the profiles of ``selection.json``: one index and one archive for each."""

import hashlib
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.profiles.plans import FEATURES, PLANS
from benchmarks.profiles.trial import failed_by_cpu
from harness.core.noise import DEFAULT_LIMITS
from harness.core.policy import DEFAULT_STEPS
from harness.core.tolerance import DEFAULTS
from harness.profiles.archive import write_archive
from harness.profiles.case_files import by_case
from harness.profiles.profile import CORE, SCHEMA, Feature, Profile, ProfileCase, Rules, encode_profile
from harness.studies.freeze import Candidate, freeze

SELECTION = Path(__file__).with_name("selection.json")
REFUSED = Path(__file__).with_name("refused.json")

Refused = dict[str, dict[str, str]]
"""Label -> suite, model and scenario of a candidate -> why it is no case."""

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
    """Freeze profiles, write down what was refused, and return an exit code."""
    selection = msgspec.json.decode(SELECTION.read_bytes(), type=dict[str, list[Candidate]])
    refused = read_refused()
    code = 0
    for label in labels or sorted(selection):
        candidates = selection[label]
        features_of({one.feature for one in candidates})  # an unknown one ends it before the work
        with tempfile.TemporaryDirectory() as scratch:
            profile, content, why = _frozen(label, candidates, Path(scratch))
        for name, text in sorted(why.items()):
            print(f"{label}: {name}: {text}")
        print(f"{label}: {len(profile.cases)} cases, {len(why)} refused, {len(content)} bytes", flush=True)
        refused[label] = refused.get(label, {}) | why
        if len(content) > MOST_BYTES or not profile.cases:
            print(f"{label}: not written: an archive has at most {MOST_BYTES} bytes, and some case")
            code = 1
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{label}.zip").write_bytes(content)
        (folder / f"{label}.json").write_bytes(encode_profile(profile))
    REFUSED.write_bytes(msgspec.json.format(msgspec.json.encode(refused, order="sorted"), indent=1) + b"\n")
    return code


def read_refused() -> Refused:
    """Return what was refused when profiles were frozen; nothing if none was."""
    return msgspec.json.decode(REFUSED.read_bytes(), type=Refused) if REFUSED.exists() else {}


def name_of(suite: str, model: str, scenario: str) -> str:
    """Return the name by which a refused candidate is written down."""
    return f"{suite}/{model} {scenario}"


def _frozen(
    label: str, candidates: Sequence[Candidate], scratch: Path
) -> tuple[Profile, bytes, dict[str, str]]:
    """Return a profile, its archive, and the candidates that are no cases, each with the reason."""
    frozen = freeze(candidates, RULES, scratch / "freeze", _note)
    refused = {
        name_of(one.suite, one.model, one.scenario): frozen.refused.get(one.name, "") for one in candidates
    }
    profile, content = _archived(label, frozen.cases, frozen.files)
    if len(content) <= MOST_BYTES and profile.cases:
        archive = scratch / "trial.zip"
        archive.write_bytes(content)
        failed = failed_by_cpu(profile, archive)
        left = tuple(case for case in profile.cases if case.key not in failed)
        names = {case.name for case in left}
        files = {
            f"{name}/{path}": part
            for name, parts in by_case(frozen.files, {case.name for case in frozen.cases}).items()
            for path, part in parts.items()
            if name in names
        }
        profile, content = _archived(label, left, files)
        for one in candidates:
            if why := failed.get((one.name, one.scenario)):
                refused[name_of(one.suite, one.model, one.scenario)] = why
    return profile, content, {name: why for name, why in refused.items() if why}


def _archived(
    label: str, cases: tuple[ProfileCase, ...], files: Mapping[str, bytes]
) -> tuple[Profile, bytes]:
    content = write_archive(files)
    name, _, version = label.partition("@")
    profile = Profile(
        schema=SCHEMA,
        name=name,
        version=int(version),
        title=PLANS[label].title,
        about=PLANS[label].about,
        archive=hashlib.sha256(content).hexdigest(),
        rules=RULES,
        features=features_of({case.feature for case in cases}),
        cases=cases,
    )
    return profile, content


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
