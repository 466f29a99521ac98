"""Rows of the results."""

import hashlib

import msgspec

THIRD = 3
"""One name of so many is set aside."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of one answer.

    Attributes:
        kind: A fault or an honest kind.
        model: Its name.
        honest: Whether the answer is right.
        effect: By the measure by hand: ``visible``, ``between`` or ``beneath``.
        size: Largest error of an element in units of the rounding noise by hand.
        allowed: The rule of the documentation by which a visible fault passes; empty without one.
        bits: Bits that agree with the truth; None where they do not decide.
        visible_at: Coarser precisions at whose rounding noise a planted fault is visible, too.
        family: Of the verdict.
        verdict: Its word.
        reason: Its sentence.
    """

    kind: str
    model: str
    honest: bool
    effect: str
    size: float
    family: str
    verdict: str
    reason: str = ""
    allowed: str = ""
    bits: float | None = None
    visible_at: tuple[str, ...] = ()

    @property
    def is_aside(self) -> bool:
        """Whether its kind or its model was set aside, by name, before anything was tuned."""
        return is_aside(self.kind) or is_aside(self.model)

    @property
    def is_missed(self) -> bool:
        """Whether a visible fault passes, and no documented rule lets it."""
        return self.passes and not self.allowed

    @property
    def passes(self) -> bool:
        """Whether a visible fault passes, by a documented rule or not."""
        return not self.honest and self.effect == "visible" and self.family not in {"failed", "excluded"}

    @property
    def is_accused(self) -> bool:
        """Whether an honest answer fails."""
        return self.honest and self.family == "failed"


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of a real provider, and of faults planted in its sessions.

    Attributes:
        name: Of its target in ``matrices/local.toml``.
        passed: Models that it passes without a fault.
        failed: Model, verdict and reason of those that it fails by itself.
        precision: What it computes in.
        visible: Faults in models that it passes which are visible at that precision.
        missed: Fault, model, verdict of those that do not fail.
        documented: How many of the visible ones pass by what is documented.
    """

    name: str
    passed: int
    failed: tuple[tuple[str, str, str], ...]
    precision: str
    visible: int
    missed: tuple[tuple[str, str, str], ...]
    documented: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, and where they were made.

    ``real`` of them were planted in real sessions, too, ``otherwise`` is what was said otherwise there.
    """

    environment: dict[str, str]
    models: tuple[str, ...]
    seconds: float
    rows: tuple[Row, ...]
    real: int = 0
    otherwise: tuple[str, ...] = ()
    providers: tuple[Provider, ...] = ()


def is_aside(name: str) -> bool:
    """Return whether a name belongs to the third that is looked at once, at the end."""
    return hashlib.sha256(name.encode()).digest()[0] % THIRD == 0
