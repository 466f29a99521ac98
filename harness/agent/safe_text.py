"""Texts and values of unknown origin, made safe for a message."""

from __future__ import annotations

import math
from typing import Any

OUTPUT_LIMIT = 16384  # bytes of captured output for one cell, from its head and its tail

_PLAIN = frozenset({bool, int, float, bytes})


def clean(text: object, limit: int = 4000) -> str:
    """Return an object's text, encodable and of bounded length, even if its ``__str__`` fails.

    Head and tail of a longer text stay: the cause of nested errors comes last.
    """
    try:
        shown = str(text)
    except Exception as error:  # noqa: BLE001 - such as an exception whose message is not UTF-8
        shown = "%s without a readable text (%s)" % (type(text).__name__, type(error).__name__)
    if len(shown) > limit:
        tail = limit // 2
        shown = shown[: limit - tail] + shown[len(shown) - tail :]
    return shown.encode("utf-8", "replace").decode("utf-8")


def sendable(value: Any) -> Any:
    """Return the same value with texts that can be encoded, whatever a provider's names contain."""
    kind = type(value)
    if kind is str and value.isascii() and len(value) <= OUTPUT_LIMIT * 2:  # nearly always
        return value
    if value is None or kind in _PLAIN:
        return value
    if isinstance(value, dict):
        return {sendable(key): sendable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [sendable(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return clean(value, limit=OUTPUT_LIMIT * 2)


def finite(value: Any) -> Any:
    """Return the same value with numbers that JSON lacks as text, such as ``inf``."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
