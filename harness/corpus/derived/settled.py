"""A model in which what ONNX leaves undefined has a value: two such models tell which outputs depend on it.

A network computes both branches of a choice: ``Where(x < 8, x, Cast(Log(x)))`` of T5 casts the logarithm of
0, whose result no output ever holds. An output that is the same whatever the cast gives is defined.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import onnx
from onnx.helper import make_node, make_tensor

from harness.corpus.case import Case
from harness.corpus.derived.derived_models import digest_of
from harness.corpus.derived.inner_outputs import rewritten
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.element_types import NUMBERS, limits_of
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.nodes import number_of, opsets_of, replace_nodes
from harness.corpus.model.schema_types import FLOAT_TYPES, declared_types, result_types, tensor_text
from harness.corpus.model.undefined import cast_target, reaching
from harness.operators.book import operators_by

_FORMAT = 4
"""Increase it when the written model changes although its source does not."""

_LOW, _HIGH = 0, 1
"""The two values of what is undefined. Both are positions in a table of two rows."""

_HUGE = 1e30
"""Beyond the range of each quantized type, on either side."""

_CAST_LIKE_FROM = 15
_DOUBLE, _INT64 = onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64
_NUMBERS = {tensor_text(number): number for number in NUMBERS.values()}
"""Types of tensors -> ``TensorProto.DataType``."""

_BITS = {f"tensor({sign}int{bits})": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
_RULE_OF = operators_by(lambda row: row.undefined)


def settled_case(case: Case, *, high: bool) -> Case | Inapplicable:
    """Return the case with one of two values in place of undefined results; without expected outputs.

    Returns:
        Return ``Inapplicable`` as ``rewritten``.

    Raises:
        ModelError: The model is broken or missing, or a type in it is not known.
        UsageError: The cache cannot be written.
    """
    digest = digest_of("settled", _FORMAT, case.digest, high)

    def change(model: onnx.ModelProto) -> None:
        try:
            replace_nodes(model.graph, list(_settled(model, _HIGH if high else _LOW)))
        except _UnknownTypeError as error:
            raise ModelError(case.model_path, f"the type of {error} is not known") from error

    return rewritten(case, "settled", digest, change)


class _UnknownTypeError(Exception):
    """The type of a tensor, which a node has to have, is not known."""


class _Maker(NamedTuple):
    """What a rule needs to make nodes before a node.

    Attributes:
        stem: The beginning of new names.
        value: ``_LOW`` or ``_HIGH``.
        types: Types of tensors by name.
        opset: Version of ONNX's operators.
    """

    stem: str
    value: int
    types: Mapping[str, str]
    opset: int

    def constant(self, name: str, number: float, kind: int = _DOUBLE) -> onnx.NodeProto:
        """Return a node with a scalar."""
        return make_node("Constant", [], [self.of(name)], value=make_tensor(name, kind, [], [number]))

    def of(self, name: str) -> str:
        return f"{self.stem}.{name}"

    def typed(self, name: str, like: str, result: str) -> onnx.NodeProto:
        """Return a node that casts a tensor to the type of another one."""
        if self.opset >= _CAST_LIKE_FROM:
            return make_node("CastLike", [name, like], [result])
        return make_node("Cast", [name], [result], to=_NUMBERS[self.known_type(like)])

    def known_type(self, name: str) -> str:
        """Return the type of a tensor: a key of ``_NUMBERS``.

        Raises:
            _UnknownTypeError: It is not known.
        """
        kind = self.types.get(name, "")
        if kind not in _NUMBERS:
            raise _UnknownTypeError(name)
        return kind

    def chosen(
        self, node: onnx.NodeProto, index: int, flag: str, number: float, kind: int = _DOUBLE
    ) -> Iterator[onnx.NodeProto]:
        """Yield nodes that put a number in place of an input's elements where a flag is false."""
        own = node.input[index]
        wide, other, both, made = (f"{part}{index}" for part in ("wide", "number", "both", "made"))
        yield make_node("Cast", [own], [self.of(wide)], to=kind)
        yield self.constant(other, number, kind)
        yield make_node("Where", [flag, self.of(wide), self.of(other)], [self.of(both)])
        yield self.typed(self.of(both), own, self.of(made))
        node.input[index] = self.of(made)


def _settled(model: onnx.ModelProto, value: int) -> Iterator[onnx.NodeProto]:
    graph = model.graph
    opsets, types = opsets_of(model), declared_types(graph)
    partial = set(reaching(graph))
    for at, node in enumerate(graph.node):
        for name, kind in result_types(node, opsets, types, ()):
            types.setdefault(name, kind)
        rule = _RULES.get(_RULE_OF.get(node.op_type, "")) if at in partial else None
        if rule is None:
            yield node
            continue
        changed = onnx.NodeProto()
        changed.CopyFrom(node)
        # A name of a tensor is any text, but hardly this one.
        maker = _Maker(f"ep_harness.settled{at}", value, types, opsets.get("", 0))
        yield from rule(maker, changed)
        yield changed


