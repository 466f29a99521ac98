"""Check parsed TOML against declared types: every deviation with its place, not only the first.

msgspec converts and validates, but stops at the first error.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from harness.core.text.errors import Problem, one_line, valid_names

OPTION = "option."
"""Prefix of the keys that tables with an ``option_type`` accept besides their fields."""

_A_TABLE = "a table"
_LARGEST = 1 << 63
"""TOML has integers of 64 bits; Python would read thousands of digits."""


class FilePlace(msgspec.Struct, frozen=True):
    """A place in a file: ``local.toml: target[2].provider``; items are counted from 0."""

    file: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def key(self, name: str) -> "FilePlace":
        """Return the place of one key of the table here."""
        bare = re.fullmatch(r"[A-Za-z0-9_-]+", name)
        spelled = name if bare else shown(name)
        return FilePlace(self.file, f"{self.path}.{spelled}" if self.path else spelled)

    def item(self, index: int) -> "FilePlace":
        """Return the place of one item of the list here."""
        return FilePlace(self.file, f"{self.path}[{index}]")

    def problem(self, what: str, hint: str = "") -> Problem:
        """Return a problem here; arguments are its fields."""
        return Problem(where=str(self), what=what, hint=hint)


def deviations(value: object, kind: inspect.Type, place: FilePlace) -> Iterator[Problem]:
    """Yield every deviation of a value of ``tomllib`` from its type, in the order of the file.

    The type is of ``msgspec.inspect.type_info``. A struct's class may have ``option_type``, the type of its
    keys that begin with ``option.``. Numbers must be finite.
    """
    declared, kind = kind, _bare(kind)
    match kind, value:
        case inspect.StructType(), dict():
            yield from _in_table(value, kind, place)
        case inspect.DictType(), dict():
            yield from _in_mapping(value, kind, place)
        case inspect.ListType(), list():
            yield from _in_list(value, kind, place)
        case (inspect.UnionType(types=(*_, inspect.ListType() as inner)), list()) | (
            inspect.UnionType(types=(*_, inspect.DictType() as inner)),
            dict(),
        ):
            # Checked as this member of the union, so that messages name its bad items.
            yield from deviations(value, inner, place)
        case inspect.UnionType(types=(inspect.StructType() as a_table, *_)), dict():
            yield from _in_table(value, a_table, place)
        case (
            inspect.UnionType(
                types=(inspect.EnumType() as choice, *_) | (*_, inspect.LiteralType() as choice)
            ),
            str(),
        ):
            yield from _in_choice(value, choice, place)
        case ((inspect.LiteralType() | inspect.EnumType()), _):
            yield from _in_choice(value, kind, place)
        case _ if not _fits(value, kind):
            hint = ""
            if isinstance(kind, inspect.ListType) and expected(kind.item_type) == _A_TABLE:
                hint = f"begin each with [[{place.path}]], in two brackets"
            yield place.problem(f"expected {expected(declared)}, got {shown(value)}", hint)


def expected(kind: inspect.Type) -> str:
    """Return a type in the words of a message: ``an integer of at least 1``."""
    if isinstance(kind, inspect.Metadata) and isinstance(kind.type, inspect.StrType) and kind.type.pattern:
        # Its description is easier to read than a regular expression.
        return str((kind.extra_json_schema or {})["description"])
    match _bare(kind):
        case inspect.StrType(min_length=shortest):
            words = "non-empty text" if shortest else "text"
        case inspect.IntType() as number:
            words = "an integer" + _bounds(number)
        case inspect.FloatType() as number:
            words = "a finite number" + _bounds(number)
        case inspect.BoolType():
            words = "true or false"
        case inspect.ListType(item_type=item, min_length=shortest):
            one = expected(item)
            items = {_A_TABLE: "tables", "text": "texts", "non-empty text": "texts"}.get(one, one)
            items = items.replace("an integer", "integers", 1)
            words = f"a non-empty list of {items}" if shortest else f"a list of {items}"
        case inspect.UnionType(types=options):
            words = " or ".join(expected(option) for option in options)
        case (inspect.LiteralType() | inspect.EnumType()) as choice:
            words = " or ".join(map(str, _choices(choice)))
        case _:
            words = _A_TABLE
    return words


def shown(value: object) -> str:
    """Return a parsed value in the words of a message, in TOML's spelling, cut short if it is long."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            # JSON's escapes are TOML's too, and show control characters.
            return json.dumps(one_line(value, 60), ensure_ascii=False)
        case dict():
            return _A_TABLE
        case list():
            return "a list"
    return one_line(value, 60)


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {_plain(kind.le)}"
    if kind.ge is not None:
        return f" of at least {kind.ge}"
    most = "" if kind.le is None else f", at most {_plain(kind.le)}"
    return f" greater than {kind.gt}{most}" if kind.gt is not None else ""


