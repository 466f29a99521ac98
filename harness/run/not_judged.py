"""Models that say nothing about a provider, with the reason: grouped by cause, so that each has one line."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from harness.core.findings.cause import plain_cause
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible

MOST_CAUSES = 5
"""Largest number of listed causes; the report has all."""

MOST_NAMES = 3
"""Number of models of a cause that are named."""

MOST_OF_OTHERS = 2
"""Number of listed causes of a verdict that the user can hardly fix."""

_REASON_CHARS = 200

_MENDABLE = (Verdict.TIMEOUT, Verdict.NO_INPUT, Verdict.INVALID_MODEL)
"""Verdicts whose reasons say what to fix; they come first."""

_KIND = re.compile(r"\b([A-Z]\w+): ")
"""The kind of an error, such as ``NotImplemented``."""


class SharedCause(msgspec.Struct, frozen=True):
    """A verdict, and the common part of its models' reasons."""

    verdict: Verdict
    pattern: str


class ModelGroup(msgspec.Struct, kw_only=True):
    """The models of one cause, each with its reason."""

    models: dict[str, str] = {}


def says_nothing_yet(record: Record) -> bool:
    """Return whether a cell was tried and not judged."""
    return record.family is Family.EXCLUDED or record.verdict is Verdict.TIMEOUT


def add_to(groups: dict[SharedCause, ModelGroup], record: Record) -> None:
    """Put a cell that was not judged into its group."""
    group = groups.setdefault(SharedCause(record.verdict, _pattern(record)), ModelGroup())
    group.models[f"{record.suite}/{record.model}"] = record.reason


def not_judged(of_targets: Iterable[Mapping[SharedCause, ModelGroup]]) -> Iterator[tuple[str, str]]:
    """Yield each cause with its models and the first model's reason, as pairs of a word and a line."""
    merged: dict[SharedCause, ModelGroup] = {}
    for groups in of_targets:
        for cause, group in groups.items():
            into = merged.setdefault(cause, ModelGroup())
            into.models |= group.models
    ordered = sorted(merged.items(), key=lambda item: (_rank(item[0].verdict), -len(item[1].models)))
    others: list[ModelGroup] = []
    shown_of: Counter[Verdict] = Counter()
    for cause, group in ordered:
        verdict = cause.verdict
        shown_of[verdict] += 1
        few = verdict not in _MENDABLE and shown_of[verdict] > MOST_OF_OTHERS
        if few or shown_of.total() - len(others) > MOST_CAUSES:
            others.append(group)
            continue
        names = sorted(group.models)
        shown = ", ".join(names[:MOST_NAMES])
        rest = len(names) - MOST_NAMES
        more = f" and {rest:,} more" if rest > 0 else ""
        reason = one_line(group.models[names[0]], _REASON_CHARS)
        yield verdict.value, visible(f"{shown}{more}" + (f": {reason}" if reason else ""))
    if others:
        models = sum(len(group.models) for group in others)
        yield "not judged", f"{models:,} more for {len(others):,} other causes, in the report"


def _rank(verdict: Verdict) -> int:
    return _MENDABLE.index(verdict) if verdict in _MENDABLE else len(_MENDABLE)


def _pattern(record: Record) -> str:
    """Return the common part of reasons with one cause: their words; for the CPU EP's errors their kind."""
    if record.verdict in _MENDABLE:
        return plain_cause(record.reason)
    if record.verdict is Verdict.NO_GOLDEN:
        kinds = _KIND.findall(record.reason)
        return kinds[0] if kinds else ""
    return ""
