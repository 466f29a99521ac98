"""CRC-32 where Node.js has none."""

import zlib
from collections.abc import Callable
from typing import Any


def test_it_is_that_of_zip(evaluate: Callable[..., Any]) -> None:
    parts = [b"", b"123456789", bytes(range(256)) * 5]
    script = """
    import { crc32, inJavaScript } from 'agent:crc32.mjs';
    const parts = value.map((hex) => Buffer.from(hex, 'hex'));
    give([inJavaScript, crc32].map((sum) => parts.reduce((before, part) => sum(part, before), 0)));
    """
    assert evaluate(script, [part.hex() for part in parts]) == [zlib.crc32(b"".join(parts))] * 2
