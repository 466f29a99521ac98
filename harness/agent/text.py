"""Texts and values of unknown origin, made fit for a message."""

from __future__ import annotations

from typing import Any

OUTPUT_LIMIT = 16384  # bytes of captured native output kept for one cell, from its head and its tail


def clean(text: object, limit: int = 4000) -> str:
    """Text that can be encoded, of bounded length, of an object whose own idea of text may be broken."""
    try:
        shown = str(text)
    except Exception as error:  # noqa: BLE001 - such as an exception whose message is not UTF-8
        shown = "%s without a readable text (%s)" % (type(text).__name__, type(error).__name__)
    return shown[:limit].encode("utf-8", "replace").decode("utf-8")


def sendable(value: Any) -> Any:
    """The same value out of what a channel can carry, whatever names and versions a provider gives."""
    if value is None or type(value) in (bool, int, float, bytes):
        return value
    if isinstance(value, dict):
        return {sendable(key): sendable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [sendable(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if type(value) is str and value.isascii() and len(value) <= OUTPUT_LIMIT * 2:  # as nearly all are
        return value
    return clean(value, limit=OUTPUT_LIMIT * 2)
