"""Text in Markdown, where names and messages may hold anything."""

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.core.errors import one_line
from harness.core.text import visible

MAX_CHARS = 300


def code(text: object) -> str:
    """Text as inline code: no link, image, mention, emphasis or HTML in it does anything.

    Where it holds what ends a code span or a table's cell, it is HTML, with everything but letters, digits
    and spaces as character references.
    """
    line = one_line(visible(str(text)), MAX_CHARS)
    if not line:
        return ""
    if any(mark in line for mark in "`|\\"):
        return f"<code>{_PUNCTUATION.sub(_reference, line)}</code>"
    return f"`{line}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, figures: int = 0) -> Iterator[str]:
    """The lines of a table; its cells are Markdown already.

    Args:
        head: The headings.
        rows: As many cells each.
        figures: How many columns, counted from the right, hold figures, and are set flush right.
    """
    words = len(head) - figures
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * words}{'---:|' * figures}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _reference(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
