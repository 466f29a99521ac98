"""A random graph of a grammar, with the data of its inputs."""

import math

import onnx
import onnx.helper
import onnx.numpy_helper

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.forms.form_model import Built
from harness.annex.made.grown.elementwise_growth import ELEMENTWISE
from harness.annex.made.grown.growth import Growth, MisfitError
from harness.annex.made.grown.moves import MOVES
from harness.annex.made.grown.quantized import QUANTIZED
from harness.annex.made.grown.sums import RECURRENT, SUM_PRODUCTIONS
from harness.core.values.value import Array
from harness.corpus.model.protos import value_info

OPSETS = (13, 14, 15, 16, 17, 17, 18, 19, 20, 21, 21, 22, 23, 24, 25)
"""Opsets of random graphs; exporters' opsets are more frequent."""

_SIZES = (1, 2, 3, 4, 5, 7, 8)
_RANKS = (0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6)
_DTYPES = ("float32",) * 12 + ("float16", "float64", "int64", "int32", "bool", "uint8", "uint8", "int8")
_MOST_INPUT = 1024
_MOST_OUTPUTS = 4
_TRIES = 40
"""Number of productions that are tried for each wanted node."""

PRODUCTIONS = {
    "elementwise": ELEMENTWISE,
    "moves": MOVES,
    "sums": SUM_PRODUCTIONS,
    "quantized": QUANTIZED,
    "recurrent": RECURRENT,
}
"""Productions by kind."""

_DRAWN = ("elementwise", "moves", "sums", "sums", "quantized", "recurrent")
"""Kinds that a graph draws three of; sums twice as often."""


def grow(random: ChoiceStream) -> Built:
    """Return a random graph of one to a dozen nodes; everything about it is drawn."""
    g = Growth(random, random.pick(OPSETS))
    wanted = random.pick([1, 1, 2, 3, 4, 6, 8, 12])
    empty = g.chance(0.04)
    for _ in range(random.pick([1, 1, 2])):
        _add_input(g, empty=empty)
    kinds = random.some(_DRAWN, 3)
    for _ in range(_TRIES * wanted):
        if len(g.nodes) >= wanted:
            break
        production = random.pick(PRODUCTIONS[random.pick(kinds)])
        try:
            production(g)
        except MisfitError:
            continue
    if not g.nodes:
        g.op("Identity", g.values[0], most=g.values[0].most, exact=True)
    return Built(model=_model(g), inputs=g.inputs)


def _add_input(g: Growth, *, empty: bool) -> None:
    rank = g.random.pick(_RANKS)
    shape = [g.random.pick(_SIZES) for _ in range(rank)]
    while math.prod(shape) > _MOST_INPUT:
        shape[shape.index(max(shape))] = 1
    if empty and rank:
        shape[g.random.below(rank)] = 0
    g.input(g.random.pick(_DTYPES), shape)


def _model(g: Growth) -> onnx.ModelProto:
    read = {name for node in g.nodes for name in node.input}
    made = [one for one in g.values if one.name not in g.inputs]
    ends = [one for one in made if one.name not in read]
    inner = [one for one in made if one.name in read]
    outputs = ends[-_MOST_OUTPUTS:]
    if inner and g.chance(0.2):
        # An output that a node also reads cannot be fused away.
        outputs.append(g.random.pick(inner))
    symbol = g.chance(0.25)
    ports = [_input(name, array, symbolic=symbol) for name, array in g.inputs.items()]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in g.weights.items() if name in read]
    results = [value_info(one.name, one.dtype, one.shape) for one in outputs]
    graph = onnx.helper.make_graph(g.nodes, "grown", ports, results, weights)
    opsets = [onnx.helper.make_opsetid("", g.opset)]
    version, producer = onnx.helper.find_min_ir_version_for(opsets), "ort-ep-harness"
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=version, producer_name=producer)


def _input(name: str, array: Array, *, symbolic: bool) -> onnx.ValueInfoProto:
    shape: list[int | str] = list(array.shape)
    if symbolic and shape:
        shape[0] = f"rows_of_{name}"
    return value_info(name, array.dtype.name, shape)
