"""Names of a decoder's inputs and outputs from ``genai_config.json``, checked against the model."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.core.text.errors import Problem, valid_names
from harness.corpus.beside.genai_config import CONFIG_NAME, LAYER, ConfigError, DecoderPart, GenaiConfig
from harness.corpus.model.port import ValueType

_CACHE_RANK = 4
"""Texts, heads, positions, elements."""

FLOATS = frozenset({"float32", "float16", "bfloat16"})


class DecoderNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names by role, as in ``Decoder``; empty for missing ones.

    ``pairs`` are input and output of each tensor of the cache, in the order of the layers.
    """

    tokens: str = ""
    positions: str = ""
    mask: str = ""
    logits: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    fixed: tuple[str, ...] = ()


def named_by_config(
    config: GenaiConfig, model: Path, inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType]
) -> DecoderNames | str:
    """Return the names that a configuration gives to a model's inputs and outputs; else why it is no decoder.

    Raises:
        ConfigError: It gives a name that the model does not have.
    """
    decoder = config.model.decoder
    if decoder.pipeline:
        return f"{CONFIG_NAME} divides the decoder into a pipeline of models"
    if decoder.filename != model.name:
        return f"{CONFIG_NAME} names another file as the decoder: {decoder.filename!r}"
    if not decoder.num_hidden_layers:
        return f"{CONFIG_NAME} does not tell the number of its layers, num_hidden_layers"
    if decoder.sliding_window.slide_key_value_cache:
        return "its cache slides: it holds the newest positions only"
    if decoder.inputs.inputs_embeds in inputs and decoder.inputs.input_ids not in inputs:
        return f"it takes embeddings, {decoder.inputs.inputs_embeds!r}, and no token ids"
    problems = [*_problems(decoder, inputs, outputs)]
    if problems:
        raise ConfigError(model.with_name(CONFIG_NAME), problems[0], len(problems))
    return DecoderNames(
        tokens=_there(decoder.inputs.input_ids, inputs),
        positions=_there(decoder.inputs.position_ids, inputs),
        mask=_there(decoder.inputs.attention_mask, inputs),
        logits=_there(decoder.outputs.logits, outputs),
        # Models may have layers without a cache.
        pairs=tuple(pair for pair in _cache(decoder) if pair[0] in inputs and pair[1] in outputs),
        fixed=tuple(_fixed(decoder, inputs)),
    )


def sizes_by_config(config: GenaiConfig, inputs: Mapping[str, ValueType]) -> dict[str, int]:
    """Return the sizes of dimensions that a configuration gives: heads of the cache, and their elements.

    Model Builder leaves them open, as ``kv_cache_dim``, because a cache of fewer bits has other sizes.
    """
    decoder = config.model.decoder
    told = {1: decoder.num_key_value_heads, 3: decoder.head_size}
    sizes: dict[str, int] = {}
    for past, _ in _cache(decoder):
        kind = inputs.get(past)
        if kind is not None and kind.dtype in FLOATS and kind.rank == _CACHE_RANK:
            named = enumerate(kind.axes)
            sizes |= {symbol: told[axis] for axis, symbol in named if symbol and told.get(axis)}
    return sizes


def _there(name: str, names: Mapping[str, ValueType]) -> str:
    return name if name in names else ""


def _cache(decoder: DecoderPart) -> Iterator[tuple[str, str]]:
    """Yield input and output of each tensor of the cache, in the order of the layers."""
    for layer in range(decoder.num_hidden_layers):
        for past, present in _patterns(decoder):
            yield _layer(past, layer), _layer(present, layer)


def _patterns(decoder: DecoderPart) -> Sequence[tuple[str, str]]:
    """Return the names of a layer's cache: of keys and values, or of both in one tensor."""
    if decoder.inputs.past_names:
        return [(decoder.inputs.past_names, decoder.outputs.present_names)]
    return [
        (decoder.inputs.past_key_names, decoder.outputs.present_key_names),
        (decoder.inputs.past_value_names, decoder.outputs.present_value_names),
    ]


def _fixed(decoder: DecoderPart, inputs: Mapping[str, ValueType]) -> Iterator[str]:
    """Yield the inputs that hold the cache of an encoder."""
    for pattern in (decoder.inputs.cross_past_key_names, decoder.inputs.cross_past_value_names):
        for layer in range(decoder.num_hidden_layers):
            if pattern and _layer(pattern, layer) in inputs:
                yield _layer(pattern, layer)


def _problems(
    decoder: DecoderPart, inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType]
) -> Iterator[Problem]:
    """Yield the names that the configuration states and that the model does not have."""
    for table, names, what in ((decoder.inputs, inputs, "input"), (decoder.outputs, outputs, "output")):
        defaults = type(table)()
        for key in table.__struct_fields__:
            name = getattr(table, key)
            if name == getattr(defaults, key):
                continue  # not stated, or a default
            where = f"{CONFIG_NAME}: model.decoder.{what}s.{key}"
            if not key.endswith("_names"):
                if name not in names:
                    yield _missing(where, what, name, names)
            elif name.count(LAYER) != 1:
                hint = f"a name with one {LAYER} for the number of the layer"
                yield Problem(where=where, what=f"{name!r} is one name for all layers", hint=hint)
            elif not any(_layer(name, layer) in names for layer in range(decoder.num_hidden_layers)):
                yield _missing(where, what, _layer(name, 0), names)
    if not decoder.inputs.past_names:
        yield from _half(decoder, inputs, outputs)


def _half(
    decoder: DecoderPart, inputs: Mapping[str, ValueType], outputs: Mapping[str, ValueType]
) -> Iterator[Problem]:
    """Yield the inputs of the cache whose outputs are missing; a default name may have hidden this."""
    for key, (past, present) in zip(("key", "value"), _patterns(decoder), strict=True):
        for layer in range(decoder.num_hidden_layers):
            if _layer(past, layer) in inputs and _layer(present, layer) not in outputs:
                where = f"{CONFIG_NAME}: model.decoder.outputs.present_{key}_names"
                yield _missing(where, "output", _layer(present, layer), outputs)
                return


def _layer(pattern: str, layer: int) -> str:
    return pattern.replace(LAYER, str(layer))


def _missing(where: str, what: str, name: str, names: Mapping[str, ValueType]) -> Problem:
    return Problem(where=where, what=f"the model has no {what} {name!r}", hint=valid_names(name, names))
