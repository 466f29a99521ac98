"""Messages between a harness and its agents: JSON, and binary values behind it.

C code handles JSON in every Python; a serializer in Python took a fifth of an agent's time with small models.
``docs/reference/agent-protocol.md`` specifies the form; ``harness.agent.frame`` puts it into a frame. A tuple
arrives as a list, except for the message itself.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable
from typing import Any

BYTES = "\0bytes"  # key of a binary value: its offset behind the JSON, and its length
_BYTES_IN_JSON = json.dumps(BYTES)


def pack_message(message: Any) -> tuple[bytes, list[Any], int]:
    """Return a message as JSON, the binary values that follow it, and their size in bytes.

    Args:
        message: None, bool, int, finite float, str, bytes, lists, tuples and dicts with str keys.

    Raises:
        TypeError: It contains a value of another type.
        ValueError: A text cannot be encoded, or a number is not finite.
    """
    parts: list[Any] = []
    end = 0

    def refer(value: Any) -> dict[str, list[int]]:
        nonlocal end
        if not isinstance(value, (bytes, memoryview, mmap.mmap)):
            raise TypeError("a message cannot contain a %s" % type(value).__name__)
        start, nbytes = end, memoryview(value).nbytes
        end += nbytes
        parts.append(value)
        return {BYTES: [start, nbytes]}

    text = json.dumps(message, default=refer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(), parts, end


def unpack_message(text: bytes, binary: int, read: Callable[[int], bytes]) -> Any:
    """Return the message of a JSON text. Any content is safe.

    Args:
        text: The JSON.
        binary: Bytes of the binary values that follow it.
        read: Returns so many of these bytes; so each value is held once, however large it is.

    Raises:
        ValueError: It is not a message.
    """
    end = 0

    def resolve(found: dict[str, Any]) -> Any:
        nonlocal end
        # A model may use any name: this key may have another value, or other keys beside it.
        if len(found) != 1 or type(found.get(BYTES)) is not list:
            return found
        at, nbytes = found[BYTES]
        start, end = end, end + nbytes
        # In order and each once: otherwise a short message could take any amount of memory.
        if at != start or not start <= end <= binary:
            raise ValueError("no message: it lacks binary values that its JSON lists")
        return read(nbytes)

    try:
        decoded = text.decode()
        # Most messages have no binary values; without the hook no Python code runs for each dict.
        if _BYTES_IN_JSON in decoded:
            message = json.loads(decoded, object_hook=resolve, parse_constant=_refuse)
        else:
            message = _PLAIN.decode(decoded)
        if "\\ud" in decoded.lower():
            # It may contain half a surrogate pair, which cannot be encoded later.
            json.dumps(message, default=repr, ensure_ascii=False).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError("no message: %s" % type(error).__name__) from error
    return tuple(message) if isinstance(message, list) else message


def _refuse(constant: str) -> None:
    raise ValueError("no message: %s is no number" % constant)


_PLAIN = json.JSONDecoder(parse_constant=_refuse)
