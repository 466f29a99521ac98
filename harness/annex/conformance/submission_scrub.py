"""Remove what a submission need not reveal: the folders of the vendor's machine."""

import re
from typing import Any

_FOLDERS = re.compile(
    r"""(?<![\w.~/\\])                       # neither the rest of a word nor of a URL
        (?:[A-Za-z]:[\\/]|\\\\|~[\\/]|/(?!/))  # C:\, \\server, ~/, /
        (?:[^\s"'/\\:;,=<>|]+[\\/])+""",
    re.VERBOSE,
)
"""The folders of an absolute path, with the slash before the last name."""

_WHOLE = re.compile(r"""(?:[A-Za-z]:[\\/]|\\\\|/)[^\n"':;,<>|]*[\\/]""")
"""The folders of a text that consists of one path, whose names may have blanks."""


def without_folders(text: str) -> str:
    """Return a text in which each absolute path is reduced to its last name; URLs and relative paths stay."""
    whole = _WHOLE.match(text)
    if whole and not re.search(r"[\n\"':;,<>|]", text[whole.end() :]):
        return text[whole.end() :]
    return _FOLDERS.sub("", text)


def scrubbed(value: Any) -> Any:
    """Return plain JSON values without any absolute path in their texts."""
    if isinstance(value, str):
        return without_folders(value)
    if isinstance(value, dict):
        return {key: scrubbed(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(below) for below in value]
    return value
