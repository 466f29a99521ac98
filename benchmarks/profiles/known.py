"""All that is known when cases are chosen: findings, failures of real EPs, times, scenarios that run."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.fuzzing.faults import FAULTS as RARE
from benchmarks.fuzzing.faults.places import SECOND_RUN
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
from harness.core.scenario import PLAIN

GENERATED = "fuzz-"
"""Suites whose models are in the corpus but are no candidates: the same name is another model as soon as the
generator changes, and a selection names its cases.
"""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known.

    Attributes:
        findings: Of all candidates that were measured, sorted; with their seconds.
        shown: What each of them shows, failures of real EPs included.
        ran: Scenarios that a real EP passes.
        corpus: Every model of the runs that the CPU EP passes -> its seconds.
        unmeasured: How many candidates were not measured.
        refused: Candidates that freezing refused, which nobody could be held to.
    """

    findings: list[Finding]
    shown: Shown
    ran: set[Played]
    corpus: dict[Key, float]
    unmeasured: int = 0
    refused: frozenset[Key] = frozenset()

    @property
    def admissible(self) -> list[Finding]:
        """The findings of candidates that freezing has not refused."""
        return [one for one in self.findings if one.key not in self.refused]


def read_known(findings: Path, records: Iterable[Path]) -> Known:
    """Read findings and records."""
    every = list(read_records(records))
    once = plain(every)
    real, took = real_faults(once), seconds_of(once)
    corpus = admitted(once)
    wanted = set(wanted_of(corpus))
    found = {
        one.key: msgspec.structs.replace(one, seconds=took.get(one.key, 0.0))
        for one in read_findings(findings)
        if one.key in wanted
    }
    refused = {name for names in read_refused().values() for name in names}
    return Known(
        findings=[found[key] for key in sorted(found)],
        shown={
            key: frozenset(map(_with_kind, one.shown)) | real.get(key, set()) for key, one in found.items()
        },
        ran={one for one in scenarios_run(every) if name_of(*one) not in refused},
        corpus={key: took.get(key, 0.0) for key in corpus},
        unmeasured=len(wanted - found.keys()),
        refused=frozenset(key for key in found if name_of(*key, PLAIN) in refused),
    )


def wanted_of(corpus: Iterable[Key]) -> list[Key]:
    """Return the candidates of a corpus."""
    return [key for key in corpus if not key[0].startswith(GENERATED)]


def _with_kind(fault: str) -> str:
    """Return the name of a fault, with a kind of its own for those of second runs."""
    kind, _, name = fault.partition(": ")
    of_second = kind == "rare" and name in RARE and RARE[name].kind == SECOND_RUN
    return f"rare, of second runs: {name}" if of_second else fault
