"""Words of a later version that this version does not know: each is reported in one line."""

import re

import msgspec

_ENUM = re.compile(r"Invalid enum value (.+?)(?: - at `\$\.?(.*)`)?", re.DOTALL)

UPDATE = "update ort-ep-harness to read it"


def what_is_wrong(error: msgspec.ValidationError) -> str:
    """Return what is wrong with a file or with a line: an unknown word, or msgspec's message."""
    found = _ENUM.fullmatch(str(error))
    return unknown_word(found[1], found[2] or "") if found else str(error)


def unknown_word(word: str, key: str) -> str:
    """Return a line about a quoted word that this version does not know; ``key`` is its key, or empty."""
    where = f"`{key}` is {word}" if key else word
    return f"{where}, a word that this version does not know: {UPDATE}"
