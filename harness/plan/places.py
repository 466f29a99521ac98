"""The places of a target: interchangeable runtimes, any of which may run any of its cells."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from harness.core.files.structure import FilePlace, deviations
from harness.core.text.errors import Problem, UsageError
from harness.plan.places_entry import IN_WORDS, PATTERN, PlacesTable, PlaceTable, WayTable
from harness.plan.selector import text

NUMBERED = "place-{n}"
"""The name of a counted place if the matrix gives none."""

_NUMBER, NAME = "{n}", "{name}"
"""Placeholders for the number of a counted place, and for its name in a command."""

_MOST = 10000
"""Places of a target."""

_SOURCES = ("each", "count", "file", "list")
_WAY = WayTable.__struct_fields__


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One place; fields as in ``PlaceTable``, values as text."""

    name: str
    ssh: str | None = None
    command: str | None = None
    python: str | None = None
    adb: str | None = None
    channel: str | None = None
    env: dict[str, str] = {}
    device: dict[str, str] = {}

    @property
    def is_elsewhere(self) -> bool:
        """Return whether it has its own runtime, behind ssh, adb or a command."""
        return self.ssh is not None or self.adb is not None or self.command is not None


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The places of a target; fields as in ``PlacesTable``.

    Attributes:
        each: The places that the matrix itself names.
        file: Absolute path of a file that lists them.
        list: A command that lists them.
        folder: Where the commands run: that of the matrix file.
    """

    each: tuple[Place, ...] = ()
    file: str | None = None
    list: tuple[str, ...] = ()
    identical: bool = False
    acquire: tuple[str, ...] = ()
    release: tuple[str, ...] = ()
    limit_s: float = 60.0
    folder: str = ""


def places_from(written: object, folder: Path) -> Places:
    """Return the places of a checked ``places`` of a target; file and command are not read yet."""
    table: Mapping[str, Any] = {"each": written} if isinstance(written, list) else dict(written)  # type: ignore[call-overload]
    if "count" in table:
        way = {key: table[key] for key in ("name", *_WAY) if key in table}
        way.setdefault("name", NUMBERED)
        each = tuple(_place(_numbered(way, number)) for number in range(1, table["count"] + 1))
    else:
        shared = {key: table[key] for key in _WAY if key in table}
        each = tuple(_place(one, shared) for one in table.get("each", ()))
    file = table.get("file")
    return Places(
        each=each,
        file=None if file is None else str(folder / file),
        list=tuple(table.get("list", ())),
        identical=table.get("identical", False),
        acquire=tuple(table.get("acquire", ())),
        release=tuple(table.get("release", ())),
        limit_s=table.get("limit_s", PlacesTable.__struct_defaults__[-1]),
        folder=str(folder),
    )


def places_of_json(data: bytes, where: str) -> tuple[Place, ...]:
    """Return the places that a JSON text lists.

    Raises:
        UsageError: It is not a list of places.
    """
    try:
        values = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError.at(where, f"it is no JSON: {str(error)[:100]}", _EXAMPLE) from error
    place = FilePlace(where)
    kind = inspect.type_info(list[PlaceTable])
    problems = [*deviations(values, kind, place)]
    if not problems:
        problems = [*place_problems(values, place)]
    if not problems and not 0 < len(values) <= _MOST:
        problems = [Problem(where=where, what=f"got {len(values):,} places", hint=f"list 1 to {_MOST:,}")]
    if problems:
        raise UsageError(*problems)
    return tuple(map(_place, values))


def places_problems(written: object, place: FilePlace) -> Iterator[Problem]:
    """Yield contradictions in ``places`` of a target; values of a wrong type are skipped."""
    if isinstance(written, list):
        yield from place_problems(written, place)
    if not isinstance(written, dict):
        return
    given = [key for key in _SOURCES if key in written]
    if len(given) != 1:
        what = f"got {' and '.join(given)}, which exclude each other" if given else "no places are named"
        yield place.problem(what, f"give one of {', '.join(_SOURCES)}")
    if "name" in written and "count" not in written:
        yield place.key("name").problem("this has no effect without `count`", "remove it")
    name = written.get("name", NUMBERED)
    if "count" in written and isinstance(name, str) and _NUMBER not in name and written["count"] != 1:
        what = f"all places would have the name {name!r}"
        yield place.key("name").problem(what, f'add {_NUMBER}: "{name}-{_NUMBER}"')
    if "count" in written and isinstance(name, str) and not re.fullmatch(PATTERN, name.replace(_NUMBER, "1")):
        yield place.key("name").problem(f"got {name!r}", f"use {IN_WORDS}")
    if "release" in written and "acquire" not in written:
        what = "a place that was not acquired would be released"
        yield place.key("release").problem(what, 'add `acquire`, such as ["true"]')
    for key in _WAY:
        if key in written and given in (["file"], ["list"]):
            yield place.key(key).problem(f"`{given[0]}` has that for each place", "remove it")
    yield from _way_problems(written, place)
    yield from place_problems(written.get("each"), place.key("each"))


def place_problems(values: object, place: FilePlace) -> Iterator[Problem]:
    """Yield contradictions in a list of places, and repeated names."""
    seen: set[str] = set()
    for index, one in enumerate(values if isinstance(values, list) else ()):
        here = place.item(index)
        if not isinstance(one, dict):
            continue
        yield from _way_problems(one, here)
        name = one.get("name")
        if isinstance(name, str) and name in seen:
            what = f"another place has the name {name!r}"
            yield here.key("name").problem(what, "give each place its own name")
        seen.add(name if isinstance(name, str) else "")


def _way_problems(table: dict[str, Any], place: FilePlace) -> Iterator[Problem]:
    given = [key for key in ("ssh", "adb", "command") if key in table]
    if len(given) > 1:
        yield place.problem(f"got {' and '.join(given)}, which exclude each other", "keep one of them")
    for key, needed in (("python", ("ssh",)), ("channel", ("ssh", "adb", "command"))):
        if key in table and not any(each in table for each in needed):
            what = f"this has no effect without {' or '.join(f'`{each}`' for each in needed)}"
            yield place.key(key).problem(what, "add that, or remove this")


def _place(written: Mapping[str, Any], shared: Mapping[str, Any] | None = None) -> Place:
    own = {**(shared or {}), **written}
    for key in ("env", "device"):
        both = {**(shared or {}).get(key, {}), **written.get(key, {})}
        own[key] = {name: text(value) for name, value in both.items()}
    return msgspec.convert(own, Place)


def _numbered(value: Any, number: int) -> Any:
    if isinstance(value, str):
        return value.replace(_NUMBER, str(number))
    if isinstance(value, Mapping):
        return {key: _numbered(each, number) for key, each in value.items()}
    return value


_EXAMPLE = 'it has to be a list such as [{"name": "board-1", "ssh": "user@board-1"}]'
