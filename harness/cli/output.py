"""How commands print: lines and JSON on standard output, progress on standard error."""

import sys
import textwrap
from collections.abc import Iterable

import msgspec

from harness.core.text.visible_text import WIDTH, visible
from harness.report.words.inert import inert_json

DAY_S = 86400.0
MIB = 1 << 20


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to read; control characters become visible."""
    sys.stdout.write("".join(f"{visible(line)}\n" for line in lines))
    sys.stdout.flush()


def print_json(value: object) -> None:
    """Print a value as indented JSON, in ASCII."""
    sys.stdout.write(msgspec.json.format(inert_json(value)).decode() + "\n")


def print_result(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a value as JSON, or the lines about it."""
    if as_json:
        print_json(value)
    else:
        print_lines(lines)


def notify(text: str) -> None:
    """Print one line to standard error, apart from the command's result."""
    sys.stderr.write(visible(text) + "\n")


def wrapped(text: str, first: str = "", indent: str | None = None) -> list[str]:
    """Wrap a text to 80 columns; further lines are indented by the width of ``first``, or by two columns."""
    rest = " " * (len(first) or 2) if indent is None else indent
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
