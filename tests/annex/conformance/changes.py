"""Change a value of JSON one field at a time, each into another one of the same form."""

import enum
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

Change = tuple[str, Any]
"""The path of a field, such as ``$.outputs[0].rmse``, and the whole value with another one there."""


def changes(value: Any, form: Any, path: str = "$") -> Iterator[Change]:
    """Yield every field of a value changed: of a struct all, of a list the first, and one more."""
    yield from _changes(value, inspect.type_info(form), path)


def _changes(value: Any, kind: inspect.Type, path: str) -> Iterator[Change]:  # noqa: C901 - one branch a form
    kind = _chosen(kind, value)
    if value is None:
        yield path, made(kind, ())
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            name = field.encode_name
            default = made(field.type, ()) if field.required else _default(field)
            before = value.get(name, default)
            for where, other in _changes(before, field.type, f"{path}.{name}"):
                yield where, {**value, name: other}
    elif isinstance(value, dict):
        below = kind.value_type if isinstance(kind, inspect.DictType) else inspect.AnyType()
        for key in value:
            for where, other in _changes(value[key], below, f"{path}.{key}"):
                yield where, {**value, key: other}
        yield f"{path}.added", {**value, "added": made(below, ())}
    elif isinstance(value, list):
        below = getattr(kind, "item_type", None) or next(
            iter(getattr(kind, "item_types", ())), inspect.AnyType()
        )
        if value:
            for where, other in _changes(value[0], below, f"{path}[0]"):
                yield where, [other, *value[1:]]
        if not isinstance(kind, inspect.TupleType):
            yield f"{path}[+]", [*value, made(below, ())]
    else:
        yield path, made(kind, (value,))


def made(kind: inspect.Type, before: tuple[Any, ...]) -> Any:  # noqa: C901, PLR0911, PLR0912 - one branch a type
    """Return a plain value of a type that is none of ``before``, as small as can be."""
    match kind:
        case inspect.Metadata():
            return made(kind.type, before)
        case inspect.UnionType():
            return made(_chosen(kind, before[0] if before else None), before)
        case inspect.StructType():
            needed = (field for field in kind.fields if field.required)
            found = {field.encode_name: made(field.type, ()) for field in needed}
            return found or {field.encode_name: made(field.type, ()) for field in kind.fields[:1]}
        case inspect.DictType():
            return {"x": made(kind.value_type, ())}
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType():
            return [made(kind.item_type, ())]
        case inspect.TupleType():
            return [made(each, ()) for each in kind.item_types]
        case inspect.EnumType():
            return next(each.value for each in kind.cls if each.value not in before)
        case inspect.LiteralType():
            return next((each for each in kind.values if each not in before), "x")
        case inspect.BoolType():
            return not (before and before[0])
        case inspect.IntType():
            return (before[0] if before else 0) + 1
        case inspect.FloatType():
            return ((before[0] or 0) if before else 0) * 1.5 + 0.5
        case inspect.DateType():
            return "2031-01-01"
        case _:
            return _untyped(before[0] if before else "")


def _untyped(before: Any) -> Any:
    if isinstance(before, bool):
        return not before
    return before + 1 if isinstance(before, int | float) else f"{before or ''}x"


def _chosen(kind: inspect.Type, value: Any) -> inspect.Type:
    """Return the type of a union that a value has, else the first that is not null."""
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if not isinstance(kind, inspect.UnionType):
        return kind
    some = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    wanted: dict[type, tuple[Any, ...]] = {
        dict: (inspect.StructType, inspect.DictType),
        list: (inspect.VarTupleType, inspect.ListType),
    }
    fitting = [each for each in some if isinstance(each, wanted.get(type(value), ()))]
    return (fitting or some)[0]


def _default(field: inspect.Field) -> Any:
    default = field.default if field.default is not msgspec.NODEFAULT else None
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    plain = msgspec.to_builtins(default)
    return plain.value if isinstance(plain, enum.Enum) else list(plain) if isinstance(plain, tuple) else plain
