"""Read JSON so that no two readers can disagree: UTF-8, each key once, finite numbers, known fields only."""

import json
import math
from typing import Any, NoReturn, TypeVar

import msgspec

from harness.annex.conformance.verify.finding import Finding, finding
from harness.core.text.later_words import what_is_wrong

_MOST_LINE = 8 << 20
_DIGITS = 400
"""Largest number of characters of a number; the longest float64 that a writer produces has some 330."""

_Form = TypeVar("_Form")


class _TwiceError(ValueError):
    """An object has a key twice."""


def strict_decode(content: bytes, form: type[_Form], where: str) -> tuple[_Form | None, Any, Finding | None]:
    """Return a JSON value in its form, the same as plain objects, and what is wrong.

    The value is None if it is invalid.
    """
    if len(content) > _MOST_LINE:
        return None, None, finding("not-json", where, f"more than {_MOST_LINE:,} bytes")
    try:
        plain = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
        value = msgspec.json.decode(content, type=form)
        written = json.loads(msgspec.json.encode(value))
    except _TwiceError as error:
        return None, None, finding("duplicate-key", where, error)
    except msgspec.ValidationError as error:
        return None, None, finding("other-form", where, what_is_wrong(error))
    except RecursionError:
        return None, None, finding("not-json", where, "nested too deeply")
    except ValueError as error:  # errors of both readers, and of UTF-8
        return None, None, finding("not-json", where, error)
    unknown = _unknown(plain, written, "$")
    return value, plain, finding("other-form", where, f"unknown field {unknown}") if unknown else None


def strict_convert(plain: Any, form: type[_Form], where: str) -> tuple[_Form | None, Finding | None]:
    """Return plain values of strict JSON in a form, and what is wrong; None for invalid ones."""
    try:
        value = msgspec.convert(plain, form)
    except msgspec.ValidationError as error:
        return None, finding("other-form", where, what_is_wrong(error))
    unknown = _unknown(plain, msgspec.to_builtins(value), "$")
    return value, finding("other-form", where, f"unknown field {unknown}") if unknown else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _float(text: str) -> float:
    number = float(text) if len(text) <= _DIGITS else math.inf
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


def _int(text: str) -> int:
    number = int(text) if len(text) <= _DIGITS else 1 << 80
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


def _unknown(plain: Any, written: Any, path: str) -> str:
    """Return the path of a field that the form does not have; defaults may be written or left out."""
    if isinstance(plain, dict) and isinstance(written, dict):
        for key, value in plain.items():
            if key in written:
                if below := _unknown(value, written[key], f"{path}.{key}"):
                    return below
            elif value not in ({}, [], "", None, False, 0):
                return f"{path}.{key}"
    if isinstance(plain, list) and isinstance(written, list | tuple):
        pairs = enumerate(zip(plain, written, strict=False))
        return next((found for at, (a, b) in pairs if (found := _unknown(a, b, f"{path}[{at}]"))), "")
    return ""
