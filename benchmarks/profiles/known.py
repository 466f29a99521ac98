"""All that is known when cases are chosen: findings, failures of real EPs, times, scenarios that run."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.fuzzing.faults import FAULTS as RARE
from benchmarks.fuzzing.faults.places import SECOND_RUN
from benchmarks.profiles.admit import Admission, read_admissions
from benchmarks.profiles.choose import Shown
from benchmarks.profiles.finding import Finding, read_findings
from benchmarks.profiles.freeze import name_of, read_refused
from benchmarks.profiles.records import (
    Key,
    Played,
    admitted,
    plain,
    read_records,
    real_faults,
    scenarios_run,
    seconds_of,
)
from harness.core.records.scenario import PLAIN


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known.

    Attributes:
        findings: Of all models that were measured, sorted; with their seconds, and as they were admitted.
        shown: What each of them shows, failures of real EPs included.
        ran: Scenarios that a real EP passes.
        corpus: Every model of the runs that the CPU EP passes -> its seconds.
        unmeasured: How many models of the corpus were not measured.
        refused: Those that were measured and can be no case, or were not admitted yet.
        refused_why: Every model that can be no case -> why.
    """

    findings: list[Finding]
    shown: Shown
    ran: set[Played]
    corpus: dict[Key, float]
    unmeasured: int = 0
    refused: frozenset[Key] = frozenset()
    refused_why: dict[Key, str] = {}

    @property
    def admissible(self) -> list[Finding]:
        """The findings of candidates that are not refused."""
        return [one for one in self.findings if one.key not in self.refused]


def read_known(records: Iterable[Path], findings: Path, admissions: Path) -> Known:
    """Read all that was measured."""
    every = list(read_records(records))
    once = plain(every)
    real, took = real_faults(once), seconds_of(once)
    corpus = {key: took.get(key, 0.0) for key in admitted(once)}
    admission = {one.key: one for one in read_admissions(admissions)}
    found = {
        one.key: _with_admission(one, admission.get(one.key), took.get(one.key, 0.0))
        for one in read_findings(findings)
        if one.key in corpus
    }
    why = read_refused() | {
        name_of(*key, PLAIN): one.why_not for key, one in admission.items() if one.why_not
    }
    return Known(
        findings=[found[key] for key in sorted(found)],
        shown={
            key: frozenset(map(_with_kind, one.shown)) | real.get(key, set()) for key, one in found.items()
        },
        ran={one for one in scenarios_run(every) if name_of(*one) not in why},
        corpus=corpus,
        unmeasured=len(corpus.keys() - found.keys()),
        refused=frozenset(key for key in found if key not in admission or name_of(*key, PLAIN) in why),
        refused_why={key: text for key in corpus if (text := why.get(name_of(*key, PLAIN)))},
    )


def _with_admission(one: Finding, admission: Admission | None, seconds: float) -> Finding:
    if admission is None or admission.why_not:
        return msgspec.structs.replace(one, seconds=seconds)
    return msgspec.structs.replace(one, seconds=seconds, nbytes=admission.nbytes, opset=admission.opset)


def _with_kind(fault: str) -> str:
    """Return the name of a fault, with a kind of its own for those of second runs."""
    kind, _, name = fault.partition(": ")
    of_second = kind == "rare" and name in RARE and RARE[name].kind == SECOND_RUN
    return f"rare, of second runs: {name}" if of_second else fault
