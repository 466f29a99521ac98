"""A decoder's inputs and outputs by their roles: tokens, positions, mask, cache, logits."""

import re
from collections.abc import Mapping

import msgspec

from harness.core.values.value import Tensor
from harness.corpus.beside.decoder_names import DecoderNames, named_by_config
from harness.corpus.beside.genai_config import GenaiConfig, read_genai_config
from harness.corpus.case import Case
from harness.corpus.decoders.cache_pairs import CachePair, cache_pairs, pairs_with_axes
from harness.corpus.decoders.fixed_cache import (
    CachePosition,
    counts_of,
    fixed_cache,
    held_positions,
    scattered,
    takes_lengths,
)
from harness.corpus.model.model_errors import blame
from harness.corpus.model.model_file import load_lean
from harness.corpus.model.port import ValueType

__all__ = ["CachePair", "Decoder", "decoder_of"]

_TOKENS = re.compile(r"(?:^|[._/])(?:decoder_)?(?:input_?)?(?:ids|tokens)$", re.IGNORECASE)
_POSITIONS = re.compile(r"position_?ids?|positions?$", re.IGNORECASE)
_MASK = re.compile(r"mask", re.IGNORECASE)
_TYPES = re.compile(r"type|segment", re.IGNORECASE)
_LOGITS = re.compile(r"logits|scores", re.IGNORECASE)
_ENCODER = re.compile(r"encoder|cross", re.IGNORECASE)

_CONSTANTS: tuple[tuple[re.Pattern[str], bool | int], ...] = (
    (re.compile(r"use_?cache", re.IGNORECASE), True),
    (re.compile(r"(?:num_)?logits_to_keep", re.IGNORECASE), 0),
)
"""Switches of exporters: the branch with a cache, and 0 for the logits of all positions."""

_IDS = frozenset({"int32", "int64"})
_COUNTS = _IDS | {"bool"}
_TEXT_RANK = 2
_LOGITS_RANK = 3