def _cast(maker: _Maker, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    to = cast_target(node)
    if "int" not in to or maker.known_type(node.input[0]) not in FLOAT_TYPES:
        return
    low, high = limits_of(to)
    yield make_node("Cast", [node.input[0]], [maker.of("given")], to=_DOUBLE)
    yield maker.constant("below", float(low) - 1)
    yield maker.constant("beyond", float(high) + 1)
    yield make_node("Greater", [maker.of("given"), maker.of("below")], [maker.of("over")])
    yield make_node("Less", [maker.of("given"), maker.of("beyond")], [maker.of("under")])
    yield make_node("And", [maker.of("over"), maker.of("under")], [maker.of("holds")])
    yield from maker.chosen(node, 0, maker.of("holds"), maker.value)


def _nan(maker: _Maker, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    yield make_node("IsNaN", [node.input[0]], [maker.of("is_nan")])
    yield make_node("Not", [maker.of("is_nan")], [maker.of("holds")])
    yield from maker.chosen(node, 0, maker.of("holds"), _HUGE if maker.value else -_HUGE)


def _power(maker: _Maker, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    base, exponent, whole, none = (maker.of(name) for name in ("base", "exponent", "whole", "none"))
    yield make_node("Cast", [node.input[0]], [base], to=_DOUBLE)
    yield make_node("Cast", [node.input[1]], [exponent], to=_DOUBLE)
    yield make_node("Floor", [exponent], [whole])
    yield make_node("Sub", [exponent, whole], [maker.of("rest")])
    yield maker.constant("none", 0.0)
    yield make_node("Greater", [maker.of("rest"), none], [maker.of("fraction")])
    yield make_node("Less", [base, none], [maker.of("negative")])
    yield make_node("And", [maker.of("fraction"), maker.of("negative")], [maker.of("fails")])
    yield make_node("Not", [maker.of("fails")], [maker.of("holds")])
    yield from maker.chosen(node, 0, maker.of("holds"), maker.value + 1)
    yield from maker.chosen(node, 1, maker.of("holds"), 1)


def _division(maker: _Maker, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    if "int" not in maker.known_type(node.input[1]):
        return
    yield make_node("Cast", [node.input[1]], [maker.of("divisor")], to=_INT64)
    yield maker.constant("none", 0, _INT64)
    yield make_node("Equal", [maker.of("divisor"), maker.of("none")], [maker.of("fails")])
    yield make_node("Not", [maker.of("fails")], [maker.of("holds")])
    yield from maker.chosen(node, 0, maker.of("holds"), maker.value, _INT64)
    # 1 / 1 and 1 % 2 are the value again.
    yield from maker.chosen(node, 1, maker.of("holds"), 2 if node.op_type == "Mod" else 1, _INT64)


def _shift(maker: _Maker, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    bits = _BITS.get(maker.known_type(node.input[1]))
    if bits is None:
        raise _UnknownTypeError(node.input[1])
    yield make_node("Cast", [node.input[1]], [maker.of("by")], to=_DOUBLE)
    yield maker.constant("bits", bits)
    yield make_node("Less", [maker.of("by"), maker.of("bits")], [maker.of("holds")])
    yield from maker.chosen(node, 0, maker.of("holds"), maker.value, _INT64)
    yield from maker.chosen(node, 1, maker.of("holds"), 0, _INT64)


def _scatter(maker: _Maker, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield nodes with which the first element written counts, not the last one."""
    if maker.value:
        for index in (1, 2):
            yield from _backwards(maker, node, index, int(number_of(node, "axis", 0)))


def _scatter_tuples(maker: _Maker, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    if not maker.value:
        return
    any_number, width = maker.of("any"), maker.of("width")
    yield _numbers(any_number, [-1])
    yield make_node("Shape", [node.input[1]], [maker.of("indices")])
    yield _numbers(maker.of("last"), [-1])
    yield make_node("Gather", [maker.of("indices"), maker.of("last")], [width], axis=0)
    yield make_node("Shape", [node.input[0]], [maker.of("data")])
    yield _numbers(maker.of("end"), [1 << 40])
    yield make_node("Slice", [maker.of("data"), width, maker.of("end")], [maker.of("rest")])
    for index, behind in ((1, width), (2, maker.of("rest"))):
        shape, flat = maker.of(f"shape{index}"), maker.of(f"flat{index}")
        yield make_node("Concat", [any_number, behind], [shape], axis=0)
        yield make_node("Reshape", [node.input[index], shape], [flat])
        node.input[index] = flat
        yield from _backwards(maker, node, index, 0)


def _backwards(maker: _Maker, node: onnx.NodeProto, index: int, axis: int) -> Iterator[onnx.NodeProto]:
    """Yield nodes that reverse an input along an axis."""
    names = [maker.of(f"{part}{index}") for part in ("start", "stop", "along", "step")]
    for name, number in zip(names, (-1, -(1 << 40), axis, -1), strict=True):
        yield _numbers(name, [number])
    reversed_ = maker.of(f"reversed{index}")
    yield make_node("Slice", [node.input[index], *names], [reversed_])
    node.input[index] = reversed_


def _numbers(name: str, numbers: list[int]) -> onnx.NodeProto:
    return make_node("Constant", [], [name], value=make_tensor(name, _INT64, [len(numbers)], numbers))


_Rule = Callable[[_Maker, onnx.NodeProto], Iterator[onnx.NodeProto]]
_RULES: dict[str, _Rule] = {
    "cast": _cast,
    "integer_division": _division,
    "nan": _nan,
    "power": _power,
    "scatter": _scatter,
    "scatter_tuples": _scatter_tuples,
    "shift": _shift,
}
"""Rules of the book of operators; for those of others, an undefined result stays what it is."""
