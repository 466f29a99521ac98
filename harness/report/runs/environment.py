"""The environments of the targets, side by side."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.report.runs.merged_run import RunEnvironment

KERNELS = "kernels"
"""Key of the kernels that a plugin declares: ``Add 14-``, of other domains ``com.microsoft:Gelu 1-``."""


class EnvironmentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One fact about the environments.

    Attributes:
        key: Path of the fact, such as ``versions.onnxruntime``.
        values: One text per environment; empty if it lacks the fact.
        same: True if there are several environments and all have the same value.
    """

    key: str
    values: tuple[str, ...]
    same: bool


class EnvironmentTable(msgspec.Struct, frozen=True, kw_only=True):
    """Facts (rows) by environments (columns)."""

    columns: tuple[str, ...]
    rows: tuple[EnvironmentRow, ...]


def environment_table(environments: Sequence[RunEnvironment]) -> EnvironmentTable:
    """Flatten the fingerprints into a table, without facts that have no value in any environment."""
    flat = [dict(_flatten("", _told(environment))) for environment in environments]
    seen = dict.fromkeys(key for facts in flat for key, value in facts.items() if value)
    # In order of first appearance, but facts of one top-level key stay together.
    tops = {top: rank for rank, top in enumerate(dict.fromkeys(_top(key) for key in seen))}
    keys = sorted(seen, key=lambda key: tops[_top(key)])
    names = [environment.target for environment in environments]
    columns = tuple(f"{e.target} ({e.run})" if names.count(e.target) > 1 else e.target for e in environments)
    rows = (
        EnvironmentRow(key=key, values=values, same=len(values) > 1 and len(set(values)) == 1)
        for key in keys
        for values in [tuple(facts.get(key, "") for facts in flat)]
    )
    return EnvironmentTable(columns=columns, rows=tuple(rows))


def _told(environment: RunEnvironment) -> dict[str, object]:
    """Return a fingerprint without the declared kernels: hundreds, which the pages *Operators* have."""
    return {key: value for key, value in environment.fingerprint.items() if key != KERNELS}


def _top(key: str) -> str:
    return key.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]


def _flatten(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flatten(f"{path}.{key}" if path else str(key), inner)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, inner in enumerate(value):
            yield from _flatten(f"{path}[{index}]", inner)
    else:
        yield path, _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_scalar(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None or value == {} else str(value)
