"""Compare names of vendors and products as people read them, after Unicode's UTS #39 and UAX #15."""

import unicodedata

from harness.annex.conformance.look_alikes import LOOK_ALIKES

_READ_AS = {ord(char): read for read, chars in LOOK_ALIKES.items() for char in chars}
_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l"})
_PAIRS = (("rn", "m"), ("vv", "w"))


def same_name(text: str) -> str:
    """Return a name without differences that do not count: width and form of characters, case, blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def as_read(text: str) -> str:
    """Return a key of a name's appearance: equal for names that people may confuse.

    Accents, marks, blanks and all characters other than letters and digits are left out.
    """
    parts = unicodedata.normalize("NFKD", text).translate(_READ_AS).casefold()
    # Case folding and the table may give characters that must again be decomposed or replaced.
    plain = unicodedata.normalize("NFKD", parts).translate(_READ_AS).translate(_ALIKE)
    word = "".join(char for char in plain if char.isalnum())
    for pair, one in _PAIRS:
        word = word.replace(pair, one)
    return word
