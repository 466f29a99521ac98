"""Remove what a submission need not reveal: folders, and the names of an account and a host."""

import re
from typing import Any

import msgspec

from harness.places.own_names import own_hosts, own_users, without_names

_FOLDERS = re.compile(
    r"""(?:(?<![\w.~/\\])                    # neither the rest of a word nor of a URL,
           |(?<=^-[A-Za-z])|(?<=\s-[A-Za-z]))  # but behind -L and the like
        (?:file:///?)?
        (?:[A-Za-z]:[\\/]|\\\\|~[\\/]|/(?!/))  # C:\, \\server, ~/, /
        (?:[^\s"'/\\:;,=<>|]+[\\/])+""",
    re.VERBOSE,
)
"""The folders of an absolute path, with the slash before the last name."""

_WHOLE = re.compile(r"""(?:[A-Za-z]:[\\/]|\\\\|/)[^\n"':;,<>|]*[\\/]""")
"""The folders of a text that consists of one path, whose names may have blanks."""

_FREE_TEXTS = frozenset({"reason", "message", "note", "error", "teardown"})
"""Keys of a record, at any depth, whose values a provider or a library wrote. Others are names of tensors or
cases, which may look like folders."""


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


def scrubbed_text(text: str) -> str:
    """Return a free text without folders, and without the names of this account and host."""
    return without_names(without_folders(text), own_users(), own_hosts())


def scrubbed_line(line: bytes) -> bytes:
    """Return a line of ``records.jsonl`` whose free texts are scrubbed."""
    return msgspec.json.encode(_scrubbed_texts(msgspec.json.decode(line)))


def _scrubbed_texts(value: Any, *, is_free: bool = False) -> Any:
    if isinstance(value, str):
        return scrubbed_text(value) if is_free else value
    if isinstance(value, dict):
        return {key: _scrubbed_texts(below, is_free=key in _FREE_TEXTS) for key, below in value.items()}
    if isinstance(value, list):
        return [_scrubbed_texts(below, is_free=is_free) for below in value]
    return value
