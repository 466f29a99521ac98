"""Nodes that detect where an operation rounds nothing at all.

Every implementation has the same result there, and noise would break apparent ties. The nodes detect this
while the model runs, element by element, from the actual operands: with noise on these the operation rounds
again.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import onnx
from onnx.helper import make_node, make_tensor

from harness.corpus.model.nodes import domain_of
from harness.corpus.model.schema_types import FLOAT_TYPES
from harness.corpus.noise.drawing import DOUBLE, FLOAT_TENSOR
from harness.corpus.noise.tensors import EXACT_UP_TO, GRID, ReadableTensors
from harness.corpus.noise.terms import attribute_of
from harness.operators.book import operators_with

SELECTS_FROM = 9
"""Opset from which on there is Where."""

_BINARY = operators_with(lambda row: row.exact_where == "binary")
_SUMS = operators_with(lambda row: row.exact_where == "sum")
"""Operators whose results are exact if all operands are coarse, and no partial sum is too large."""

_BOOL, _INT64 = onnx.TensorProto.BOOL, onnx.TensorProto.INT64


class RoundingWatch(NamedTuple):
    """Nodes that detect where another node rounds.

    Attributes:
        flag: The name of their result, true where the node's result is rounded; empty without such nodes.
        before: The nodes that precede it.
        after: The nodes that follow it, for each element.
    """

    flag: str = ""
    before: tuple[onnx.NodeProto, ...] = ()
    after: tuple[onnx.NodeProto, ...] = ()


def watched(node: onnx.NodeProto, result: str, kind: str, scope: ReadableTensors) -> RoundingWatch:
    """Return the nodes that detect where a node rounds, if that can be detected.

    Args:
        node: The node, with its operands before noise.
        result: The name that its exact result gets.
        kind: The type of this result.
        scope: Known facts about the operands.
    """
    if domain_of(node) or len(node.output) > 1:
        return RoundingWatch()
    flag = f"{result}.is_rounded"
    if node.op_type in _BINARY:
        return RoundingWatch(flag=flag, after=(*_rounded(node, result, flag, kind),))
    if node.op_type in _SUMS and kind == FLOAT_TENSOR and _may_be_exact(node, scope):
        return RoundingWatch(flag=flag, before=(*_summed(node, flag),))
    return RoundingWatch()


def divided(node: onnx.NodeProto, result: str, kind: str, scope: ReadableTensors) -> RoundingWatch:
    """Return nodes that detect where QuantizeLinear rounds its quotient, before rounding it to an integer.

    The arguments are as for ``watched``; ``result`` is the name that the quotient gets.
    """
    scale, sizes = node.input[1], scope.sizes.get(node.input[0])
    factors = scope.sizes.get(scale)
    if domain_of(node) or sizes is None or factors is None or attribute_of(node, "block_size", 0):
        return RoundingWatch()
    before: list[onnx.NodeProto] = []
    if len(factors) == 1 and factors != (1,):
        axis = int(attribute_of(node, "axis", 1)) % max(1, len(sizes))
        along = [-1 if one == axis else 1 for one in range(len(sizes))]
        shape, scale = f"{result}.shape", f"{result}.scale"
        before = [
            make_node("Constant", [], [shape], value=make_tensor("shape", _INT64, [len(along)], along)),
            make_node("Reshape", [node.input[1], shape], [scale]),
        ]
    elif len(factors) > 1:
        return RoundingWatch()
    quotient = make_node("Div", [node.input[0], scale], [result])
    flag = f"{result}.is_rounded"
    return RoundingWatch(flag=flag, before=(*before, quotient, *_rounded(quotient, result, flag, kind)))


def _may_be_exact(node: onnx.NodeProto, scope: ReadableTensors) -> bool:
    """Return whether a node adds products or numbers that may all be coarse."""
    plain = all(attribute_of(node, name, 1.0) == 1.0 for name in ("alpha", "beta"))
    fine = scope.constant.difference(scope.coarse)
    return plain and fine.isdisjoint(name for _, name in _operands(node))


def _rounded(node: onnx.NodeProto, result: str, flag: str, kind: str) -> Iterator[onnx.NodeProto]:
    """Yield nodes that compute where a node rounds its ``result``.

    A quotient must also be exact for implementations that multiply by the reciprocal. float64 is treated as
    float32, in which processors without it compute.
    """
    stem, double = f"{result}.rounds", FLOAT_TYPES[DOUBLE]
    sides = []
    for index, name in enumerate(node.input[:2]):
        sides.append(f"{stem}.side{index}")
        yield from _widened(name, sides[-1], kind)
    yield make_node(node.op_type, sides, [f"{stem}.right"])
    yield make_node("Cast", [result], [f"{stem}.found"], to=double)
    compared = f"{flag}.result" if node.op_type == "Div" else flag
    yield from _differs(f"{stem}.right", f"{stem}.found", compared, kind)
    if node.op_type != "Div":
        return
    one, quotient = f"{stem}.one", f"{stem}.reciprocal"
    yield make_node("Constant", [], [one], value=make_tensor("one", double, [], [1.0]))
    yield make_node("Div", [one, sides[1]], [quotient])
    yield make_node(
        "Cast", [quotient], [f"{quotient}.narrow"], to=FLOAT_TYPES[kind if kind != DOUBLE else FLOAT_TENSOR]
    )
    yield make_node("Cast", [f"{quotient}.narrow"], [f"{quotient}.wide"], to=double)
    yield from _differs(quotient, f"{quotient}.wide", f"{quotient}.rounds", FLOAT_TENSOR)
    yield make_node("Or", [compared, f"{quotient}.rounds"], [flag])


def _summed(node: onnx.NodeProto, stem: str) -> Iterator[onnx.NodeProto]:
    """Yield nodes that compute one flag: whether a sum is rounded anywhere.

    The ``stem`` of other names is its name.

    If all operands are multiples of ``GRID``, and the sum of the magnitudes is within the range of float32,
    every partial sum is exact, in whatever order.
    """
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    bound.name = ""
    bound.output[:] = [f"{stem}.bound"]
    parts = []
    for index, name in _operands(node):
        size, steps, cut = (f"{stem}.{word}{index}" for word in ("size", "steps", "cut"))
        yield make_node("Abs", [name], [size])
        yield _number(f"{steps}.step", 1 / GRID)
        yield make_node("Mul", [size, f"{steps}.step"], [steps])
        yield make_node("Floor", [steps], [cut])
        yield make_node("Sub", [steps, cut], [f"{cut}.rest"])
        yield make_node("ReduceSum", [f"{cut}.rest"], [f"{cut}.all"], keepdims=0)
        parts.append(f"{cut}.all")
        bound.input[index] = size
    yield bound
    yield _number(f"{stem}.limit", EXACT_UP_TO * GRID * GRID)
    yield make_node("Sub", [f"{stem}.bound", f"{stem}.limit"], [f"{stem}.over"])
    yield make_node("Relu", [f"{stem}.over"], [f"{stem}.beyond"])
    yield make_node("ReduceSum", [f"{stem}.beyond"], [f"{stem}.excess"], keepdims=0)
    yield make_node("Sum", [*parts, f"{stem}.excess"], [f"{stem}.amount"])
    yield make_node("Cast", [f"{stem}.amount"], [stem], to=_BOOL)


def selected(flag: str, noisy: str, plain: str, result: str, kind: str) -> Iterator[onnx.NodeProto]:
    """Yield nodes that take the ``noisy`` elements where a flag is true, and the ``plain`` ones elsewhere."""
    if kind in {FLOAT_TENSOR, DOUBLE}:
        yield make_node("Where", [flag, noisy, plain], [result])
        return
    # The CPU EP's Where supports neither of the 16-bit types.
    wide = [f"{result}.{word}" for word in ("noisy_wide", "plain_wide")]
    for source, name in zip((noisy, plain), wide, strict=True):
        yield make_node("Cast", [source], [name], to=FLOAT_TYPES[FLOAT_TENSOR])
    yield make_node("Where", [flag, *wide], [f"{result}.wide"])
    yield make_node("Cast", [f"{result}.wide"], [result], to=FLOAT_TYPES[kind])


def _operands(node: onnx.NodeProto) -> Sequence[tuple[int, str]]:
    used = node.input[:1] if node.op_type == "ReduceSum" else node.input
    return [(index, name) for index, name in enumerate(used) if name]


def _widened(name: str, result: str, kind: str) -> Iterator[onnx.NodeProto]:
    if kind == DOUBLE:
        yield make_node("Cast", [name], [f"{result}.narrow"], to=FLOAT_TYPES[FLOAT_TENSOR])
        name = f"{result}.narrow"
    yield make_node("Cast", [name], [result], to=FLOAT_TYPES[DOUBLE])


def _differs(right: str, found: str, result: str, kind: str) -> Iterator[onnx.NodeProto]:
    """Yield nodes that compare two doubles; NaN differs from everything."""
    if kind == DOUBLE:
        yield from _widened(right, f"{result}.narrowed", kind)
        right = f"{result}.narrowed"
    yield make_node("Sub", [right, found], [f"{result}.rest"])
    yield make_node("Cast", [f"{result}.rest"], [result], to=_BOOL)


def _number(name: str, number: float) -> onnx.NodeProto:
    return make_node(
        "Constant", [], [name], value=make_tensor("number", FLOAT_TYPES[FLOAT_TENSOR], [], [number])
    )
