"""Parts of the page about the profiles: each one in detail; sets of faults, and the aim."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.profiles.choose import Shown
from benchmarks.profiles.finding import Finding
from benchmarks.profiles.plans import PLANS, meaning_of, order_of
from harness.annex.conformance.freeze import CaseCandidate
from harness.annex.conformance.profiles.profile import CORE, Profile, profiles_folder
from harness.core.records.scenario import PLAIN

ZOO = "zoo"
"""The suite of whole networks."""

AIM = 0.95, 0.1
"""Share of the planted faults at least, and of the corpus's time at most."""

REAL = "real: "
"""Before the faults that nobody planted."""


def reached(found: float, spent: float) -> str:
    """Return whether shares of faults and time are those of the aim."""
    return "reached" if found >= AIM[0] and spent <= AIM[1] else "not reached"


def planted(some: Iterable[Finding], shown: Shown) -> set[str]:
    """Return the planted faults that some models show."""
    return {fault for one in some for fault in shown[one.key] if not fault.startswith(REAL)}


def real(some: Iterable[Finding], shown: Shown) -> set[str]:
    """Return the faults of real providers that some models show."""
    return {fault for one in some for fault in shown[one.key] if fault.startswith(REAL)}


def share(part: float, whole: float) -> str:
    """Return a part in percent."""
    return f"{part / whole:.1%}" if whole else "-"


def details(frozen: Mapping[str, Sequence[CaseCandidate]], by_key: Mapping[tuple[str, str], Finding]) -> str:
    """Return a section for each profile."""
    parts = ["\n## The profiles\n"]
    for label, entries in frozen.items():
        parts += [_head(label), _features(Counter(one.feature for one in entries))]
        networks = sorted({one.model for one in entries if one.suite == ZOO})
        if networks:
            parts.append(f"\nWhole networks: {', '.join(f'`{one}`' for one in networks)}.\n")
        plain = [by_key[one.suite, one.model] for one in entries if one.scenario == PLAIN]
        parts.append(f"\nCases by operator: {_operators(plain)}.\n")
    return "".join(parts)


def section(profile: Profile) -> str:
    """Return the section of a profile whose cases no fault chooses; no table of the page has it."""
    size = (profiles_folder() / f"{profile.label}.zip").stat().st_size / 1000
    counts = Counter(one.feature for one in profile.cases)
    tail = f"\n{len(profile.cases)} cases, an archive of {size:.0f} kB. No planted fault chooses them.\n"
    return _head(profile.label) + _features(counts) + tail


def _head(label: str) -> str:
    return f"\n### {label}\n\n{PLANS[label].about}\n\n| feature | cases | meaning |\n|---|---:|---|\n"


def _features(counts: Mapping[str, int]) -> str:
    own = sorted(counts.keys() - {CORE}, key=order_of)
    rows = [f"| {name} | {counts[name]} | {meaning_of(name)} |\n" for name in own]
    return f"| core | {counts.get(CORE, 0)} | what every provider places and computes |\n" + "".join(rows)


def _operators(chosen: Iterable[Finding]) -> str:
    counts = Counter(op for one in chosen for op in one.ops)
    return ", ".join(f"{op} {count}" for op, count in sorted(counts.items()))
