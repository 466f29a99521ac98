"""Checks that nothing has changed between an interrupted run and its continuation."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harness.core.findings.other_build import other_builds
from harness.core.records.record import Record
from harness.core.records.run_info import RunInfo
from harness.core.text.errors import UsageError, one_line
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import Suite
from harness.plan.plan import Plan

_SHOWN = 4
"""Largest number of listed changes; a single one usually shows what happened."""

_WHO_WORKS = re.compile(r"targets\[\d+\]\.(workers|(runtime\.)?places)\b")
"""Where cells run, and how many at a time: no result depends on it."""

_SINCE_LATER = re.compile(r"(processor\.features|drivers|altered|mapped): ")
"""Facts that the version which began a run may not have recorded: if absent there, they are no change."""

_ABSENT = "(absent)"
"""Replaces a value that one side lacks."""


def check_same_plan(info: RunInfo, plan: Plan, where: str) -> None:
    """Refuse to continue a run with another matrix, or with other models.

    Raises:
        UsageError: Something changed; the error lists the changes.
    """
    # The same file may have two paths, and a board may be repaired or replaced meanwhile.
    changes = [
        change
        for change in json_differences(info.matrix, _plain(plan.matrix))
        if not (change.startswith("path:") or _WHO_WORKS.match(change))
    ]
    if changes:
        raise _refusal(where, "the matrix has changed since this run began", changes)
    if info.plan != plan.digest:
        what = (
            f"the plan has changed, from {info.cells:,} to {len(plan.cells):,} cells: "
            "a suite, a folder, --target or --model is not the same"
        )
        raise UsageError.at(where, what, "begin a new run with --out")


def check_same_models(records: Iterable[Record], plan: Plan, suites: Mapping[str, Suite], where: str) -> None:
    """Refuse to continue a run if models of its records have changed.

    Raises:
        UsageError: A file of a model or of its test data has changed; the error lists the models.
    """
    known = {(record.suite, record.model): record.model_digest for record in records if record.model_digest}
    changed = [
        f"{suite}/{model}"
        for (suite, model), digest in known.items()
        if _digest(suites[suite], model, plan) != digest
    ]
    if changed:
        raise _refusal(where, "models or their data have changed since this run began", changed)


def _digest(suite: Suite, model: str, plan: Plan) -> str:
    settings = plan.model_settings(suite.name, model)
    try:
        return load_case(suite, model, plan.matrix.models.dimensions, settings=settings).model_digest
    except ModelError:
        return ""


def check_same_environment(target: str, then: Mapping[str, Any], now: Mapping[str, Any], where: str) -> None:
    """Refuse to continue a target in another environment.

    Raises:
        UsageError: Something changed; the error lists the changes.
    """
    found = _plain(now)
    old, new = ({key: value for key, value in side.items() if key != "sha256"} for side in (then, found))
    others = [
        change
        for change in json_differences(old, new)
        if not (_SINCE_LATER.match(change) and f": {_ABSENT} -> " in change)
    ]
    changes = [*other_builds(then, found), *others]
    if changes:
        raise _refusal(where, f"the environment of target {target!r} has changed", changes)


def json_differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield where two trees of JSON values differ: ``packages.numpy: 2.3 -> 2.4``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            below = f"{path}.{key}" if path else str(key)
            yield from json_differences(old.get(key, _ABSENT), new.get(key, _ABSENT), below)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from json_differences(left, right, f"{path}[{index}]")
    elif old != new:
        yield f"{path}: {one_line(old, 60)} -> {one_line(new, 60)}"


def _plain(value: Any) -> Any:
    """Return a value as JSON reads it back."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _refusal(where: str, what: str, changes: list[str]) -> UsageError:
    more = f" (and {len(changes) - _SHOWN} more)" if len(changes) > _SHOWN else ""
    shown = f"{what}: {'; '.join(changes[:_SHOWN])}{more}"
    return UsageError.at(where, shown, "restore it, or begin a new run with --out")
