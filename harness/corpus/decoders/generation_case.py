"""The case of the scenario ``generate``: one data set for each play, with the whole text and an empty cache.

The golden of every way to play a text is a plain run: one pass over the text.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from harness.core.records.ways import MOST_PADS, WAYS, Play, TextSettings, plays_of
from harness.core.values.value import DTYPES, Array, Tensor, Value
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.decoders.decoder import Decoder, decoder_of
from harness.corpus.decoders.feature_tokens import feature_tokens
from harness.corpus.decoders.fixed_cache import CachePosition
from harness.corpus.load_case import SEED
from harness.corpus.model.port import ValueType

_LARGEST = 1 << 31
"""A number of positions that no model reaches."""


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """A value between the sessions of a folder, which is compared, too.

    Attributes:
        axis: Axis along which it is compared: that of the text's positions, if it has them.
        once: Whether the prompt alone gives it, and all later tokens use it; else it is given for each token.
    """

    axis: int
    once: bool


class GenerationSupport(msgspec.Struct, frozen=True, kw_only=True):
    """What a model can play.

    Attributes:
        plays: One for each data set.
        declined: Way -> why the model cannot play it.
        batch_axes: Input -> its batch axis; inputs without one are left out.
        passed: Values between the sessions of a folder.
        givers: Output -> the stage of the folder that gives it for a prompt, and for later tokens.
        order: The stages, in the order in which they run.
        least_prompt: Positions that the first step has at least: features must not be torn apart.
    """

    decoder: Decoder
    plays: tuple[Play, ...]
    declined: dict[str, str]
    batch_axes: dict[str, int]
    passed: dict[str, Passed] = {}
    givers: dict[str, tuple[str, str]] = {}
    order: tuple[str, ...] = ()
    least_prompt: int = 1

    @property
    def axes(self) -> dict[str, int]:
        """Return the outputs that are compared, and the axis of their positions.

        They are the logits, the cache, and values between the sessions of a folder.
        """
        own = {self.decoder.logits: 1} | {pair.present: pair.axis for pair in self.decoder.cache}
        return own | {name: value.axis for name, value in self.passed.items()}


def generation_of(case: Case, settings: TextSettings) -> GenerationSupport | str:
    """Return what a model can play of the settings; the reason why nothing, if it is no decoder.

    The case is the plain one, or one made by ``data_sets_of``.
    """
    decoder = decoder_of(case)
    if isinstance(decoder, str):
        return f"it is no decoder that the scenario can play: {decoder}"
    if (largest := max(settings.prompt, default=0)) >= decoder.vocabulary:
        return f"token {largest} of the prompt is not in its vocabulary of {decoder.vocabulary}"
    types = {port.name: port.type for port in case.ports}
    held = feature_tokens(case)
    if isinstance(held, str):
        return held
    reserved = sum(held.values())
    plays: list[Play] = []
    declined = {}
    for name in settings.ways:
        rows = _rows(types[decoder.tokens], name)
        why = _why_not(decoder, name, rows, chained=case.chain is not None)
        room = _room(decoder, name, settings, reserved)
        found = () if why else plays_of(name, room, settings.new_tokens, rows)
        if reserved and found:
            found = tuple(play for play in found if play.begins_with(reserved + 1))
            why = (
                "" if found else f"its first step is shorter than the {reserved} tokens of a picture or sound"
            )
        if not found:
            declined[name] = why or f"a text of {room} tokens is too short"
        if not decoder.cache:
            found = tuple(msgspec.structs.replace(play, buffers="none") for play in found)
        plays += found
    if not plays:
        return "; ".join(f"{way}: {why}" for way, why in declined.items())
    batch = types[decoder.tokens].axes[0]
    axes = {name: _batch_axis(kind, batch) for name, kind in types.items()}
    return GenerationSupport(
        decoder=decoder,
        plays=tuple(plays),
        declined=declined,
        batch_axes={name: axis for name, axis in axes.items() if axis is not None},
        least_prompt=reserved + 1,
        **_of_chain(case),
    )


def _of_chain(case: Case) -> dict[str, Any]:
    """Return what is known about the values of a folder's sessions."""
    chain = case.chain
    if chain is None:
        return {}
    types = dict(zip(case.outputs, case.output_types, strict=True))
    passed = {
        name: Passed(axis=min(1, types[name].rank - 1), once=name in chain.once)
        for name in chain.between
        if name in types
    }
    givers = {name: (chain.stage_of(name, later=False), chain.stage_of(name, later=True)) for name in types}
    return {"passed": passed, "givers": givers, "order": tuple(stage.name for stage in chain.stages)}


def data_sets_of(case: Case, generation: GenerationSupport, settings: TextSettings) -> tuple[DataSet, ...]:
    """Return one data set for each play: the whole text, with an empty cache."""
    held = feature_tokens(case)
    texts = _texts(generation, settings, held if isinstance(held, dict) else {})
    return tuple(
        DataSet(name=play.name, inputs=tuple(_inputs(case, generation.decoder, texts, play)))
        for play in generation.plays
    )


def _room(decoder: Decoder, way: str, settings: TextSettings, reserved: int) -> int:
    """Return the number of positions of a way's text, for which a model must have room."""
    wanted = (settings.longest if way == "lengths" and settings.longest else settings.length) + reserved
    held = (decoder.context or _LARGEST) - (MOST_PADS if WAYS[way].needs_mask else 0)
    return min(wanted, held)


