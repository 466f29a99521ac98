"""A decoder's inputs and outputs by their roles: tokens, positions, mask, cache, logits."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.core.value import Tensor
from harness.corpus.case import Case
from harness.corpus.port import ValueType

_TOKENS = re.compile(r"(?:^|[._/])(?:decoder_)?(?:input_?)?(?:ids|tokens)$", re.IGNORECASE)
_POSITIONS = re.compile(r"position", re.IGNORECASE)
_MASK = re.compile(r"mask", re.IGNORECASE)
_LOGITS = re.compile(r"logits|scores", re.IGNORECASE)
_ENCODER = re.compile(r"encoder(?!_?decoder)|cross", re.IGNORECASE)
_PAST = re.compile(r"past(?:_key_values?)?|cache_?in|in_?cache", re.IGNORECASE)
_PART = re.compile(r"[^A-Za-z0-9]+")
_LENGTH_OPERATORS = frozenset({"GroupQueryAttention", "PagedAttention"})
"""Operators that take the length of the cache as a number, so that its buffer may be longer."""

_TOKEN_TYPES = frozenset({"int32", "int64"})
_CACHE_RANK = 3
_LOGITS_RANK = 3
_BATCH_AXIS = 0


class CachePair(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of the cache: an input, and the output that takes its place in the next step.

    Attributes:
        past: Name of the input.
        present: Name of the output.
        axis: The axis of the positions, in both.
    """

    past: str
    present: str
    axis: int


class Decoder(msgspec.Struct, frozen=True, kw_only=True):
    """The roles of a decoder's inputs and outputs.

    Attributes:
        tokens: Name of the input of token ids, int32 or int64, of shape (batch, sequence).
        logits: Name of the output, of shape (batch, sequence, vocabulary).
        cache: The cache, in the order of the layers; empty for a model without one.
        positions: Name of the input of position ids, of shape (batch, sequence); empty if there is none.
        mask: Name of the attention mask, of shape (batch, past + sequence), 1 for a token that counts; empty
            if there is none.
        vocabulary: Token ids are below it.
        context: Most positions that the model can hold; None if it does not say.
        fixed: Inputs that stay the same in all steps, such as the cross-attention cache of an encoder.
        shares_buffer: Whether past and present may be one buffer of ``context`` positions, as operators with
            ``GroupQueryAttention``'s definition allow.
        pads_token: The token id of padding.
    """

    tokens: str
    logits: str
    cache: tuple[CachePair, ...] = ()
    positions: str = ""
    mask: str = ""
    vocabulary: int
    context: int | None = None
    fixed: tuple[str, ...] = ()
    shares_buffer: bool = False
    pads_token: int = 0


def decoder_of(case: Case) -> Decoder | str:
    """Return the roles of a model's inputs and outputs, by their names and shapes; else why it is no decoder.

    The usual names are those of the exporters of Hugging Face and of onnxruntime-genai: ``input_ids``,
    ``position_ids``, ``attention_mask``, ``past_key_values.0.key`` beside ``present.0.key``, ``logits``.
    """
    ports = {port.name: port.type for port in case.ports}
    outputs = dict(zip(case.outputs, case.output_types, strict=True))
    tokens = _tokens(ports)
    if not tokens:
        return "it has no input of token ids: an integer tensor (batch, sequence), such as input_ids"
    logits = next((name for name, kind in outputs.items() if _is_logits(name, kind)), "")
    if not logits:
        return "it has no output of logits of the shape (batch, sequence, vocabulary)"
    fixed = tuple(name for name in ports if _ENCODER.search(name) and name != tokens)
    own = {name: kind for name, kind in ports.items() if name not in (tokens, *fixed)}
    cache = tuple(_cache(own, {name: kind for name, kind in outputs.items() if name != logits}))
    if why := _unusable(cache, ports, outputs, tokens, logits):
        return why
    positions = next((name for name, kind in own.items() if kind.dtype in _TOKEN_TYPES and _POSITIONS.search(name)), "")
    mask = next((name for name, kind in own.items() if _rank(kind) == 2 and _MASK.search(name)), "")
    known = {tokens, positions, mask, *fixed, *(pair.past for pair in cache)}
    if unknown := next((name for name in ports if name not in known), ""):
        return f"the role of its input {unknown!r} is not known"
    vocabulary = _vocabulary(outputs[logits], case, tokens)
    return Decoder(
        tokens=tokens,
        logits=logits,
        cache=cache,
        positions=positions,
        mask=mask,
        vocabulary=vocabulary,
        fixed=fixed,
        shares_buffer=bool(cache) and bool(_LENGTH_OPERATORS & case.facts.op_types.keys()),
    )


