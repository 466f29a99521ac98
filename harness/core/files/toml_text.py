"""TOML that may come from a stranger: Python's reader needs time quadratic in the number of a key's parts."""

import re
import tomllib
from typing import Any

MOST_DOTS = 200
"""Largest number of dots between two signs that end a key: no key of ours has more than four parts."""

_SEGMENT = re.compile(r"[^=,{}\[\]\n]+")

_AFTER_QUOTE = re.compile(r"""["'][ \t]*\.[ \t]*["'\w]""")
"""A dot behind a quoted part, which may contain any sign."""


def toml_table(content: bytes) -> dict[str, Any]:
    """Return the table of a TOML file in UTF-8.

    A byte order mark, which some Windows editors write, is skipped.

    Raises:
        ValueError: It is not UTF-8 or no TOML, or a key has too many parts.
        RecursionError: It is nested too deeply.
    """
    text = content.decode("utf-8-sig")
    if _has_many_parts(text):
        raise tomllib.TOMLDecodeError(f"a key of more than {MOST_DOTS} parts")
    return tomllib.loads(text)


def _has_many_parts(text: str) -> bool:
    if text.count(".") <= MOST_DOTS:
        return False
    if any(one[0].count(".") > MOST_DOTS for one in _SEGMENT.finditer(text)):
        return True
    return any(len(_AFTER_QUOTE.findall(line)) > MOST_DOTS for line in text.split("\n"))
