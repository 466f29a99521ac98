"""Names and messages of models and providers, which may hold anything, made inert for each format."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible

_MAX_CODE = 300
_MAX_CSV = 2_000
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - the beginnings of a formula
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_NOT_PLAIN = re.compile(r"[<\x7f]|[^\x00-\x7f]+")


def code(text: object) -> str:
    """Return text as inline code of Markdown, without effect of links, images, mentions, emphasis or HTML.

    If the text has a character that ends a code span or a table cell, the result is HTML, with all
    punctuation as character references.
    """
    line = one_line(visible(str(text)), _MAX_CODE)
    if not line:
        return ""
    if any(mark in line for mark in "`|\\"):
        return f"<code>{_PUNCTUATION.sub(lambda mark: f'&#{ord(mark[0])};', line)}</code>"
    return f"`{line}`"


ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%-]*[A-Za-z0-9/=_-]")
"""An address in a text, without punctuation that ends a sentence, quotes or brackets."""


def linked(text: object) -> str:
    """Do what ``code`` does; but if the whole text is an address, return a link that shows its target."""
    line = one_line(visible(str(text)), _MAX_CODE)
    return f"<{line}>" if ADDRESS.fullmatch(line) else code(line)


def heading(text: str) -> tuple[str, ...]:
    """Return the lines of a Markdown heading, with empty lines around it."""
    return ("", text, "")


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, figures: int = 0) -> Iterator[str]:
    """Yield the lines of a Markdown table; the last ``figures`` columns are right-aligned."""
    words = len(head) - figures
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * words}{'---:|' * figures}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def inert_csv(text: str) -> str:
    """Return one line, with an apostrophe before what a spreadsheet would read as a formula.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    line = one_line(visible(text), _MAX_CSV)
    return f"'{line}" if line.startswith(_FORMULA) else line


def inert_json(value: object) -> bytes:
    r"""Encode a value in one line of printable ASCII; other characters, and ``<``, become ``\uXXXX``."""
    # JSON has these characters only in its texts.
    return _NOT_PLAIN.sub(_escaped, msgspec.json.encode(value).decode()).encode() + b"\n"


def plain_line(text: object, limit: int = 300) -> str:
    """Return one visible line for a log, in which GitHub and Azure find no command.

    Both look for ``##[`` and ``##vso[`` anywhere in a line, and for ``::`` at its beginning.
    """
    line = one_line(visible(str(text)), limit)
    return line.replace("##", "# #").replace("::", ": :")


def annotation(level: str, title: str, message: str) -> str:
    """Return a GitHub workflow command that shows a remark, any text, on the run's page.

    ``level`` is ``error``, ``warning`` or ``notice``.
    """
    return f"::{level} title={_property(title)}::{_data(message)}"


def _escaped(match: re.Match[str]) -> str:
    return re.sub("....", r"\\u\g<0>", match[0].encode("utf-16-be").hex())


def _data(text: str) -> str:
    # https://github.com/actions/toolkit, packages/core/src/command.ts: escapeData, escapeProperty.
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")
