"""Bytes, JSON and protobuf messages with something changed; ``tests/mutations.py`` has plain values."""

import json
import random
from typing import Any

from tests.mutations import changed

ODD_NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    255,
    1 << 16,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
    -(1 << 63),
)
ODD_TEXTS = (
    "",
    "x",
    "y",
    "a",
    "../../x",
    "/etc/passwd",
    "\0",
    "\u202e",
    "x" * 70_000,
    "Relu",
    "Loop",
    "ai.onnx",
)
ODD_BYTES = (
    b"",
    b"\0",
    b"\xff" * 9,
    b"\x80" * 10,
    b"\n",
    b"[" * 500,
    b'"',
    b"9" * 400,
    b"*" * 40,
    b"PK\x05\x06",
)


def changed_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to four flipped, cut, doubled, replaced or put in."""
    found = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(found) + 1), rng.choice((1, 1, 2, 4, 8, 40, 500))
        match rng.randrange(6):
            case 0 if found:
                found[min(at, len(found) - 1)] ^= 1 << rng.randrange(8)
            case 1:
                del found[at : at + length]
            case 2:
                found[at:at] = found[at : at + length]
            case 3:
                found[at:at] = rng.choice(ODD_BYTES)
            case 4:
                found[at : at + length] = rng.choice(ODD_BYTES)
            case _:
                found[at : at + length] = rng.randbytes(min(length, len(found) - at))
    return bytes(found[: rng.randrange(len(found) + 1)] if rng.random() < 0.05 else found)


def changed_json(content: bytes, rng: random.Random) -> bytes:
    """Return a JSON text with one to three changes, of its tree or of its bytes."""
    if rng.random() < 0.3:
        return changed_bytes(content, rng)
    tree = changed(json.loads(content), rng.randint(1, 3), rng.choice)
    return json.dumps(tree, default=lambda odd: odd.hex()).encode()


def changed_message(message: Any, rng: random.Random) -> None:
    """Change one to four fields of a protobuf message, however deep."""
    for _ in range(rng.randint(1, 4)):
        sites = list(_sites(message, 0))
        if not sites:
            return
        holder, field = rng.choice(sites)
        if field.type == field.TYPE_MESSAGE:
            _change_inner(holder, field, rng)
        else:
            _change_leaf(holder, field, rng)


def _sites(message: Any, depth: int) -> Any:
    for field, value in message.ListFields():
        yield message, field
        if field.type == field.TYPE_MESSAGE and depth < 40:
            for inner in value if field.is_repeated else (value,):
                yield from _sites(inner, depth + 1)


def _change_inner(holder: Any, field: Any, rng: random.Random) -> None:
    if not field.is_repeated:
        holder.ClearField(field.name)
        return
    items = getattr(holder, field.name)
    one, other = rng.randrange(len(items)), rng.randrange(len(items))
    match rng.randrange(4):
        case 0:
            del items[one]
        case 1:
            for _ in range(rng.choice((1, 1, 30, 300))):
                items.add().CopyFrom(items[one])
        case 2:
            items[one].CopyFrom(items[other])
        case _:
            items[one].Clear()


def _change_leaf(holder: Any, field: Any, rng: random.Random) -> None:
    if field.cpp_type in {field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE}:
        value: Any = rng.choice((0.0, -0.0, 1e38, float("nan"), float("inf"), -1.0))
    elif field.type == field.TYPE_BYTES:
        old = getattr(holder, field.name)
        value = changed_bytes(old if isinstance(old, bytes) else b"", rng)
    elif field.type == field.TYPE_STRING:
        value = rng.choice(ODD_TEXTS)
    elif field.cpp_type == field.CPPTYPE_ENUM:
        value = rng.choice(field.enum_type.values).number
    elif field.cpp_type == field.CPPTYPE_INT32:
        value = min(max(rng.choice(ODD_NUMBERS), -(1 << 31)), (1 << 31) - 1)
    else:
        value = rng.choice(ODD_NUMBERS)
    if not field.is_repeated:
        setattr(holder, field.name, value)
        return
    items = getattr(holder, field.name)
    at = rng.randrange(len(items))
    if rng.random() < 0.3:
        del items[at]
    elif rng.random() < 0.3:
        items.append(value)
    else:
        items[at] = value
