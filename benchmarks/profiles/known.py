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
from harness.corpus.suites import open_suite

FUZZ = "fuzz:1:600"
"""The generated suite among the candidates."""

GENERATED = "fuzz-1"
"""The same suite in records."""


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
    """Read findings and records; of generated models, those of ``FUZZ`` are candidates."""
    every = list(read_records(records))
    once = plain(every)
    real = {opened(key): faults for key, faults in real_faults(once).items()}
    took = {opened(key): seconds for key, seconds in seconds_of(once).items()}
    found = {
        one.key: msgspec.structs.replace(one, seconds=took.get(one.key, 0.0))
        for one in read_findings(findings)
    }
    corpus = [opened(key) for key in admitted(once)]
    generated = set(open_suite(FUZZ).models())
    wanted = {key for key in corpus if key[0] != FUZZ or key[1] in generated}
    refused = {name for names in read_refused().values() for name in names}
    ran = {(*opened((suite, model)), scenario) for suite, model, scenario in scenarios_run(every)}
    return Known(
        findings=[found[key] for key in sorted(found)],
        shown={
            key: frozenset(map(_with_kind, one.shown)) | real.get(key, set()) for key, one in found.items()
        },
        ran={one for one in ran if name_of(*one) not in refused},
        corpus={key: took.get(key, 0.0) for key in corpus},
        unmeasured=len(wanted - found.keys()),
        refused=frozenset(key for key in found if name_of(*key, PLAIN) in refused),
    )


def opened(key: Key) -> Key:
    """Return the suite as ``open_suite`` takes it, with the model."""
    return (FUZZ if key[0] == GENERATED else key[0]), key[1]


def _with_kind(fault: str) -> str:
    """Return the name of a fault, with a kind of its own for those of second runs."""
    kind, _, name = fault.partition(": ")
    of_second = kind == "rare" and name in RARE and RARE[name].kind == SECOND_RUN
    return f"rare, of second runs: {name}" if of_second else fault
