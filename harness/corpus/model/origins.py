"""The operator that computes a graph output, where it decides how the output's values are judged."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.model.copies import Copy, copies_of
from harness.corpus.model.element_types import ELEMENT_TYPES, NARROWER, is_floating
from harness.corpus.model.nodes import (
    FunctionKey,
    all_nodes,
    bodies,
    called_by,
    constant_of,
    domain_of,
    local_functions,
    number_of,
    opsets_of,
    weight_names,
)
from harness.corpus.model.port import model_text
from harness.corpus.model.protos import few_numbers
from harness.operators.book import operators_with

if TYPE_CHECKING:
    import onnx

_SAME_ORDER = operators_with(lambda row: row.keeps_order)
"""Operators whose output has the elements of their first input in the same order."""

_QUANTIZING = operators_with(lambda row: row.divides_by_scale)
_QUANTIZED_OPERATOR = "QLinear"
"""Prefix of operators that compute from integers to integers, in other domains too."""

RANDOM_OPERATORS = operators_with(lambda row: row.random)
"""Operators whose generator the standard leaves open, even with a seed: their values prove no fault."""

_SCALE_LIMIT = 4096
"""Largest number of scales that are kept; steps of a tensor with more scales are not counted."""

_DROPOUT_BY_INPUT = 12
"""Opset from which on an input of Dropout says whether it is in training."""

_CHOOSING = operators_with(lambda row: row.ties)


class ChosenFrom(msgspec.Struct, frozen=True, kw_only=True, tag="chosen"):
    """Positions.

    Attributes:
        data: Name of the tensor from which the operator chose.
        computed: Whether that tensor is computed; otherwise it is an input of the graph.
        axis: The axis along which the operator chose.
        unordered: Whether it is a TopK that need not sort.
    """

    op: str
    data: str
    computed: bool
    axis: int = -1
    unordered: bool = False


class UnorderedWith(msgspec.Struct, frozen=True, kw_only=True, tag="unordered"):
    """The values of a TopK that need not sort.

    Attributes:
        axis: The axis along which the operator chose.
        positions: Graph output with the positions of these values; empty if there is none.
    """

    axis: int = -1
    positions: str = ""


class QuantizedWith(msgspec.Struct, frozen=True, kw_only=True, tag="quantized"):
    """Values on a grid.

    Attributes:
        scale: Name of the graph input that holds the scale; empty if ``values`` hold it.
        values: A constant scale: one, or one for each index of ``axis``; empty for integers, whose neighbours
            are 1 apart.
        axis: The axis of the output that several scales belong to.
        in_integers: Whether an EP may compute them in integers, from values that are quantized already.
    """

    scale: str = ""
    values: tuple[float, ...] = ()
    axis: int = 1
    in_integers: bool = False


class CopiedFrom(msgspec.Struct, frozen=True, kw_only=True, tag="copied"):
    """Values that operators copy or choose from inputs and constants, or round once to nearest.

    Attributes:
        rounding: Operators on the way that round, sorted.
    """

    rounding: tuple[str, ...] = ()


class DrawnBy(msgspec.Struct, frozen=True, kw_only=True, tag="drawn"):
    """Random numbers.

    Attributes:
        parameters: Its numeric attributes, with defaults, and constants among its inputs.
        data: Name of the graph input on which its distribution depends; empty if there is none.
        inputs: Parameter -> name of the graph input that gives it, for Dropout.
        mask: Whether this is Dropout's second output.
    """

    op: str
    parameters: dict[str, float] = {}
    data: str = ""
    inputs: dict[str, str] = {}
    mask: bool = False


Origin = ChosenFrom | UnorderedWith | QuantizedWith | CopiedFrom | DrawnBy


class Origins(msgspec.Struct, frozen=True, kw_only=True):
    """The origins of graph outputs.

    Attributes:
        known: Output -> its origin, for those whose origin matters.
        by_chance: Operators whose random numbers enter an output in a way that leaves nothing to judge,
            sorted.
        drawn: The outputs that they enter so.
    """

    known: dict[str, Origin] = {}
    by_chance: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()


def origins_of(model: "onnx.ModelProto") -> Origins:
    """Read the origins from a model, loaded with or without its external data."""
    graph = _Graph(model)
    known = {}
    by_chance: dict[str, set[str]] = {}
    for port in model.graph.output:
        origin = graph.origin(port.name)
        if origin is not None:
            known[model_text(port.name)] = origin
        if graph.has_chance and not isinstance(origin, DrawnBy):
            by_chance[model_text(port.name)] = graph.chance_behind(port.name)
    operators = set[str]().union(*by_chance.values())
    drawn = (name for name, behind in by_chance.items() if behind)
    return Origins(known=known, by_chance=tuple(sorted(operators)), drawn=tuple(drawn))


_Source = tuple["tuple[onnx.NodeProto, int] | None", bool, bool]
"""The node behind casts and changes of shape, and whether there are casts, or any of these."""


class _Graph:
    """The main graph of a model by its tensors."""

    def __init__(self, model: "onnx.ModelProto") -> None:
        self.drawing = _drawing_functions(model)
        self.makers = {
            name: (node, at) for node in model.graph.node for at, name in enumerate(node.output) if name
        }
        self.outputs = [port.name for port in model.graph.output]
        self.weights = {weight.name: weight for weight in model.graph.initializer}
        constants = {name for name, (node, _) in self.makers.items() if node.op_type == "Constant"}
        self.fixed = self.weights.keys() | constants
        self.input_types = {port.name: port.type.tensor_type.elem_type for port in model.graph.input}
        self.inputs = self.input_types.keys() - weight_names(model.graph)
        self.has_chance = bool(self.drawing) or any(map(self._draws, model.graph.node))
        self.opset = opsets_of(model).get("", 0)
        self.nodes = model.graph.node
        self.known: dict[str, _Source] = {}

    def origin(self, output: str) -> Origin | None:
        """Return the origin of an output, if it matters."""
        return self._origin(output) or self._copied(output)

    def _origin(self, output: str) -> Origin | None:
        made, cast, moved = self._source(output)
        if made is None:
            return None
        node, at = made
        op = node.op_type
        if op in _CHOOSING and not domain_of(node):
            return self._chosen(node, at, moved=moved)
        if op == "DequantizeLinear":
            found = self._quantized(node, moved=moved)
            return found and msgspec.structs.replace(found, in_integers=self._in_integers(node.input[0]))
        if (op in _QUANTIZING and at != 1) or op.startswith(_QUANTIZED_OPERATOR):
            return QuantizedWith(in_integers=self._in_integers(output))
        if not domain_of(node) and not cast:
            return self._drawn(node, at)
        return None

    def _in_integers(self, name: str) -> bool:
        """Return whether a tensor is computed by operators on integers, or by others on dequantized values.

        An EP runs the latter in integers, too. Dequantized weights alone do not make an EP do so.
        """
        return bool(self._integers.get(name))

    @cached_property
    def _integers(self) -> dict[str, frozenset[str]]:
        return self._behind(lambda node: {"integer"} if self._is_integer(node) else set())

    def _is_integer(self, node: "onnx.NodeProto") -> bool:
        """Return whether an EP may compute the nodes after a node in integers."""
        if node.op_type == "DequantizeLinear":
            return node.input[0] not in self.fixed
        return node.op_type.startswith(_QUANTIZED_OPERATOR) or "Integer" in node.op_type

    def chance_behind(self, output: str) -> set[str]:
        """Return the operators with random numbers that an output depends on in any way."""
        return set(self._chances.get(output, ()))

    @cached_property
    def _chances(self) -> dict[str, frozenset[str]]:
        return self._behind(self._draws)

    def _behind(self, marks_of: "Callable[[onnx.NodeProto], set[str]]") -> dict[str, frozenset[str]]:
        """Return the few marks of all nodes on which a tensor depends in any way.

        Tensors without marks are missing.
        """
        marks = [frozenset(marks_of(node)) for node in self.nodes]
        readers: dict[str, list[int]] = {}
        for at, node in enumerate(self.nodes):
            for name in filter(None, _read(node)):
                readers.setdefault(name, []).append(at)
        waiting = [at for at, own in enumerate(marks) if own]
        while waiting:  # a node waits again only if it got a new mark
            at = waiting.pop()
            for name in self.nodes[at].output:
                for reader in readers.get(name, ()):
                    if not marks[at] <= marks[reader]:
                        marks[reader] |= marks[at]
                        waiting.append(reader)
        return {name: marks[at] for at, node in enumerate(self.nodes) for name in node.output if marks[at]}

    def _source(self, name: str) -> "_Source":
        """Return the node behind a tensor. All tensors on the way become known: outputs may share a chain."""
        way: list[tuple[str, bool, bool]] = []
        seen: set[str] = set()  # a broken model may have a loop
        while name not in self.known:
            if name in seen or name not in self.makers:
                break
            seen.add(name)
            node, at = self.makers[name]
            own = not domain_of(node) and len(node.input) > 0
            if not own or node.op_type not in _SAME_ORDER | {"Cast"}:
                self.known[name] = (node, at), False, False
                break
            way.append((name, node.op_type == "Cast", node.op_type != "Identity"))
            name = node.input[0]
        made, cast, moved = self.known.get(name, (None, False, False))
        for before, casts, moves in reversed(way):
            cast, moved = cast or casts, moved or moves
            self.known[before] = made, cast, moved
        return made, cast, moved

    def _chosen(self, node: "onnx.NodeProto", at: int, *, moved: bool) -> ChosenFrom | UnorderedWith | None:
        axis = int(number_of(node, "axis", -1 if node.op_type == "TopK" else 0))
        unordered = node.op_type == "TopK" and number_of(node, "sorted", 1) == 0
        if unordered and moved:
            return None  # the axis is no longer where it was
        if unordered and at == 0:
            return UnorderedWith(axis=axis, positions=self._positions_of(node))
        if at != (node.op_type in {"TopK", "MaxPool"}) or number_of(node, "storage_order", 0):
            return None
        data = node.input[1 if node.op_type == "NonMaxSuppression" else 0]
        if data not in self.inputs and data not in self.makers:
            return None  # chosen from a constant
        return ChosenFrom(
            op=node.op_type,
            data=model_text(data),
            computed=data not in self.inputs,
            axis=axis,
            unordered=unordered,
        )

    def _positions_of(self, node: "onnx.NodeProto") -> str:
        """Return the graph output with the unchanged positions of a TopK; empty if there is none."""
        return self._positions.get(node.output[1], "") if len(node.output) > 1 else ""

    @cached_property
    def _positions(self) -> dict[str, str]:
        """Second output of a node -> the first graph output with the same elements."""
        found: dict[str, str] = {}
        for name in self.outputs:
            made, _, moved = self._source(name)
            if made is not None and made[1] == 1 and not moved:
                found.setdefault(made[0].output[1], model_text(name))
        return found

    def _quantized(self, node: "onnx.NodeProto", *, moved: bool) -> QuantizedWith | None:
        if number_of(node, "block_size", 0) or any(map(self._is_float, (node.input[0], *node.input[2:]))):
            return None  # neither blocks nor float8 have one step that is the same along an axis
        axis = int(number_of(node, "axis", 1))
        scale = node.input[1]
        if scale in self.inputs:
            return None if moved else QuantizedWith(scale=model_text(scale), axis=axis)
        values = self._constant(scale)
        return QuantizedWith(values=values, axis=axis) if values and (len(values) == 1 or not moved) else None

    def _drawn(self, node: "onnx.NodeProto", at: int) -> DrawnBy | None:
        op = node.op_type
        if op == "Dropout":
            return self._dropped(node, at)
        if op not in RANDOM_OPERATORS:
            return None
        defaults = {"low": 0.0, "high": 1.0} if "Uniform" in op else {"mean": 0.0, "scale": 1.0}
        if op not in {"Bernoulli", "Multinomial"}:
            # RandomUniformLike and its like take only shape and type from their input.
            parameters = {key: number_of(node, key, default) for key, default in defaults.items()}
            return DrawnBy(op=op, parameters=parameters)
        return DrawnBy(op=op, data=model_text(node.input[0])) if node.input[0] in self.inputs else None

    def _dropped(self, node: "onnx.NodeProto", at: int) -> DrawnBy | None:
        """Return the origin of a Dropout that may be in training; since opset 12 an input says so."""
        given = [*node.input, "", ""]
        if self.opset < _DROPOUT_BY_INPUT or not given[2] or given[0] not in self.inputs:
            return None
        parameters, inputs = {"ratio": 0.5}, {}
        for key, name in (("ratio", given[1]), ("training", given[2])):
            constant = self._constant(name)
            if constant:
                parameters[key] = constant[0]
            elif name in self.inputs:
                inputs[key] = model_text(name)
            elif name:
                return None
        if parameters.get("training") == 0:
            return None
        data = model_text(given[0])
        return DrawnBy(op="Dropout", parameters=parameters, data=data, inputs=inputs, mask=at == 1)

    def _copied(self, output: str) -> CopiedFrom | None:
        """Return the origin of copied floats; None for an input that is itself an output."""
        known = self._copies.get(output) if output in self.makers else None
        if known is None or known.dtype not in NARROWER:
            return None
        return CopiedFrom(rounding=tuple(sorted(known.rounding)))

    @cached_property
    def _copies(self) -> dict[str, Copy]:
        given = {name: weight.data_type for name, weight in self.weights.items()}
        return copies_of(self.nodes, {**self.input_types, **given})

    def _draws(self, node: "onnx.NodeProto") -> set[str]:
        """Return the operators in a node, its bodies and its function that draw random numbers."""
        found: set[str] = set()
        for one in all_nodes([node]):
            found |= _random_in(one) | self.drawing.get(called_by(one), set())
            if one.op_type == "Dropout" and [*map(self._constant, one.input[2:3])] == [(1.0,)]:
                found.add("Dropout")
        return found

    def _is_float(self, name: str) -> bool:
        """Return whether the elements of a weight or an input are known to be floats."""
        number = self.weights[name].data_type if name in self.weights else self.input_types.get(name, 0)
        return is_floating(ELEMENT_TYPES.get(number, ""))

    def _constant(self, name: str) -> tuple[float, ...]:
        """Return the numbers of a small constant; nothing for anything else."""
        proto = self.weights.get(name)
        if name in self.makers:
            node, _ = self.makers[name]
            if node.op_type == "Constant" and not domain_of(node):
                proto = constant_of(node)
        return few_numbers(proto, _SCALE_LIMIT)


def _drawing_functions(model: "onnx.ModelProto") -> dict[FunctionKey, set[str]]:
    """Return the functions of a model that draw random numbers, directly or not, and by which operators."""
    drawing: dict[FunctionKey, set[str]] = {}
    callers: dict[FunctionKey, set[FunctionKey]] = {}
    for name, function in local_functions(model).items():
        drawing[name] = set()
        for node in all_nodes(function.node):
            drawing[name] |= _random_in(node)
            callers.setdefault(called_by(node), set()).add(name)
    waiting = [name for name, operators in drawing.items() if operators]
    while waiting:  # functions may be in any order and, in a broken model, call each other in circles
        name = waiting.pop()
        for caller in callers.get(name, ()):
            if not drawing[name] <= drawing[caller]:
                drawing[caller] |= drawing[name]
                waiting.append(caller)
    return {name: operators for name, operators in drawing.items() if operators}


def _random_in(node: "onnx.NodeProto") -> set[str]:
    return set() if domain_of(node) else {node.op_type} & RANDOM_OPERATORS


def _read(node: "onnx.NodeProto") -> Iterator[str]:
    """Yield the names that a node and its bodies read."""
    for one in all_nodes([node]):
        yield from one.input
        for body in bodies(one):
            yield from (port.name for port in body.output)
