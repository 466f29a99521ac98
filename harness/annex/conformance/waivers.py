"""Waivers: the owner's words about cases that do not pass, in a TOML file, ``[[waiver]]`` each."""

import functools
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.annex.conformance.submission import Waiver
from harness.core.files.reading import MOST_SETTINGS, read_regular
from harness.core.text.errors import Problem, UsageError, one_line
from harness.core.text.globs import glob_matcher, only_stars
from harness.plan.matrix import read_toml

_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*waiver[ \t]*\]\]", re.MULTILINE)
_ISSUE = re.compile(r"https?://[^\s/]+/\S*")

_EXAMPLE = """case, issue, expires and words; expires is a date such as 2027-03-31"""


def load_waivers(path: Path, labels: tuple[str, ...]) -> tuple[Waiver, ...]:
    """Return the waivers of a file; a waiver that matches no label of the profile's cases is an error.

    Raises:
        UsageError: The file cannot be read, or some waiver is wrong; all problems, each with its line.
    """
    table = read_toml(path)
    text = read_regular(path, MOST_SETTINGS).decode("utf-8-sig")
    lines = [text.count("\n", 0, found.start()) + 1 for found in _HEADER.finditer(text)]
    entries = table.get("waiver")
    if set(table) != {"waiver"} or not isinstance(entries, list):
        raise UsageError.at(path, "expected [[waiver]] entries and nothing else", _EXAMPLE)
    waivers, problems = [], []
    for number, entry in enumerate(entries):
        line = lines[number] if len(lines) == len(entries) else None
        where = f"{path}: line {line}" if line else f"{path}: waiver[{number}]"
        try:
            waiver = msgspec.convert(entry, Waiver, strict=True)
        except msgspec.ValidationError as error:
            problems.append(Problem(where=where, what=one_line(error), hint=_EXAMPLE))
            continue
        if unknown := sorted(set(entry) - set(Waiver.__struct_fields__)):
            problems.append(Problem(where=where, what=f"there is no key {unknown[0]!r}", hint=_EXAMPLE))
        problems += _faults(waiver, where, labels)
        waivers.append(waiver)
    if problems:
        raise UsageError(*problems)
    return tuple(waivers)


def covers(waiver: Waiver, label: str) -> bool:
    """Return whether a waiver is about the case of this label; ``*`` stands for any characters."""
    return _matcher(waiver.case)(label)


@functools.lru_cache(maxsize=256)
def _matcher(case: str) -> Callable[[str], bool]:
    return glob_matcher((only_stars(case),))


def _faults(waiver: Waiver, where: str, labels: tuple[str, ...]) -> list[Problem]:
    problems = []
    if not _ISSUE.fullmatch(waiver.issue):
        problems.append(Problem(where=where, what=f"issue is no URL: {waiver.issue!r}", hint=_EXAMPLE))
    if not waiver.words.strip():
        problems.append(Problem(where=where, what="words are empty", hint="say why the case does not pass"))
    if not any(covers(waiver, label) for label in labels):
        hint = "ep-harness profiles show lists the cases"
        problems.append(Problem(where=where, what=f"no case is named {waiver.case!r}", hint=hint))
    return problems