def _rows(tokens: ValueType, way: str) -> int:
    """Return the size of the batch: what the model fixes, else what the way needs."""
    fixed = bool(tokens.symbols) and tokens.symbols[0] is None
    return (tokens.shape or (1,))[0] or 1 if fixed else WAYS[way].rows


def _why_not(decoder: Decoder, way: str, rows: int, *, chained: bool) -> str:
    """Return why a model cannot play a way; empty if it can."""
    wanted = WAYS[way]
    if wanted.needs_cache and not decoder.cache:
        return "the model has no cache"
    if rows < wanted.rows or (way == "interleaved" and rows > wanted.rows):
        return f"the batch of the model is fixed at {rows}"
    if way == "shared_buffer" and chained:
        return "the sessions of the folder get copies of the cache"
    if way == "shared_buffer" and not decoder.shares_buffer:
        return "no operator of the model can have past and present in one buffer"
    return _why_not_padded(decoder, way) if wanted.needs_mask else ""


def _why_not_padded(decoder: Decoder, way: str) -> str:
    if not decoder.mask:
        return "the model has no attention mask"
    if way == "left_padded" and decoder.takes_lengths:
        return "its attention takes the length of a text, not a mask: it has padding after texts only"
    if not decoder.positions and not decoder.takes_lengths:
        return "the model has no input of positions, and would count padding"
    return ""


def _texts(generation: GenerationSupport, settings: TextSettings, held: Mapping[int, int]) -> Array:
    """Return one text for each row that a play may have; the first begins with the prompt.

    ``held`` are the tokens whose places features take, and their number. They follow the first token of each
    text, and are nowhere else: not even where other tokens are fed before a rewind, which are larger by 1.
    """
    vocabulary = generation.decoder.vocabulary
    rows = max(len(play.layout) for play in generation.plays)
    length = max(play.length for play in generation.plays)
    # Rows are drawn one after another: the first text does not depend on their number.
    texts = np.array(
        [np.random.default_rng((SEED, row)).integers(0, vocabulary, length) for row in range(rows)], np.int64
    )
    for token in held:
        texts[np.isin(texts, (token, token - 1))] = 0
    start = sum(held.values()) + 1 if held else 0
    end = min(length, start + len(settings.prompt))
    texts[0, start:end] = settings.prompt[: end - start]
    at = 1
    for token, count in held.items():
        texts[:, at : at + count] = token
        at += count
    return texts


def _inputs(case: Case, decoder: Decoder, texts: Array, play: Play) -> Iterator[tuple[str, Value]]:
    shape = (len(play.layout), play.length)
    given = dict(case.data_sets[0].inputs)
    pasts = {pair.past: pair.axis for pair in decoder.cache}
    types = {port.name: port.type for port in case.ports}
    batch = types[decoder.tokens].axes[0]
    for name, kind in types.items():
        if name == decoder.tokens:
            yield name, _tensor(texts[: shape[0], : shape[1]], kind)
        elif name == decoder.positions:
            yield name, _tensor(np.broadcast_to(np.arange(shape[1]), shape), kind)
        elif name == decoder.mask:
            columns = decoder.cache_length if decoder.masks_cache else shape[1]
            counted = np.arange(columns or 0) < shape[1]
            yield name, _tensor(np.broadcast_to(counted, (shape[0], len(counted))), kind)
        elif name in pasts:
            sizes = {pasts[name]: decoder.cache_length or 0}
            if (at := _batch_axis(kind, batch)) is not None:
                sizes = {at: shape[0]} | sizes
            empty = [sizes.get(axis, size) for axis, size in enumerate(_shape(given[name]))]
            yield name, _tensor(np.zeros(empty), kind)
        elif name in decoder.counts:
            yield name, _counted(decoder.counts[name], kind, shape)
        elif name in decoder.constants:
            yield name, _tensor(np.full(_shape(given[name]), decoder.constants[name]), kind)
        else:
            yield name, _with_rows(given[name], kind, batch, shape[0])


def _tensor(array: Array, kind: ValueType) -> Tensor:
    return Tensor(dtype=kind.dtype, array=np.ascontiguousarray(array, DTYPES[kind.dtype]))


def _batch_axis(kind: ValueType, batch: str | None) -> int | None:
    """Return the axis of the batch: by its name, else the first; None if the model fixes it."""
    symbols = kind.symbols
    if batch and batch in symbols:
        return symbols.index(batch)
    return 0 if symbols and symbols[0] is not None else None


def _counted(count: CachePosition, kind: ValueType, shape: tuple[int, int]) -> Tensor:
    """Return an input that counts columns, for a whole text without any before it."""
    rows, columns = shape
    if count == "places":
        return _tensor(np.arange(columns), kind)
    sizes = tuple(rows if symbol is not None else 1 for symbol in kind.symbols)
    return _tensor(np.zeros(sizes), kind)


def _shape(value: Value) -> tuple[int, ...]:
    return value.array.shape if isinstance(value, Tensor) else ()


def _with_rows(value: Value, kind: ValueType, batch: str | None, rows: int) -> Value:
    """Return an input that stays the same in all steps, for so many rows."""
    at = _batch_axis(kind, batch)
    if not isinstance(value, Tensor) or at is None or not value.array.shape[at : at + 1]:
        return value
    wanted = np.arange(rows) % value.array.shape[at]
    return _tensor(np.take(value.array, wanted, at), kind)
