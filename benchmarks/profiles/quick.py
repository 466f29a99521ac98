"""The quick profile: for each operator the largest case of the other profiles, and their whole networks.

It is for a person with a device and three minutes. Nothing is frozen anew: each case is one of a published
profile, with the same bytes.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.profiles.freeze import archived
from harness.annex.conformance.profiles.case_files import by_case
from harness.annex.conformance.profiles.profile import (
    CORE,
    Profile,
    ProfileCase,
    encode_profile,
    load_profile,
)
from harness.annex.conformance.profiles.profile_archive import read_profile_archive
from harness.core.records.scenario import PLAIN

QUICK = "quick@1"
SOURCES = ("cnn@1", "transformer@1", "qdq@1", "llm-ops@1", "core-opset21@1")
"""The profiles whose cases it has; of equal ones the first."""

_TITLE = "A first look at a device"
_ABOUT = (
    "One case of each operator up to opset 21, float16 and quantized operators, and whole networks: for a "
    "person with a device and three minutes."
)

_CORE_OF = {"qdq@1": "quantized"}
"""What the core of a profile is here: not every device has quantized operators."""

_FEATURES = (CORE, "float16", "quantized")
_RARE = "float16"
"""A feature of so few cases that those of several operators are taken, too."""

_LATEST = 21
_WHOLE = "zoo/"

_Parts = dict[str, bytes]


def write_quick(folder: Path) -> int:
    """Write the quick profile beside the others, and return an exit code."""
    profile, content = quick_profile(folder)
    (folder / f"{QUICK}.zip").write_bytes(content)
    (folder / f"{QUICK}.json").write_bytes(encode_profile(profile))
    print(f"{QUICK}: {len(profile.cases)} cases, {len(content)} bytes")
    return 0


def quick_profile(folder: Path) -> tuple[Profile, bytes]:
    """Return the quick profile and its archive, made of the published ones in a folder."""
    chosen: dict[tuple[str, ...], tuple[ProfileCase, _Parts]] = {}
    for case, parts in _cases(folder):
        key = _key(case)
        if key not in chosen or _weight(case, parts) > _weight(*chosen[key]):
            chosen[key] = case, parts
    cases = sorted((case for case, _ in chosen.values()), key=lambda case: case.key)
    files = {
        f"{case.name}/{path}": content for case, parts in chosen.values() for path, content in parts.items()
    }
    profile, content = archived(QUICK, tuple(cases), files)
    return msgspec.structs.replace(profile, title=_TITLE, about=_ABOUT), content


def _cases(folder: Path) -> Iterator[tuple[ProfileCase, _Parts]]:
    for label in SOURCES:
        profile = load_profile(label)
        files = read_profile_archive((folder / f"{label}.zip").read_bytes())
        parts = by_case(files, {case.name for case in profile.cases})
        for case in profile.cases:
            is_one = len(case.ops) == 1 or case.name.startswith(_WHOLE) or case.feature == _RARE
            if is_one and case.scenario == PLAIN and case.feature in _FEATURES and case.opset <= _LATEST:
                feature = _CORE_OF.get(label, CORE) if case.feature == CORE else case.feature
                yield msgspec.structs.replace(case, feature=feature), parts[case.name]


def _key(case: ProfileCase) -> tuple[str, ...]:
    """Return what one case stands for: several operators for themselves, else its operator in one feature."""
    return (case.name,) if len(case.ops) > 1 else (case.feature, *case.ops)


def _weight(case: ProfileCase, parts: _Parts) -> tuple[bool, int]:
    """Return what makes a case better: every device has float32, and more elements show more."""
    size = sum(len(content) for path, content in parts.items() if "/output_" in path)
    return "float32" in case.types, size
