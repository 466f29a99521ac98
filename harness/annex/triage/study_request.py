"""The request and the result of a failure's study."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from harness.annex.triage.explain import TargetVariation
from harness.annex.triage.failure import Failure
from harness.annex.triage.failure_check import FailureCheck, Match
from harness.annex.triage.hang_limits import LimitedTarget
from harness.annex.triage.subject import Subject
from harness.core.records.fault import Fault


class Learnt(Protocol):
    """Receives findings about a failure."""

    def __call__(self, text: str, *, passing: bool = False) -> None:
        """Take one line; a passing one matters only until the next."""


class TriageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request for a triage.

    Attributes:
        target: Name of the target in the lab.
        limited: The target with lower limits of time, for trials of a hang.
        variations: Other targets on which the reduced model is tried.
        fingerprint: Environment of the target.
        keep_weights: Whether reduced models keep the weights of their models.
        known: Faults of groups that differ from the failure's only in axes.
    """

    target: str
    limited: tuple[LimitedTarget, ...] = ()
    variations: tuple[TargetVariation, ...] = ()
    fingerprint: Mapping[str, object] = {}
    keep_weights: bool = False
    known: "tuple[Studied, ...]" = ()


class Reproduced(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest model of a fault, its results, and the check that it fails.

    The check states how a session is used, and which models run before.
    """

    subject: Subject
    match: Match
    check: FailureCheck


class Studied(msgspec.Struct, frozen=True, kw_only=True):
    """A fault without a bundle, and the data for one: ``reproduced`` is None if it did not appear again."""

    fault: Fault
    failure: Failure
    reproduced: Reproduced | None = None
