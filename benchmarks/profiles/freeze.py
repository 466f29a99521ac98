"""Freeze the profiles of ``selection.json``: one index and one archive for each."""

import hashlib
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.profiles.plans import PLANS, Plan, meaning_of, order_of
from benchmarks.profiles.trial import failed_by_cpu
from harness.annex.conformance.freeze import CaseCandidate, freeze
from harness.annex.conformance.profiles.case_files import by_case
from harness.annex.conformance.profiles.profile import (
    CORE,
    PROFILE_SCHEMA,
    Feature,
    Profile,
    ProfileCase,
    ProfileRules,
    encode_profile,
)
from harness.annex.conformance.profiles.profile_archive import write_archive
from harness.annex.made.fuzz_suite import GENERATOR
from harness.core.comparison.noise_limits import DEFAULT_LIMITS
from harness.core.comparison.policy import DEFAULT_STEPS
from harness.core.comparison.tolerance import DEFAULTS

SELECTION = Path(__file__).with_name("selection.json")
REFUSED = Path(__file__).with_name("refused.json")

Refused = dict[str, str]
"""Suite, model and scenario of a candidate, see ``name_of`` -> why it is no case."""

Why = dict[tuple[str, str], str]
"""Name and scenario of a case -> why it is none."""

TRIAL = "trial@1"
"""The label of a profile that is only run here."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What is written of a choice.

    Attributes:
        generator: Version of the generator, which the names of its models belong to.
        profiles: Label -> candidates.
    """

    generator: int
    profiles: dict[str, list[CaseCandidate]]


MOST_BYTES = 1_000_000
"""Of an archive, which lies in the repository."""

RULES = ProfileRules(
    tolerances={name: (one.rtol, one.atol) for name, one in DEFAULTS.items() if name != "float64"},
    noise_rms=DEFAULT_LIMITS.rms,
    noise_max=DEFAULT_LIMITS.max,
    steps=DEFAULT_STEPS,
)
"""The harness's own limits, of the day on which a profile is frozen."""


def freeze_profiles(labels: Sequence[str], folder: Path) -> int:
    """Freeze profiles, write down what was refused, and return an exit code."""
    selection = read_selection()
    code = 0
    for label in labels or sorted(selection):
        candidates = selection[label]
        features_of({one.feature for one in candidates})  # an unknown one ends it before the work
        with tempfile.TemporaryDirectory() as scratch:
            cases, files, why = frozen_cases(candidates, Path(scratch))
        profile, content = archived(label, cases, files)
        names = {one.key: name_of(one.suite, one.model, one.scenario) for one in candidates}
        for key, text in sorted(why.items()):
            print(f"{label}: {names[key]}: {text}")
        print(f"{label}: {len(cases)} cases, {len(why)} refused, {len(content)} bytes", flush=True)
        write_refused(read_refused() | {names[key]: text for key, text in why.items()})
        if len(content) > MOST_BYTES or not cases:
            print(f"{label}: not written: an archive has at most {MOST_BYTES} bytes, and some case")
            code = 1
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{label}.zip").write_bytes(content)
        (folder / f"{label}.json").write_bytes(encode_profile(profile))
    return code


def read_selection() -> dict[str, list[CaseCandidate]]:
    """Return the candidates that were chosen for each profile.

    Raises:
        ValueError: The names of generated models stand for other models by now.
    """
    selection = msgspec.json.decode(SELECTION.read_bytes(), type=Selection)
    if selection.generator != GENERATOR:
        raise ValueError(f"selected with generator {selection.generator}, and this one is {GENERATOR}")
    return selection.profiles


def write_selection(profiles: Mapping[str, list[CaseCandidate]]) -> None:
    """Write the candidates that were chosen for each profile."""
    content = msgspec.json.encode(Selection(generator=GENERATOR, profiles=dict(profiles)))
    SELECTION.write_bytes(msgspec.json.format(content, indent=1) + b"\n")


def read_refused() -> Refused:
    """Return what was refused when candidates were frozen; nothing if none was."""
    return msgspec.json.decode(REFUSED.read_bytes(), type=Refused) if REFUSED.exists() else {}


def write_refused(refused: Refused) -> None:
    """Write down the candidates that are no cases."""
    content = msgspec.json.encode(refused, order="sorted")
    REFUSED.write_bytes(msgspec.json.format(content, indent=1) + b"\n")


def name_of(suite: str, model: str, scenario: str) -> str:
    """Return the name by which a refused candidate is written down."""
    return f"{suite}/{model} {scenario}"


def frozen_cases(
    candidates: Sequence[CaseCandidate], scratch: Path
) -> tuple[tuple[ProfileCase, ...], dict[str, bytes], Why]:
    """Freeze candidates, and run them on the CPU EP by the rules of profiles.

    Returns:
        The cases that pass, the files of an archive with just these, and why the others are none.

    Raises:
        ValueError: They exceed the limits of any archive.
    """
    frozen = freeze(candidates, RULES, scratch / "freeze", _note)
    refused = {one.key: why for one in candidates if (why := frozen.refused.get(one.name))}
    if not frozen.cases:
        return (), {}, refused
    trial, content = archived(TRIAL, frozen.cases, frozen.files)
    archive = scratch / "trial.zip"
    archive.write_bytes(content)
    failed = failed_by_cpu(trial, archive)
    cases = tuple(case for case in frozen.cases if case.key not in failed)
    names = {case.name for case in cases}
    files = {
        f"{name}/{path}": part
        for name, parts in by_case(frozen.files, {case.name for case in frozen.cases}).items()
        for path, part in parts.items()
        if name in names
    }
    return cases, files, refused | dict(failed)


def archived(label: str, cases: tuple[ProfileCase, ...], files: Mapping[str, bytes]) -> tuple[Profile, bytes]:
    """Return the profile of some cases, and the content of its archive."""
    content = write_archive(files)
    name, _, version = label.partition("@")
    plan = PLANS.get(label, Plan(title="", about=""))
    profile = Profile(
        schema=PROFILE_SCHEMA,
        name=name,
        version=int(version),
        title=plan.title,
        about=plan.about,
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
    own = sorted(set(names) - {CORE}, key=order_of)
    return tuple(Feature(name=name, meaning=meaning_of(name)) for name in own)


def _note(text: str) -> None:
    print(text, file=sys.stderr)
