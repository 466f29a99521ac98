"""Check parsed TOML against declared types: every deviation with its place, not only the first.

msgspec converts and validates, but stops at the first error; people mend a file faster with the whole list.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from harness.core.errors import Problem, one_line, valid_names

OPTION = "option."
"""What a key begins with that tables with an ``option_type`` take besides their fields."""


class Place(msgspec.Struct, frozen=True):
    """Where in a file something stands: ``local.toml: target[2].provider``; items are counted from 0."""

    file: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def key(self, name: str) -> "Place":
        """The place of one key of the table that stands here."""
        bare = re.fullmatch(r"[A-Za-z0-9_-]+", name)
        spelled = name if bare else f'"{one_line(name, 60)}"'
        return Place(self.file, f"{self.path}.{spelled}" if self.path else spelled)

    def item(self, index: int) -> "Place":
        """The place of one item of the list that stands here."""
        return Place(self.file, f"{self.path}[{index}]")


def deviations(value: object, kind: inspect.Type, place: Place) -> Iterator[Problem]:
    """Everything in a parsed value that its type does not allow.

    Args:
        value: What ``tomllib`` made.
        kind: ``msgspec.inspect.type_info`` of the type. A struct's class may carry ``option_type``, the type of
            its keys that begin with ``option.``. Numbers must be finite.
        place: Where the value stands.

    Yields:
        Problems in the order of the file.
    """
    kind = _bare(kind)
    match kind:
        case inspect.StructType() if isinstance(value, dict):
            yield from _in_table(value, kind, place)
        case inspect.DictType() if isinstance(value, dict):
            for key, item in value.items():
                if not _fits(key, kind.key_type):
                    yield Problem(where=str(place.key(key)), what=f"the key must be {expected(kind.key_type)}")
                yield from deviations(item, kind.value_type, place.key(key))
        case inspect.ListType() if isinstance(value, list):
            if len(value) < (kind.min_length or 0):
                yield Problem(where=str(place), what=f"expected {expected(kind)}, got an empty one")
            for index, item in enumerate(value):
                yield from deviations(item, kind.item_type, place.item(index))
        case inspect.UnionType():
            yield from _in_union(value, kind, place)
        case inspect.LiteralType() | inspect.EnumType():
            names = _values(kind)
            # A bool equals 1 in Python, and is another thing in TOML.
            if value not in names or isinstance(value, bool):
                hint = valid_names(str(value), map(str, names), limit=len(names))
                yield Problem(where=str(place), what=f"got {shown(value)}", hint=hint)
        case _ if not _fits(value, kind):
            hint = ""
            if isinstance(kind, inspect.ListType) and isinstance(_bare(kind.item_type), inspect.StructType):
                hint = f"begin each with [[{place.path}]], in two brackets"
            yield Problem(where=str(place), what=f"expected {expected(kind)}, got {shown(value)}", hint=hint)


def expected(kind: inspect.Type) -> str:
    """A type in the words of a message: ``an integer of at least 1``."""
    if isinstance(kind, inspect.Metadata) and isinstance(kind.type, inspect.StrType) and kind.type.pattern:
        # A regular expression is no help to a reader; such a type describes itself.
        return str((kind.extra_json_schema or {})["description"])
    kind = _bare(kind)
    match kind:
        case inspect.StrType():
            return "non-empty text" if kind.min_length else "text"
        case inspect.IntType():
            return "an integer" + _bounds(kind)
        case inspect.FloatType():
            return "a finite number" + _bounds(kind)
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType():
            several = {"non-empty text": "texts", "text": "texts", "a table": "tables"}
            items = several.get(expected(kind.item_type), "values")
            return f"a non-empty list of {items}" if kind.min_length else f"a list of {items}"
        case inspect.UnionType():
            return " or ".join(expected(option) for option in kind.types)
        case inspect.LiteralType() | inspect.EnumType():
            return "one of " + ", ".join(map(str, _values(kind)))
    return "a table"


def shown(value: object) -> str:
    """A parsed value in the words of a message, in TOML's spelling, cut short where it is long."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{one_line(value, 60)}"'
        case dict():
            return "a table"
        case list():
            return "a list"
    return one_line(value, 60)


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None:
        return f" of at least {kind.ge}"
    return f" greater than {kind.gt}" if kind.gt is not None else ""


def _values(kind: inspect.LiteralType | inspect.EnumType) -> tuple[Any, ...]:
    if isinstance(kind, inspect.EnumType):
        return tuple(member.value for member in kind.cls)
    return tuple(kind.values)


def _fits(value: object, kind: inspect.Type) -> bool:
    """Whether a plain value is of a plain type, within its bounds."""
    match _bare(kind):
        case inspect.StrType(min_length=shortest, pattern=pattern):
            return (
                isinstance(value, str)
                and len(value) >= (shortest or 0)
                and (pattern is None or re.search(pattern, value) is not None)
            )
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType(gt=above, ge=least):
            return isinstance(value, int) and not isinstance(value, bool) and _within(value, above, least)
        case inspect.FloatType(gt=above, ge=least):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and math.isfinite(value) and _within(value, above, least)  # type: ignore[arg-type]
    return False


def _within(value: float, above: float | None, least: float | None) -> bool:
    return (above is None or value > above) and (least is None or value >= least)


def _in_table(table: dict[str, Any], kind: inspect.StructType, place: Place) -> Iterator[Problem]:
    fields = {field.encode_name: field for field in kind.fields}
    option_type = getattr(kind.cls, "option_type", None)
    names = [*fields, *(['"option.<key>"'] if option_type else [])]
    for key, value in table.items():
        if key in fields:
            yield from deviations(value, fields[key].type, place.key(key))
        elif option_type and key.startswith(OPTION) and key != OPTION:
            yield from deviations(value, inspect.type_info(option_type), place.key(key))
        elif option_type and key == OPTION.rstrip("."):
            # In TOML, option.x = ... without quotes makes a table of its own.
            hint = 'quote the whole key: "option.<key>" = ...'
            yield Problem(where=str(place.key(key)), what="unknown key", hint=hint)
        else:
            hint = valid_names(key, names, limit=len(names))
            yield Problem(where=str(place.key(key)), what="unknown key", hint=hint)
    for name, field in fields.items():
        if field.required and name not in table:
            what = f"the key {name!r} is missing"
            yield Problem(where=str(place), what=what, hint=f"valid: {expected(field.type)}")


def _in_union(value: object, kind: inspect.UnionType, place: Place) -> Iterator[Problem]:
    """A list is judged as the union's list, so that its items are named; anything else as a whole."""
    if isinstance(value, list):
        lists = [option for option in kind.types if isinstance(option, inspect.ListType)]
        if lists:
            yield from deviations(value, lists[0], place)
            return
    if not any(_fits(value, option) for option in kind.types):
        yield Problem(where=str(place), what=f"expected {expected(kind)}, got {shown(value)}")
