"""The index of all models in the first file of their table: by it, a filter and an order cover every file.

A square takes one letter, so the index of 100,000 cells needs some 60 kB.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec
from markupsafe import Markup

from harness.core.text.visible_text import visible
from harness.report.pages.page import packed_text

_FIRST_LETTER = ord("a")


class IndexedRow(Protocol):
    """A model with a look for each column; None without a record."""

    @property
    def model(self) -> str:
        """Its name."""

    @property
    def looks(self) -> Sequence[tuple[str, str] | None]:
        """``(classes, text)`` of each square; None without a record."""


def model_index(suites: Iterable[tuple[str, Iterable[IndexedRow]]]) -> Markup:
    """Return base64 of zlib of JSON.

    It has the looks of squares, and for each suite its name and ``[model, a letter for each column]`` of its
    models. A space is a square without a record.
    """
    letters: dict[tuple[str, str], str] = {}
    told = []
    for name, rows in suites:
        found = []
        for row in rows:
            text = [
                " " if look is None else letters.setdefault(look, chr(_FIRST_LETTER + len(letters)))
                for look in row.looks
            ]
            found.append((visible(row.model), "".join(text)))
        told.append((visible(name), found))
    return packed_text(msgspec.json.encode({"looks": list(letters), "suites": told}), 9)
