"""Freeze the profiles of ``selection.json``: one index and one archive for each."""

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.profiles.definitions import DEFINITIONS, FEATURES, RULES
from harness.profiles.archive import write_archive
from harness.profiles.profile import SCHEMA, Profile, encode_profile
from harness.studies.freeze import Candidate, freeze

SELECTION = Path(__file__).with_name("selection.json")

MOST_BYTES = 1_000_000
"""Of an archive, which lies in the repository."""


def freeze_profiles(labels: Sequence[str], folder: Path) -> int:
    """Freeze profiles, print what was refused, and return an exit code."""
    selection = msgspec.json.decode(SELECTION.read_bytes(), type=dict[str, list[Candidate]])
    code = 0
    for label in labels or sorted(selection):
        with tempfile.TemporaryDirectory() as scratch:
            frozen = freeze(selection[label], RULES, Path(scratch), _note)
        content = write_archive(frozen.files)
        name, _, version = label.partition("@")
        used = {case.feature for case in frozen.cases}
        profile = Profile(
            schema=SCHEMA,
            name=name,
            version=int(version),
            title=DEFINITIONS[label].title,
            about=DEFINITIONS[label].about,
            archive=hashlib.sha256(content).hexdigest(),
            rules=RULES,
            features=tuple(one for one in FEATURES if one.name in used),
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


def _note(text: str) -> None:
    print(text, file=sys.stderr)
