"""What an agent may say, and when; see ``harness.agent.agent`` for the words.

A provider that writes into foreign memory can make its process say anything. Whatever it is, it shall end
that process, with a verdict for the model at work, and nothing else.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from harness.core.verdict import Cause

if TYPE_CHECKING:
    from harness.engine.worker import Worker


class _Word(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A tuple that begins with what it is."""


class _Imported(_Word, tag="imported", frozen=True):
    pass


class _Ready(_Word, tag="ready", frozen=True):
    fingerprint: dict[str, Any]


class _Unavailable(_Word, tag="unavailable", frozen=True):
    cause: Cause
    reason: str
    output: str
    fingerprint: dict[str, Any]


class _Rejected(_Word, tag="rejected", frozen=True):
    option: str
    reason: str
    output: str
    fingerprint: dict[str, Any]


class _Phase(_Word, tag="phase", frozen=True):
    job: int
    phase: Literal["create", "run", "teardown"]


class _Body(msgspec.Struct, frozen=True):
    """What every result has; the rest depends on its status, and is read with it."""

    status: Literal["ok", "error", "unfeedable", "unsupported"]
    output: str = ""


class _Result(_Word, tag="result", frozen=True):
    job: int
    result: _Body


_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class _After(msgspec.Struct, frozen=True):
    took_ms: _Amount
    teardown_ms: _Amount
    processor_ms: _Amount
    rss_mib: _Amount | None = None
    sick: str = ""


class _Done(_Word, tag="done", frozen=True):
    job: int
    after: _After


class _Need(_Word, tag="need", frozen=True):
    job: int
    name: str
    offset: Annotated[int, msgspec.Meta(ge=0)]


_OfStart = _Imported | _Ready | _Unavailable | _Rejected
_OfJob = _Phase | _Result | _Done | _Need


class _Envelope(msgspec.Struct, array_like=True, frozen=True):
    """Around a message: msgspec analyses a struct's type once, and a bare union's each time."""

    said: _OfStart | _OfJob


def nonsense(worker: "Worker", message: Any) -> str:
    """What is wrong with a message of a worker's process at this time; empty where nothing is."""
    try:
        said = msgspec.convert((message,), _Envelope).said
    except msgspec.ValidationError as error:
        return f"it sent a message of no known form: {error}"
    return _of_start(worker, said) if isinstance(said, _OfStart) else _of_job(worker, said)


def _of_start(worker: "Worker", said: _OfStart) -> str:
    if worker.ready or (worker.imported and isinstance(said, _Imported)):
        return "it started twice"
    return ""


def _of_job(worker: "Worker", said: _OfJob) -> str:
    if isinstance(said, _Need):
        known = any(said.job == id(task) for task in worker.hands)
        return "" if known else "it asked for a model that it was not given"
    if not worker.hands or said.job != id(worker.hands[0]):
        return "it spoke of a model that it was not at"
    if isinstance(said, _Done):
        return "" if worker.result else "it was done with a model without a result"
    return "it went on with a model after the result" if worker.result else ""
