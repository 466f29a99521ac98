"""A configuration with its result, and all of a search: which is the fastest, or that none is."""

import msgspec

from harness.annex.advise.candidates import Candidate
from harness.core.findings.compute_share import is_the_cpus
from harness.core.findings.shipping import rounds_of
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.core.timing.latency import Latency
from harness.core.timing.pace import best_ms, unbeaten
from harness.plan.target import Target


class TriedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its result.

    Attributes:
        finals: Its measurements in turns with other finalists; empty if it is none.
    """

    candidate: Candidate
    record: Record
    finals: tuple[Latency, ...] = ()

    @property
    def rounds(self) -> tuple[Latency, ...]:
        """The measurements that count: those of the final if there are any."""
        return self.finals or rounds_of(self.record)

    @property
    def p50_ms(self) -> float | None:
        """Best median time of a run, in milliseconds; None if it is rejected."""
        return None if self.fell_out else best_ms(self.rounds)

    @property
    def bits(self) -> float:
        """Delivered bits of its worst output; infinite if all are exact."""
        return min(
            (output.delivered_bits for output in self.record.outputs if output.delivered_bits is not None),
            default=float("inf"),
        )

    @property
    def fell_out(self) -> str:
        """Why it is rejected; empty if it is not."""
        record = self.record
        if record.family is not Family.PASSED:
            word = "too slow" if record.verdict in {Verdict.HANG, Verdict.TIMEOUT} else str(record.verdict)
            return f"{word}: {record.reason}" if record.reason else word
        if record.effect is not None and not record.effect.seen:
            return "no effect: the outputs are bit-identical without it"
        return "" if record.latency is not None else "its time was not measured"

    @property
    def may_be_changed(self) -> bool:
        """Whether changes are worth trying: False if it could not run, or is far too slow."""
        hopeless = {Family.SKIPPED, Family.EXCLUDED}
        return self.record.family not in hopeless and self.record.verdict is not Verdict.HANG

    def and_again(self, again: "TriedCandidate") -> "TriedCandidate":
        """Return the result with one more round of the final; a rejected one stays rejected."""
        if self.fell_out or again.fell_out or again.record.latency is None:
            return self if self.fell_out else again
        return msgspec.structs.replace(self, finals=(*self.finals, again.record.latency))


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search.

    Attributes:
        ranked: Candidates that passed, the fastest first, those on simulated devices last.
        fell_out: Rejected candidates, in the order of trying.
        not_tried: Candidates left, the most promising first.
        targets: The unchanged targets, by name.
        fingerprints: Their environments, by name.
        stopped_by: ``end`` if all were tried, ``budget``, or ``interrupt``.
        elapsed_s: Duration of the search, in seconds.
        simulated: Target -> the program that stands for its accelerator, of those where one does. What is
            fast there says nothing about a device, so it is never the winner.
    """

    ranked: tuple[TriedCandidate, ...]
    fell_out: tuple[TriedCandidate, ...]
    not_tried: tuple[Candidate, ...]
    targets: dict[str, Target]
    fingerprints: dict[str, dict[str, object]]
    stopped_by: str
    elapsed_s: float
    simulated: dict[str, str] = {}

    @property
    def front(self) -> frozenset[Candidate]:
        """The Pareto front: no other candidate is both faster and more exact than one of these."""
        return frozenset(
            one.candidate
            for place, one in enumerate(self.ranked)
            if one.candidate.target not in self.simulated
            and all(one.bits > other.bits for other in self.ranked[:place])
        )

    @property
    def real(self) -> tuple[TriedCandidate, ...]:
        """Those of ``ranked`` whose time says something about a device on which the target computes."""
        return tuple(
            one
            for one in self.ranked
            if one.candidate.target not in self.simulated and not is_the_cpus(one.record)
        )

    @property
    def equal(self) -> tuple[TriedCandidate, ...]:
        """The fastest within noise, the simplest first; none if the times are not reliable."""
        return tuple(sorted(unbeaten(self.real, lambda one: one.rounds), key=_merits))

    @property
    def winner(self) -> TriedCandidate | None:
        """The simplest of the fastest within noise; None if these are of several targets."""
        equal = self.equal
        return equal[0] if len({one.candidate.target for one in equal}) == 1 else None


def _merits(one: TriedCandidate) -> tuple[bool, int, float]:
    return one.record.verdict is Verdict.PASS_PARTIAL, len(one.candidate.changes), -one.bits
