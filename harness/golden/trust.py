"""Models for which ``onnx.reference`` is trusted: those of operators for which it was checked.

``reference_trust.toml`` lists these operators. ``benchmarks/reference_trust`` generates it;
``docs/reference/references.md`` has all results of the check.
"""

import functools
import importlib.metadata
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

TABLE = Path(__file__).with_name("reference_trust.toml")

LISTED = 3
"""Most operators that a reason names; it counts the others."""

Versions = dict[str, tuple[int, ...]]
"""Operator, as ``harness.corpus.model.used_operators`` names it -> ``since_version`` of schemas."""


class Trust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Operators for which ``onnx.reference`` is right.

    Attributes:
        onnx: The version of onnx that was checked.
        float32: For models that compute in float32, or in integers only.
        float64: For models that compute in float64.
    """

    onnx: str
    float32: Versions
    float64: Versions


@functools.cache
def shipped_trust() -> Trust:
    """Return the shipped table."""
    return msgspec.convert(tomllib.loads(TABLE.read_text("utf-8")), Trust)


def trusted_in_float64(
    operators: Mapping[str, Collection[int]], trust: Trust | None = None, onnx_version: str = ""
) -> list[str]:
    """Return the operators of a model that ``onnx.reference`` computes rightly in float64, as ``Conv-11``.

    Another version of onnx than the checked one is not trusted for any. Arguments are as of ``doubt_about``.
    """
    trust = trust or shipped_trust()
    if (onnx_version or importlib.metadata.version("onnx")) != trust.onnx:
        return []
    return [
        f"{name}-{since}"
        for name, versions in sorted(operators.items())
        for since in sorted(versions)
        if since in trust.float64.get(name, ())
    ]


def doubt_about(
    operators: Mapping[str, Collection[int]],
    float_types: Collection[str],
    trust: Trust | None = None,
    onnx_version: str = "",
) -> str:
    """Return why ``onnx.reference`` is not trusted for a model; empty if it is.

    Args:
        operators: Operators of the model, as ``harness.corpus.model.used_operators`` returns them.
        float_types: Floating element types of the model. The check covers float32 and float64 only.
        trust: What was checked; the shipped table if None.
        onnx_version: The version of onnx that is used; the installed one if empty. No other version than the
            checked one is trusted.
    """
    trust = trust or shipped_trust()
    used = onnx_version or importlib.metadata.version("onnx")
    if used != trust.onnx:
        return f"it was checked in onnx {trust.onnx}, and this is onnx {used}"
    checked: dict[str, Versions] = {"float32": trust.float32, "float64": trust.float64}
    unchecked = sorted(set(float_types) - checked.keys())
    if unchecked:
        return f"it is not checked in {', '.join(unchecked)}"
    tables = [checked[each] for each in set(float_types) or {"float32"}]
    wrong = [
        f"{name}-{since}" if since else name
        for name, versions in sorted(operators.items())
        for since in sorted(versions)
        if not all(since in table.get(name, ()) for table in tables)
    ]
    more = f" and {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
    return f"it is wrong, or not checked, for {', '.join(wrong[:LISTED])}{more}" if wrong else ""
