"""Globs: the one matcher for everything that a matrix, a waiver or an argument selects.

Its time is linear in the number of stars, so that a glob from a stranger cannot hang a command. The
expressions of ``fnmatch`` never give back what a star has matched, and try nothing twice.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence

Globs = tuple[str, ...]
"""Alternatives: at least one has to match."""

MOST_LENGTH = 4096
"""Largest length of a glob in characters; a longer one matches nothing, as no name is so long.

Compiling takes 30 us a star.
"""


def glob_matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate: whether at least one glob matches the whole text. Without globs every text matches.

    Globs are those of ``fnmatch``, case-sensitive: ``*`` matches any text, slashes included, ``?`` one
    character, ``[abc]`` one of these.
    """
    if not globs:
        return lambda _: True
    known = [fnmatch.translate(glob) for glob in globs if len(glob) <= MOST_LENGTH]
    if not known:
        return lambda _: False
    match = re.compile("|".join(known)).match
    return lambda text: match(text) is not None


def only_stars(glob: str) -> str:
    """Return a glob in which only ``*`` is special, as in waivers."""
    return re.sub(r"[?[]", r"[\g<0>]", glob)
