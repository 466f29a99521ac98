"""What the engine announces while it works; every writer and front end consumes these."""

from typing import Any

import msgspec

from harness.core.record import Record
from harness.corpus.case import Case


class TargetReady(msgspec.Struct, frozen=True, kw_only=True):
    """A target's first process is up, or the target turned out to be unavailable.

    Attributes:
        target: Its name.
        fingerprint: The environment as the agent found it: versions, devices, options, settings.
        problem: Why it cannot be used; empty where it can.
    """

    target: str
    fingerprint: dict[str, Any]
    problem: str = ""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A cell has its record.

    Attributes:
        record: The record.
        printed: What the process printed for this cell, at most some 16 KiB.
        case: The model with its inputs; None where it could not be read.
        outputs: The EP's outputs of the first data set; empty where there are none.
    """

    record: Record
    printed: str = ""
    case: Case | None = None
    outputs: tuple[tuple[str, Any], ...] = ()


class Warned(msgspec.Struct, frozen=True, kw_only=True):
    """Something went wrong that costs no verdict, such as a cache that cannot be written."""

    message: str


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """Something takes its time that a person may wonder about, such as a runtime that is built."""

    message: str


Event = TargetReady | Finished | Warned | Noted
