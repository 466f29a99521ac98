"""Python code that generates text with a session and a cache carried over, to paste."""

from collections.abc import Iterator

from harness.corpus.case import Case
from harness.corpus.decoders.decoder import Decoder
from harness.corpus.model.port import ValueType

_NUMPY = frozenset({"float16", "float32", "float64", "int8", "uint8", "int32", "int64"})
"""Types of a cache that numpy supports."""


def decode_code(case: Case, decoder: Decoder) -> str:
    """Return the code, which needs ``session`` and defines ``generate``; a comment if there can be none."""
    ports = {port.name: port.type for port in case.ports}
    if why := _why_not(ports, decoder):
        return f"# No loop to paste: {why}.\n"
    return "\n".join(_lines(ports, decoder)) + "\n"


def _why_not(ports: dict[str, ValueType], decoder: Decoder) -> str:
    if decoder.fixed:
        return f"its inputs {', '.join(map(repr, decoder.fixed[:3]))} come from an encoder"
    if not decoder.cache:
        return "the model has no cache"
    dtypes = {ports[pair.past].dtype or "" for pair in decoder.cache}
    if others := sorted(dtypes - _NUMPY):
        return f"numpy has no {others[0]}, in which the cache is"
    return ""


def _lines(ports: dict[str, ValueType], decoder: Decoder) -> Iterator[str]:
    pasts = {pair.past: pair.present for pair in decoder.cache}
    length = decoder.cache_length or 0
    empty = {pair.past: _empty(ports[pair.past], pair.axis, length) for pair in decoder.cache}
    yield "import numpy as np"
    yield ""
    yield "# Input of the cache -> the output that takes its place in the next step."
    yield "CACHE = {"
    yield from (f"    {past!r}: {present!r}," for past, present in pasts.items())
    yield "}"
    if len(set(empty.values())) == 1:
        first = next(iter(empty.values()))
        start = f"{{name: {first} for name in CACHE}}"
    else:
        yield "EMPTY = {"
        yield from (f"    {name!r}: {array}," for name, array in empty.items())
        yield "}"
        start = "dict(EMPTY)"
    yield ""
    yield ""
    yield "def generate(prompt, new_tokens):"
    yield '    """Return a prompt, a list of token ids, with the likeliest tokens after it."""'
    yield f"    past = {start}"
    yield "    tokens, new = list(prompt), list(prompt)"
    yield "    for _ in range(new_tokens):"
    yield "        feeds = {"
    yield from (f"            {line}," for line in _feeds(ports, decoder))
    yield "            **past,"
    yield "        }"
    yield f"        logits, *presents = session.run([{decoder.logits!r}, *CACHE.values()], feeds)"
    yield "        past = dict(zip(CACHE, presents))"
    yield "        new = [int(logits[0, -1].argmax())]"
    yield "        tokens += new"
    yield "    return tokens"


def _feeds(ports: dict[str, ValueType], decoder: Decoder) -> Iterator[str]:
    yield f"{decoder.tokens!r}: np.array([new], np.{ports[decoder.tokens].dtype})"
    first = "len(tokens) - len(new)"
    if decoder.masks_cache:
        counted = f"np.arange({decoder.cache_length})[None] < len(tokens)"
        yield f"{decoder.mask!r}: ({counted}).astype({_type(ports[decoder.mask])})"
    elif decoder.mask:
        yield f"{decoder.mask!r}: np.ones((1, len(tokens)), {_type(ports[decoder.mask])})"
    if decoder.positions:
        dtype = _type(ports[decoder.positions])
        yield f"{decoder.positions!r}: np.arange({first}, len(tokens), dtype={dtype})[None]"
    for name, count in decoder.counts.items():
        dtype, shape = _type(ports[name]), ports[name].shape or ()
        if count == "places":
            yield f"{name!r}: np.arange({first}, len(tokens), dtype={dtype})"
        else:
            yield f"{name!r}: np.full({(1,) * len(shape)!r}, {first}, {dtype})"
    for name, value in decoder.constants.items():
        shape = ports[name].shape or ()
        yield f"{name!r}: np.full({(1,) * len(shape)!r}, {value!r}, {_type(ports[name])})"


def _empty(kind: ValueType, axis: int, length: int) -> str:
    """Return the code of an empty cache of some length; a free dimension besides it is the batch."""
    sizes = tuple(
        length if index == axis else (size if symbol is None else 1)
        for index, (size, symbol) in enumerate(_dimensions(kind))
    )
    return f"np.zeros({sizes!r}, {_type(kind)})"


def _dimensions(kind: ValueType) -> Iterator[tuple[int, str | None]]:
    shape = kind.shape or ()
    names = kind.symbols or (None,) * len(shape)
    return zip(shape, names, strict=True)  # type: ignore[arg-type]  # a size is known without a symbol


def _type(kind: ValueType) -> str:
    return "np.bool_" if kind.dtype == "bool" else f"np.{kind.dtype}"
