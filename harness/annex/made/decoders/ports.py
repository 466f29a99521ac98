"""Inputs and outputs, with the names and dimensions that Model Builder and other exporters give them."""

from collections.abc import Sequence

import numpy as np

from harness.annex.made.decoders.form import KEY_SPREAD, LAYERS, VOCABULARY, DecoderForm
from harness.annex.made.zoo.graph_builder import GraphBuilder, MakeInput, SymbolicDim
from harness.annex.made.zoo.inputs import positions_after, token_ids
from harness.core.values.value import Array

_BATCH = SymbolicDim("batch_size", 2)
_SEQUENCE = SymbolicDim("sequence_length", 1)
"""New tokens.

One token: with cached tokens, the CPU EP's ``GroupQueryAttention`` takes more than one only for a single
text.
"""

_PAST = SymbolicDim("past_sequence_length", 8)
TOTAL = SymbolicDim("total_sequence_length", _SEQUENCE.size + _PAST.size)

_PARTS = ("key", "value")


def tokens(g: GraphBuilder, dtype: str = "int64") -> str:
    """Declare the input of token ids."""
    draw = token_ids(VOCABULARY)
    return g.input("input_ids", (_BATCH, _SEQUENCE), lambda random, shape: draw(random, shape).astype(dtype))


def mask(g: GraphBuilder) -> str:
    """Declare the mask of past and new tokens; all of them count."""
    return g.input("attention_mask", (_BATCH, TOTAL), lambda _random, shape: np.ones(shape, np.int64))


def positions(g: GraphBuilder) -> str:
    """Declare the positions of new tokens: those after the past ones."""
    return g.input("position_ids", (_BATCH, _SEQUENCE), positions_after(_PAST.size))


def past(
    g: GraphBuilder,
    form: DecoderForm,
    names: str = "past_key_values.{layer}.{part}",
    length: int = 0,
    only: int | None = None,
) -> list[list[str]]:
    """Declare the cached keys and values of each layer, or of one; an encoder's have a fixed length."""
    shape = (_BATCH, form.key_heads, length or (form.context if form.static else _PAST), form.head)
    return [
        [g.input(names.format(layer=layer, part=part), shape, _cached(form, part)) for part in _PARTS]
        for layer in (range(LAYERS) if only is None else [only])
    ]


def present(
    g: GraphBuilder,
    form: DecoderForm,
    made: Sequence[Sequence[str]],
    names: str = "present.{layer}.{part}",
    first: int = 0,
) -> None:
    """Make the keys and values of each layer from the first on outputs, including the new ones."""
    length = form.context if form.static else TOTAL
    for layer, values in enumerate(made, first):
        for part, value in zip(_PARTS, values, strict=True):
            name = names.format(layer=layer, part=part)
            g.output(name, value, form.numpy_type, (_BATCH, form.key_heads, length, form.head))


def logits(g: GraphBuilder, form: DecoderForm, value: str) -> None:
    """Make the logits the first output."""
    g.output("logits", value, form.numpy_type, (_BATCH, _SEQUENCE, VOCABULARY))


def _cached(form: DecoderForm, part: str) -> MakeInput:
    """Return a function that draws cached keys or values with the spread of the model's own."""
    spread = KEY_SPREAD if part == "key" else 1.0

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
        values: Array = (spread * random.standard_normal(shape)).astype(form.numpy_type)
        return values

    return draw
