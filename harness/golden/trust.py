"""Which models ``onnx.reference`` is believed about: those of operators for which it was checked.

``reference_trust.toml`` lists these operators. ``benchmarks/reference_trust`` made it;
``docs/reference/references.md`` has all that the check found.
"""

import functools
import importlib.metadata
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

TABLE = Path(__file__).with_name("reference_trust.toml")

LISTED = 3
"""Operators that a reason names; it counts the others."""

Versions = dict[str, tuple[int, ...]]
"""Operator, as ``harness.corpus.used_operators`` names it -> ``since_version`` of schemas."""


class Trust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table.

    Attributes:
        onnx: Version of onnx whose reference was checked.
        float32: What it is right for in models that compute in float32, or in integers only.
        float64: The same for float64.
    """

    onnx: str
    float32: Versions
    float64: Versions


@functools.cache
def shipped_trust() -> Trust:
    """Return the table that is shipped."""
    return msgspec.convert(tomllib.loads(TABLE.read_text("utf-8")), Trust)


def doubt_about(
    operators: Mapping[str, Collection[int]],
    float_types: Collection[str],
    trust: Trust | None = None,
    onnx_version: str = "",
) -> str:
    """Return why ``onnx.reference`` is not believed about a model; empty where it is.

    Args:
        operators: Of the whole model, as ``harness.corpus.used_operators`` returns them.
        float_types: Floating element types of the model. The check covers float32 and float64 only.
        trust: What was checked; the shipped table if None.
        onnx_version: The version of onnx that answers; the installed one if empty. Nothing is known about
            another version than the checked one.
    """
    trust = trust or shipped_trust()
    answering = onnx_version or importlib.metadata.version("onnx")
    if answering != trust.onnx:
        return f"it was checked in onnx {trust.onnx}, and this is onnx {answering}"
    right: dict[str, Versions] = {"float32": trust.float32, "float64": trust.float64}
    unchecked = sorted(set(float_types) - right.keys())
    if unchecked:
        return f"it is not checked in {', '.join(unchecked)}"
    tables = [right[each] for each in sorted(set(float_types)) or ["float32"]]
    wrong = [
        f"{name}-{since}" if since else name
        for name, versions in sorted(operators.items())
        for since in sorted(versions)
        if not all(since in table.get(name, ()) for table in tables)
    ]
    return f"it is wrong, or not checked, for {_listed(wrong)}" if wrong else ""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
