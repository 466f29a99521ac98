"""The page of the benchmarks: marked places in it hold the rows that scripts print. Text in, text out.

A place begins with ``<!-- measured: NAME -->`` or, for the tables about all scripts, ``<!-- limits -->``,
``<!-- steps -->`` and ``<!-- machines -->``; it ends with ``<!-- end -->``. Machines go by letters. Each
table, and each row of the limits, names its machine, so that none mixes two without showing it.
"""

import re
import string
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_VERDICT = re.compile(
    r"(?P<what>.+): (?P<measured>\S+), (?P<wanted>at (?:most|least) \S+) wanted: (?P<met>\w+)"
)
_LIMITS_HEAD = ("limit", "wanted", "measured", "script", "machine")
_MACHINES_HEAD = ("machine", "")
_UNKNOWN = "?"


class Limit(NamedTuple):
    """A figure that has a limit, as ``verdict`` of processes.py prints it; ``missed: `` is before a miss."""

    what: str
    wanted: str
    measured: str


class Printed(NamedTuple):
    """What a script printed: the rows of its tables, a blank line between two, and its limits.

    ``pictures`` are the names of those drawn from the rows, and what each shows.
    """

    rows: tuple[str, ...]
    limits: tuple[Limit, ...]
    pictures: tuple[tuple[str, str], ...] = ()


def read_printed(text: str) -> Printed:
    """Return the tables and limits of an output; other lines are for people who watch."""
    rows: list[str] = []
    limits = []
    for line in text.splitlines():
        if line.startswith("|"):
            rows.append(line)
        elif rows and rows[-1]:
            rows.append("")
        if found := _VERDICT.fullmatch(line):
            missed = "" if found["met"] == "met" else "missed: "
            limits.append(Limit(found["what"], found["wanted"], missed + found["measured"]))
    while rows and not rows[-1]:
        rows.pop()
    return Printed(tuple(rows), tuple(limits))


def with_measured(page: str, name: str, printed: Printed, machine: str, load: str) -> str:
    """Return the page with what a script has printed on a machine, in place of all that it had of the script.

    Raises:
        ValueError: The page has no place for it.
    """
    page, letter = _with_machine(page, machine)
    mark, script = f"measured: {name}", f"`{name}`"
    if printed.rows and f"<!-- {mark} -->" in page:
        lines = [f"Machine {letter}, load {load}.", "", *printed.rows]
        for file, title in printed.pictures:
            lines += ["", f"![{title}](../images/{file})"]
        page = _put(page, mark, "\n".join(lines))
    if printed.limits:
        rows = [row for row in _rows(page, "limits") if row[3] != script]
        rows += [(*one, script, letter) for one in printed.limits]
        page = _put(page, "limits", _table(_LIMITS_HEAD, sorted(rows, key=lambda row: row[3])))
    return _without_unused(page)


def with_steps(page: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the page with the table of all scripts, whose first column is the name; adds their machines."""
    full = [(*row, _machine_of(page, row[0])) for row in rows]
    return _put(page, "steps", _table((*head, "machine"), full))


def _machine_of(page: str, name: str) -> str:
    """Return the letter of the machine that measured a script; a question mark if the page does not tell."""
    letters = {row[4] for row in _rows(page, "limits") if row[3] == name}
    plain = name.strip("`")
    if f"<!-- measured: {plain} -->" in page:
        letters.update(re.findall(r"^Machine (\w)", _content(page, f"measured: {plain}"), re.MULTILINE))
    return ", ".join(sorted(letters)) or _UNKNOWN


def _with_machine(page: str, machine: str) -> tuple[str, str]:
    """Return the page with a machine among its machines, and the letter of the machine."""
    known = {row[1]: row[0] for row in _rows(page, "machines")}
    if machine not in known:
        known[machine] = next(one for one in string.ascii_uppercase if one not in known.values())
        rows = sorted((letter, text) for text, letter in known.items())
        page = _put(page, "machines", _table(_MACHINES_HEAD, rows))
    return page, known[machine]


def _without_unused(page: str) -> str:
    """Return the page without the machines that it names nowhere."""
    used = {row[4] for row in _rows(page, "limits")} | set(re.findall(r"[Mm]achine ([A-Z])\b", page))
    rows = [row for row in _rows(page, "machines") if row[0] in used]
    return _put(page, "machines", _table(_MACHINES_HEAD, rows))


def _content(page: str, mark: str) -> str:
    """Return the text of a place."""
    _, found, after = page.partition(f"<!-- {mark} -->\n")
    text, end, _ = after.partition("<!-- end -->")
    if not (found and end):
        raise ValueError(f"the page has no place <!-- {mark} --> ... <!-- end -->")
    return text


def _put(page: str, mark: str, text: str) -> str:
    begin = f"<!-- {mark} -->\n"
    return page.replace(f"{begin}{_content(page, mark)}", f"{begin}\n{text}\n\n", 1)


def _rows(page: str, mark: str) -> list[tuple[str, ...]]:
    """Return the rows of a table in a place, without its head."""
    lines = [line for line in _content(page, mark).splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines[2:]]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
