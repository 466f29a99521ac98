r"""JSON that does nothing wherever it is embedded or looked at: ASCII, and without ``<``."""

import re

import msgspec


def inert_json(value: object) -> bytes:
    r"""Encode a value in one line; what is not printable ASCII, and ``<``, is written as ``\uXXXX``."""
    # JSON has these characters in its texts only.
    return _NOT_PLAIN.sub(_escaped, msgspec.json.encode(value).decode()).encode() + b"\n"


def _escaped(match: re.Match[str]) -> str:
    return re.sub("....", r"\\u\g<0>", match[0].encode("utf-16-be").hex())


_NOT_PLAIN = re.compile(r"[<\x7f]|[^\x00-\x7f]+")
