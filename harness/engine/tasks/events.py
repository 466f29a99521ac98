"""Events of the engine; every writer and front end consumes them."""

from typing import Any

import msgspec

from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from harness.core.values.value import value_bytes
from harness.corpus.case import Case
from harness.golden.golden_answer import Golden
from harness.places.place_state import PlaceState


class TargetReady(msgspec.Struct, frozen=True, kw_only=True):
    """A target's first process is ready, or the target turned out to be unavailable.

    Attributes:
        fingerprint: The environment as the agent found it: versions, devices, options, settings.
        problem: Why the target cannot be used; empty if it can.
    """

    target: str
    fingerprint: dict[str, Any]
    problem: str = ""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A cell has its record.

    Attributes:
        printed: What the process printed for this cell, at most some 16 KiB.
        case: The model with its inputs; None if it could not be read.
        outputs: The EP's outputs of the first data set; empty if there are none, or if they were not
            requested.
        graph: The optimized model without its weights, if it was requested.
        traceback: The traceback of the harness's own exception that cost the cell its verdict; else empty.
    """

    record: Record
    printed: str = ""
    case: Case | None = None
    outputs: tuple[tuple[str, Any], ...] = ()
    graph: bytes = b""
    traceback: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that its values take; models are in files."""
        return sum(value_bytes(value) for _, value in self.outputs) + (self.case.nbytes if self.case else 0)


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU provider has answered a request of ``Engine.ask``.

    Attributes:
        case: The model with its inputs; None if it could not be read.
        golden: The answer; None without one.
        problem: Why there is no answer; empty if there is one.
    """

    suite: str
    model: str
    case: Case | None = None
    golden: Golden | None = None
    problem: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that its values take."""
        return sum(held.nbytes for held in (self.case, self.golden) if held is not None)


class Warned(msgspec.Struct, frozen=True, kw_only=True):
    """Something failed that costs no verdict, such as writing to the cache."""

    message: str


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """Something takes long, such as the build of a runtime."""

    message: str


class PlaceChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A place of a target is known now, or was set aside.

    Attributes:
        state: ``ready``; ``differs``: usable but not equal to the first place; ``set aside``.
        reason: How it differs, or why it is set aside.
        fingerprint: Its environment, if it can be used.
    """

    target: str
    place: str
    state: str
    reason: str = ""
    fingerprint: dict[str, Any] | None = None


def place_changed(state: PlaceState, what: str, reason: str) -> PlaceChanged:
    """Return the event of a place that is ``what`` now."""
    fingerprint = None if what == "set aside" else state.fingerprint
    return PlaceChanged(
        target=state.target, place=state.name, state=what, reason=reason, fingerprint=fingerprint
    )


class NotRun(msgspec.Struct, frozen=True, kw_only=True):
    """A cell, by its id, gets no record: no remaining place can run it. The reason is one line."""

    cell: str
    reason: str


class ProcessEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a target that was asked to end has ended, and the harness did not kill it at work.

    Attributes:
        place: Its place; empty if the target has no places.
        phase: The phase in which it died, or got stuck; None if it ended cleanly.
        cause: Its signal or exit code, or ``hang``; empty if it ended cleanly.
        printed: What it printed meanwhile, at most some 16 KiB.
        expected: The verdicts that the matrix expects for the ends of the target's processes; empty if it
            expects none.
    """

    target: str
    place: str = ""
    phase: Phase | None = None
    cause: str = ""
    reason: str = ""
    printed: str = ""
    expected: tuple[Verdict, ...] = ()


Event = TargetReady | Finished | Answered | Warned | Noted | PlaceChanged | NotRun | ProcessEnded