def _plain(number: float) -> str:
    """Return a bound in the notation of a matrix: 604800.0 as 604800."""
    return f"{number:.15g}" if isinstance(number, float) else str(number)


def _choices(kind: inspect.LiteralType | inspect.EnumType) -> tuple[Any, ...]:
    if isinstance(kind, inspect.EnumType):
        return tuple(member.value for member in kind.cls)
    return tuple(kind.values)


def _fits(value: object, kind: inspect.Type) -> bool:
    """Return whether a plain value is of a plain type, within its bounds."""
    if isinstance(value, bool):  # an int in Python, but not in TOML
        return any(isinstance(option, inspect.BoolType) for option in _options(kind))
    for option in _options(kind):
        match option, value:
            case inspect.StrType(min_length=shortest, pattern=pattern), str():
                # Paths, variables and options cannot hold a NUL.
                long_enough = len(value) >= (shortest or 0) and "\0" not in value
                if long_enough and (pattern is None or _matches(pattern, value)):
                    return True
            case (inspect.IntType() | inspect.FloatType()) as number, int():
                if abs(value) < _LARGEST and _within(value, number):
                    return True
            case inspect.FloatType() as number, float():
                if math.isfinite(value) and _within(value, number):
                    return True
    return False


def _matches(pattern: str, value: str) -> bool:
    """Return whether a pattern from "^" to "$" matches; in Python "$" also matches before a last newline."""
    found = re.search(pattern, value)
    return found is not None and found.end() == len(value)


def _options(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    kind = _bare(kind)
    return tuple(map(_bare, kind.types)) if isinstance(kind, inspect.UnionType) else (kind,)


def _within(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    high_enough = (kind.gt is None or value > kind.gt) and (kind.ge is None or value >= kind.ge)
    return high_enough and (kind.le is None or value <= kind.le)


def _in_choice(
    value: object, kind: inspect.LiteralType | inspect.EnumType, place: FilePlace
) -> Iterator[Problem]:
    choices = _choices(kind)
    # In Python true and 1.0 equal 1; in TOML they are other things.
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        hint = valid_names(str(value), map(str, choices), limit=len(choices))
        yield place.problem(f"got {shown(value)}", hint)


def _in_list(values: list[Any], kind: inspect.ListType, place: FilePlace) -> Iterator[Problem]:
    if len(values) < (kind.min_length or 0):
        yield place.problem(f"expected {expected(kind)}, got an empty one")
    for index, item in enumerate(values):
        yield from deviations(item, kind.item_type, place.item(index))


def _in_mapping(table: dict[str, Any], kind: inspect.DictType, place: FilePlace) -> Iterator[Problem]:
    for key, value in table.items():
        if not _fits(key, kind.key_type):
            yield place.key(key).problem(f"the key must be {expected(kind.key_type)}, got {shown(key)}")
        yield from deviations(value, kind.value_type, place.key(key))


def _in_table(table: dict[str, Any], kind: inspect.StructType, place: FilePlace) -> Iterator[Problem]:
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
            yield place.key(key).problem("unknown key", 'quote the whole key: "option.<key>" = ...')
        else:
            yield place.key(key).problem("unknown key", valid_names(key, names, limit=len(names)))
    for name, field in fields.items():
        if field.required and name not in table:
            yield place.problem(f"the key {name!r} is missing", f"give it {expected(field.type)}")