class Decoder(msgspec.Struct, frozen=True, kw_only=True):
    """The roles of a decoder's inputs and outputs.

    Attributes:
        tokens: Name of the input of token ids, int32 or int64, of shape (batch, sequence).
        logits: Name of the output, of shape (batch, sequence, vocabulary).
        cache: The cache, in the order of the layers; empty for a model without one.
        positions: Name of the input of position ids, of shape (batch, sequence); empty if there is none.
        mask: Name of the attention mask, of shape (batch, past + sequence), 1 for a token that counts; empty
            if there is none.
        vocabulary: The upper bound of token ids, exclusive.
        context: Largest number of positions that the model can hold; None if it does not say.
        fixed: Inputs that stay the same in all steps, such as the cross-attention cache of an encoder.
        constants: Inputs that hold one value everywhere and in all steps, such as ``use_cache_branch``.
        counts: Inputs that count columns: ``start``, the number of columns before the new ones, for all texts
            or for each; ``places``, the place of each new column, such as ``cache_position``.
        cache_length: Positions of a cache of fixed length, which is filled from its start; None for a cache
            that grows.
        masks_cache: Whether the mask has a column for each position of a cache of fixed length.
        shares_buffer: Whether past and present may be one buffer of ``context`` positions, as
            ``TensorScatter`` and operators defined like ``GroupQueryAttention`` allow.
        takes_lengths: Whether the attention takes the length of each text instead of a mask: later tokens
            overwrite padding.
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
    constants: dict[str, bool | int] = {}
    counts: dict[str, CachePosition] = {}
    cache_length: int | None = None
    masks_cache: bool = False
    shares_buffer: bool = False
    takes_lengths: bool = False
    pads_token: int = 0


def decoder_of(case: Case) -> Decoder | str:
    """Return the roles of a model's inputs and outputs; else why it cannot be fed as a decoder.

    The roles come from ``genai_config.json`` beside the model. Roles that it lacks follow from names, types
    and shapes.

    Raises:
        ConfigError: ``genai_config.json`` is broken, or does not fit the model.
        ModelError: The model is broken or missing.
    """
    inputs = {port.name: port.type for port in case.ports}
    outputs = dict(zip(case.outputs, case.output_types, strict=True))
    config = read_genai_config(case.model_path.parent)
    named = DecoderNames()
    if config is not None:
        told = named_by_config(config, case.model_path, inputs, outputs)
        if isinstance(told, str):
            return told
        named = told
    tokens = named.tokens or _tokens(inputs)
    if not tokens:
        return "it has no input of token ids: an integer tensor (batch, sequence), such as input_ids"
    logits = named.logits or _logits(outputs)
    if not logits:
        return "it has no output of logits of the shape (batch, sequence, vocabulary)"
    beside = set(inputs) - case.chain.texts if case.chain is not None else set()
    fixed = tuple(
        name
        for name in inputs
        if name != tokens and (name in named.fixed or name in beside or _ENCODER.search(name))
    )
    own = {name: kind for name, kind in inputs.items() if name not in (tokens, *fixed)}
    batch = inputs[tokens].axes[0]
    if named.pairs:
        cache = pairs_with_axes(named.pairs, own, outputs, batch)
    else:
        rest = {name: kind for name, kind in outputs.items() if name != logits and not _ENCODER.search(name)}
        cache = cache_pairs(own, rest, batch)
    if isinstance(cache, str):
        return cache
    own = {name: kind for name, kind in own.items() if name not in {pair.past for pair in cache}}
    decoder = Decoder(
        tokens=tokens,
        logits=logits,
        cache=cache,
        positions=named.positions or _one(own, _POSITIONS, _IDS),
        mask=named.mask or _one(own, _MASK, _COUNTS),
        vocabulary=_vocabulary(outputs[logits], config, case, tokens),
        fixed=fixed,
        constants=_constants(own),
        counts=counts_of(own, inputs[tokens].axes[1]),
        pads_token=config.model.pad_token_id if config else 0,
    )
    return _unusable(decoder, inputs, outputs) or _bounded(decoder, config, case)


def _bounded(decoder: Decoder, config: GenaiConfig | None, case: Case) -> Decoder | str:
    """Return the decoder with the facts that only its nodes show; else why it cannot be fed step by step."""
    with blame(case.model_path):
        model = load_lean(case.model_path)
    inputs = {port.name: port.type for port in case.ports}
    placed = bool(decoder.positions or decoder.mask)
    fixed = fixed_cache(model, decoder.cache, inputs, counts=bool(decoder.counts), placed=placed)
    if isinstance(fixed, str):
        return fixed
    pairs, length = fixed
    columns = inputs[decoder.mask].axes[1] if decoder.mask else ""
    if columns is None and (inputs[decoder.mask].shape or ())[1] != length:
        return f"its input {decoder.mask!r} has a fixed length, which is not that of its cache"
    stated = (config.model.context_length or None) if config else None
    held = held_positions(model, decoder.positions)
    limits = [limit for limit in (stated, held, length) if limit is not None]
    lengths = takes_lengths(model, pairs)
    return msgspec.structs.replace(
        decoder,
        cache=pairs,
        cache_length=length,
        masks_cache=columns is None,
        context=min(limits, default=None),
        shares_buffer=lengths or scattered(model, pairs),
        takes_lengths=lengths,
    )


def _tokens(inputs: Mapping[str, ValueType]) -> str:
    """Return the only integer input of texts, or the only one with a usual name."""
    others = [
        name
        for name, kind in inputs.items()
        if kind.dtype in _IDS
        and kind.rank == _TEXT_RANK
        and not any(role.search(name) for role in (_POSITIONS, _MASK, _TYPES))
    ]
    named = [name for name in others if _TOKENS.search(name)]
    own = [name for name in named if not _ENCODER.search(name)] or named
    return (own or others)[0] if len(own or others) == 1 else ""


def _logits(outputs: Mapping[str, ValueType]) -> str:
    """Return the first output with a usual name, or the only one that can be logits."""
    rows = [name for name, kind in outputs.items() if kind.rank == _LOGITS_RANK]
    named = [name for name in rows if _LOGITS.search(name)]
    return named[0] if named else rows[0] if len(rows) == 1 else ""


def _one(inputs: Mapping[str, ValueType], name: re.Pattern[str], types: frozenset[str]) -> str:
    """Return the only input with such a name and type, if there is exactly one."""
    found = [
        each
        for each, kind in inputs.items()
        if name.search(each) and kind.dtype in types and kind.rank == _TEXT_RANK
    ]
    return found[0] if len(found) == 1 else ""


def _constants(inputs: Mapping[str, ValueType]) -> dict[str, bool | int]:
    return {
        name: value
        for name, kind in inputs.items()
        for pattern, value in _CONSTANTS
        if pattern.search(name) and kind.rank <= 1 and kind.dtype in _COUNTS
    }


def _vocabulary(logits: ValueType, config: GenaiConfig | None, case: Case, tokens: str) -> int:
    """Return the size of the vocabulary; from the model's own data if the model does not declare it."""
    sizes = [size for size in ((logits.shape or (None,))[-1], config and config.model.vocab_size) if size]
    if sizes:
        return min(sizes)
    given = dict(case.data_sets[0].inputs).get(tokens)
    return (int(given.array.max(initial=0)) if isinstance(given, Tensor) else 0) + 1


def _unusable(decoder: Decoder, inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType]) -> str:
    """Return why the model cannot be fed step by step; empty if it can."""
    known = {decoder.tokens, decoder.positions, decoder.mask, *decoder.fixed, *decoder.constants}
    known |= {*decoder.counts, *(pair.past for pair in decoder.cache)}
    if unknown := next((name for name in inputs if name not in known), ""):
        return f"the role of its input {unknown!r} is not known"
    sequence = inputs[decoder.tokens].axes[1]
    if sequence is None:
        return f"its input {decoder.tokens!r} has a fixed length of {(inputs[decoder.tokens].shape or ())[1]}"
    if (outputs[decoder.logits].shape or (0, 0))[1] == 1:
        return f"its output {decoder.logits!r} has the last position only"
    for pair in decoder.cache:
        past, present = inputs[pair.past].axes[pair.axis], outputs[pair.present].axes[pair.axis]
        if past is not None and (present is None or (present and present == sequence)):
            return f"its output {pair.present!r} does not have all positions of the cache"
    return ""
