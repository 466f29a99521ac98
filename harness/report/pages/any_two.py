"""The data of a page that compares any two sides: results of runs, devices or versions for the same cases.

A side takes one letter for each case, so the page stays small with many of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from markupsafe import Markup

from harness.core.records.verdict import Verdict
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.pages.page import packed_text
from harness.report.view import Report
from harness.report.words.tone import SYMBOLS, spoken, tone

_MOST_CHARS = 120
"""Longest name of a side."""

_FIRST_LETTER = ord("a")
_NOT_PLANNED = ("not planned", "missing", "open")


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One side.

    Attributes:
        id: What an address has: the same in any report or site of these results.
        group: Index into the groups.
        name: For people.
        verdicts: A letter for each case: an index into the table of verdicts, starting at ``a``.
        linked: Whether another page has its cases.
    """

    id: str
    group: int
    name: str
    verdicts: str
    linked: bool = True


class ComparedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Sides that belong together, such as the versions of a provider on a device; the newest is the first.

    Attributes:
        ids: Addresses that mean its first side.
    """

    name: str
    ids: tuple[str, ...] = ()


class ComparedColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The page *Compare* of a report."""

    archive: Markup


class VerdictLetters:
    """Gives verdicts letters, in the order in which they occur.

    Attributes:
        table: ``(words, tone, standing)`` of each letter.
    """

    def __init__(self) -> None:
        self.table: list[tuple[str, str, str]] = []
        self._letters: dict[tuple[str, str, str], str] = {}

    def of(self, words: str, tones: str, standing: str) -> str:
        """Return the letter of a verdict; the standing ``passed`` is what counts as right."""
        key = (words, tones, standing)
        if key not in self._letters:
            self._letters[key] = chr(_FIRST_LETTER + len(self.table))
            self.table.append(key)
        return self._letters[key]


def compare_archive(
    cases: Sequence[str],
    letters: VerdictLetters,
    groups: Sequence[ComparedGroup],
    sides: Iterable[ComparedSide],
) -> Markup:
    """Return what the script of the page reads: base64 of zlib of JSON."""
    told = {"cases": cases, "groups": groups, "sides": list(sides), "verdicts": letters.table}
    return packed_text(msgspec.json.encode(told), 9)


def side_text(text: str) -> str:
    """Return a name as the page shows it."""
    return one_line(visible(text), _MOST_CHARS)


def compared_columns(report: Report) -> Iterator[ComparedColumns]:
    """Yield the view, if there are two sides to compare: columns, or results of other tools."""
    if len(report.columns) + len(report.beside) < 2:  # noqa: PLR2004 - two sides
        return
    results: dict[tuple[str, str, str], Mapping[str, Verdict]] = {
        (column.label, column.target, column.label): {
            f"{one.suite}/{one.model}": one.verdict for one in report.by_column[column]
        }
        for column in report.columns
    }
    own = len(results)
    results |= {(one.id, one.file, one.name or one.file): one.verdicts for one in report.beside}
    cases = [f"{cell.record.suite}/{cell.record.model}" for cell in report.cells]
    cases = list(dict.fromkeys([*cases, *(case for one in report.beside for case in one.verdicts)]))
    letters = VerdictLetters()
    groups = list(dict.fromkeys(group for _, group, _ in results))
    sides = [
        ComparedSide(
            id=address,
            group=groups.index(group),
            name=side_text(name),
            verdicts="".join(_letter(letters, found.get(case)) for case in cases),
            linked=place < own,
        )
        for place, ((address, group, name), found) in enumerate(results.items())
    ]
    named = [ComparedGroup(name=side_text(name)) for name in groups]
    yield ComparedColumns(archive=compare_archive(cases, letters, named, sides))


def _letter(letters: VerdictLetters, verdict: Verdict | None) -> str:
    if verdict is None:
        return letters.of(*_NOT_PLANNED)
    tones = tone(verdict)
    return letters.of(f"{SYMBOLS[tones]} {spoken(verdict)}", tones, verdict.family.value)
