"""Globs: the one matcher of everything that a matrix, a waiver or an argument selects by.

It takes time linear in a glob's stars, so that one from a stranger cannot hang a command: the expressions of
``fnmatch`` give up nothing that a star has taken, and try nothing twice.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence

Globs = tuple[str, ...]
"""Alternatives: one of them has to match."""

MOST_LENGTH = 4096
"""Characters of a glob; a longer one matches nothing, as no name is so long. Compiling takes 30 us a star."""


def glob_matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate: one of the globs matches the whole text. Without globs every text matches.

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
    """Return a glob in which ``*`` alone stands for other characters, as in waivers."""
    return re.sub(r"[?[]", r"[\g<0>]", glob)
