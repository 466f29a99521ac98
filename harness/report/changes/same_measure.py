"""Whether two records of a cell were judged by one measure: the same model, golden and policy.

The measure is the policy, never the one of its rules that happened to decide: under one policy, one record
may pass by the table and another fail by noise.
"""

from typing import Literal

import msgspec

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy_terms import PolicyTerm, changed_terms
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.report.words.figures import brief

_BY_POLICY = frozenset({"mismatch", "nan_mismatch", "nondeterministic", "precision_loss"})
"""Failures that another policy might judge differently."""

_BY_GOLDEN = _BY_POLICY | {"shape_mismatch", "dtype_mismatch"}
"""Failures that another golden might remove."""

_BY_DEVICE = frozenset({Verdict.WRONG_DEVICE.value})
"""Failures that an older version, which did not ask, could not find."""

_RIGHT = (Family.PASSED, Family.UNTESTED)
_SHOWN_DIGITS = 8

_UNKNOWN = "measure unknown: an older version did not record by which policy"

_NOT_ASKED = "an older version did not ask on which device the inputs lie"

_SHAPE = ("precision", "converted")
"""Settings of the policy that every record has."""

MeasurePart = Literal["model", "golden", "policy"]
"""A part of the measure, in the order in which they explain a change: the first that differs explains it
completely."""

PARTS: tuple[MeasurePart, ...] = ("model", "golden", "policy")


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """The measure of a cell, as far as its record names it; fields as in ``Record``."""

    model_digest: str = ""
    golden: str = ""
    golden_digest: str = ""
    policy: dict[str, PolicyTerm] = {}


class MeasureChange(msgspec.Struct, frozen=True, kw_only=True):
    """How the measure of two records of a cell differs; each field is one line, or empty.

    Attributes:
        model: The model, its weights or its test data differ.
        golden: The golden differs.
        policy: The policy differs.
        unknown: Why the policies cannot be compared.
        device: One record knows no device, and the other has the verdict about it.
    """

    model: str = ""
    golden: str = ""
    policy: str = ""
    unknown: str = ""
    device: str = ""

    @property
    def told(self) -> tuple[str, ...]:
        """Return the differences, in the order of ``PARTS``."""
        return tuple(filter(None, (self.model, self.golden, self.policy, self.device)))

    def explains(self, before: Verdict, after: Verdict) -> MeasurePart | None:
        """Return the part that may explain another verdict by itself; None if the cell has changed.

        Another model may explain anything. Another golden or policy only turns right values into wrong ones
        or back: it neither makes a process die nor moves a node to another provider.
        """
        if self.model:
            return "model"
        if self.device and _turns(before, after, _BY_DEVICE):
            return "policy"
        if self.golden and _turns(before, after, _BY_GOLDEN):
            return "golden"
        return "policy" if self.policy and _turns(before, after, _BY_POLICY) else None

    def is_open(self, before: Verdict, after: Verdict) -> bool:
        """Return whether another policy might explain another verdict.

        Nothing shows whether there was one.
        """
        return bool(self.unknown) and _turns(before, after, _BY_POLICY)


def measure_of(record: Record) -> Measure:
    """Return the measure of a record."""
    return Measure(**{name: getattr(record, name) for name in Measure.__struct_fields__})


def policy_json(policy: dict[str, PolicyTerm]) -> str:
    """Return a policy in the form of the databases of runs; empty if unknown."""
    return msgspec.json.encode(policy, order="deterministic").decode() if policy else ""


def between(old: Measure, new: Measure) -> MeasureChange:
    """Compare two measures of a cell; a model or golden that either side does not name counts as equal."""
    known = bool(old.policy and new.policy)
    return MeasureChange(
        model=_model(old, new),
        golden=_golden(old, new),
        policy=_policy("; ".join(changed_terms(old.policy, new.policy))) if known else "",
        unknown="" if known else _UNKNOWN,
    )


def measure_change(old: Record, new: Record) -> MeasureChange:
    """Compare the measures of two records of a cell.

    If an older version did not record the policy, the tolerances that decided replace it, provided that both
    records were judged by the same kind of rule.
    """
    change = between(measure_of(old), measure_of(new))
    if not change.model and not (old.model_digest and new.model_digest):
        other = old.content and new.content and old.content != new.content
        change = msgspec.structs.replace(change, model="the model is another one" if other else "")
    for one, other_one in ((old, new), (new, old)):
        if one.verdict is Verdict.WRONG_DEVICE and other_one.device is None:
            change = msgspec.structs.replace(change, device=_NOT_ASKED)
    if not change.unknown:
        return change
    settings = {name: (getattr(old, name), getattr(new, name)) for name in _SHAPE}
    changed = "; ".join(f"{name} {a} -> {b}" for name, (a, b) in settings.items() if a != b)
    tolerance, unknown = _by_what_was_done(old, new)
    return msgspec.structs.replace(change, policy=_policy(changed or tolerance), unknown=unknown)


def _turns(before: Verdict, after: Verdict, wrong: frozenset[str]) -> bool:
    """Return whether one verdict is among ``wrong``, and the other is also among them, or right."""
    pair = (before, after)
    return any(one.value in wrong for one in pair) and all(
        one.value in wrong or one.family in _RIGHT for one in pair
    )


def _policy(changed: str) -> str:
    return f"the tolerance changed: {changed}" if changed else ""


def _model(old: Measure, new: Measure) -> str:
    digests = [each.model_digest[:_SHOWN_DIGITS] for each in (old, new)]
    if not all(digests) or old.model_digest == new.model_digest:
        return ""
    return f"the model, its weights or its data are others: {' -> '.join(digests)}"


def _golden(old: Measure, new: Measure) -> str:
    if old.golden and new.golden and old.golden != new.golden:
        return f"the golden moved: judged by {old.golden} -> {new.golden}"
    digests = [each.golden_digest[:_SHOWN_DIGITS] for each in (old, new)]
    if not all(digests) or old.golden_digest == new.golden_digest:
        return ""
    return f"the golden moved: {' -> '.join(digests)}"


def _by_what_was_done(old: Record, new: Record) -> tuple[str, str]:
    """Return how the tolerances that decided differ, and why this is unknown; both may be empty."""
    before = {output.name: output for output in old.outputs}
    for now in new.outputs:
        then = before.get(now.name, now)
        if _by_noise(then) is not _by_noise(now):
            # An exact output has no noise, so its limits are unknown.
            if 0.0 in (then.max_abs, now.max_abs):
                continue
            return "", _UNKNOWN
        if _tolerance(then) != _tolerance(now):
            return f"{_tolerance(then)} -> {_tolerance(now)}", ""
    return "", ""


def _by_noise(output: OutputMetrics) -> bool:
    return output.noise is not None and output.noise.rms_limit is not None


def _tolerance(output: OutputMetrics) -> str:
    noise = output.noise
    if noise is not None and noise.rms_limit is not None and noise.max_limit is not None:
        limits = f"rms {brief(noise.rms_limit)}, max {brief(noise.max_limit)}"
        return f"{limits} of {noise.precision} noise"
    return f"rtol {brief(output.rtol)}, atol {brief(output.atol)}"