def _tokens(ports: Mapping[str, ValueType]) -> str:
    integers = [name for name, kind in ports.items() if kind.dtype in _TOKEN_TYPES and _rank(kind) == 2]
    others = [name for name in integers if not (_POSITIONS.search(name) or _MASK.search(name))]
    named = [name for name in others if _TOKENS.search(name)]
    return next(iter(named or others), "") if len(named or others) == 1 else ""


def _is_logits(name: str, kind: ValueType) -> bool:
    return bool(_LOGITS.search(name)) and _rank(kind) == _LOGITS_RANK


def _rank(kind: ValueType) -> int:
    return len(kind.shape) if kind.kind == "tensor" and kind.shape is not None else -1


def _cache(ports: Mapping[str, ValueType], outputs: Mapping[str, ValueType]) -> Iterator[CachePair]:
    """Yield pairs of the same name but for the word for the past, in the order of the outputs."""
    pasts = {
        _key(name): name for name, kind in ports.items() if _PAST.search(name) and _rank(kind) >= _CACHE_RANK
    }
    for name, kind in outputs.items():
        past = pasts.get(_key(name))
        if past is not None and _rank(kind) == _rank(ports[past]):
            yield CachePair(past=past, present=name, axis=_positions_axis(ports[past], kind))


def _key(name: str) -> tuple[str, ...]:
    """Return what two names of one cache tensor have in common: layer and part."""
    words = {"past", "present", "key_values", "cache", "in", "out", "kv", "values", "past_key_values"}
    parts = _PART.split(name.replace("past_key_values", "past").replace("present_key_values", "present"))
    return tuple(part for piece in parts for part in piece.split("_") if part and part not in words)


def _positions_axis(past: ValueType, present: ValueType) -> int:
    """Return the axis whose length is another one before and after; else that of (batch, heads, length, size)."""
    symbols = list(_symbols(past))
    differing = [
        axis
        for axis, (before, after) in enumerate(zip(symbols, _symbols(present), strict=True))
        if axis != _BATCH_AXIS and before is not None and before != after
    ]
    free = [axis for axis, symbol in enumerate(symbols) if axis != _BATCH_AXIS and symbol is not None]
    return (differing or free or [len(symbols) - 2])[0]


def _symbols(kind: ValueType) -> Sequence[str | None]:
    return kind.symbols or (None,) * len(kind.shape or ())


def _unusable(
    cache: Sequence[CachePair],
    ports: Mapping[str, ValueType],
    outputs: Mapping[str, ValueType],
    tokens: str,
    logits: str,
) -> str:
    """Return why the model cannot be fed step by step; empty if it can."""
    sequence = _symbols(ports[tokens])[1]
    if sequence is None:
        return f"its input {tokens!r} has a fixed length of {(ports[tokens].shape or ())[1]}"
    if (outputs[logits].shape or ())[1] == 1:
        return f"its output {logits!r} has the last position only"
    for pair in cache:
        length = (ports[pair.past].shape or ())[pair.axis]
        if _symbols(ports[pair.past])[pair.axis] is None:
            return f"its cache {pair.past!r} has a fixed length of {length}"
        present = _symbols(outputs[pair.present])[pair.axis]
        if present is None or (present and present == sequence):
            return f"its output {pair.present!r} does not have all positions of the cache"
    return ""


def _vocabulary(logits: ValueType, case: Case, tokens: str) -> int:
    """Return the size of the vocabulary; of a model that does not declare it, that of its own data."""
    size = (logits.shape or (None,))[-1]
    given = dict(case.data_sets[0].inputs).get(tokens)
    largest = int(given.array.max(initial=0)) if isinstance(given, Tensor) else 0
    return size or largest + 1
