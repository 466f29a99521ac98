"""Which operator a graph output comes from, where that decides how its values are judged."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from harness.core.ties import ChoosingOp
from harness.corpus.element_types import ELEMENT_TYPES, is_floating
from harness.corpus.port import model_text
from harness.corpus.protos import tensor_value

if TYPE_CHECKING:
    import onnx

SAME_ORDER = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose output has the elements of their first input in the same order."""

QUANTIZING = frozenset({"DynamicQuantizeLinear", "QuantizeLinear"})
QUANTIZED_OPERATOR = "QLinear"
"""What the names of operators begin with that compute from integers to integers, those of others too."""

RANDOM_OPERATORS = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators whose generator the standard leaves open, a seed or not: their values judge nobody."""

SCALE_LIMIT = 4096
"""Scales that are kept; of a tensor with more of them steps are not counted."""

_CHOOSING = frozenset(get_args(ChoosingOp))


class ChosenFrom(msgspec.Struct, frozen=True, kw_only=True, tag="chosen"):
    """Positions.

    Attributes:
        op: Operator that chose.
        data: Name of what it chose from.
        computed: Whether that is computed, and no input of the graph.
        axis: Along which it chose.
        unordered: Whether it is a TopK that need not sort.
    """

    op: ChoosingOp
    data: str
    computed: bool
    axis: int = -1
    unordered: bool = False


class UnorderedWith(msgspec.Struct, frozen=True, kw_only=True, tag="unordered"):
    """The values of a TopK that need not sort.

    Attributes:
        axis: Along which it chose.
        positions: Graph output with the positions of these values; empty where none has them.
    """

    axis: int = -1
    positions: str = ""


class QuantizedWith(msgspec.Struct, frozen=True, kw_only=True, tag="quantized"):
    """Values on a grid.

    Attributes:
        scale: Name of the graph input that holds the scale; empty where ``values`` do.
        values: The scale where it is constant: one, or one for each index of ``axis``; empty for integers,
            whose neighbours are 1 apart.
        axis: Of the output, where there are several.
    """

    scale: str = ""
    values: tuple[float, ...] = ()
    axis: int = 1


class DrawnBy(msgspec.Struct, frozen=True, kw_only=True, tag="drawn"):
    """Numbers drawn by lot.

    Attributes:
        op: Operator that drew.
        parameters: Its numeric attributes, defaults filled in, and constants among its inputs.
        data: Name of the graph input that its distribution depends on; empty where none is.
        inputs: Parameter -> name of the graph input that gives it, for Dropout.
        mask: Whether this is Dropout's second output.
    """

    op: str
    parameters: dict[str, float] = {}
    data: str = ""
    inputs: dict[str, str] = {}
    mask: bool = False


Origin = ChosenFrom | UnorderedWith | QuantizedWith | DrawnBy


class Origins(msgspec.Struct, frozen=True, kw_only=True):
    """Where graph outputs come from.

    Attributes:
        known: Output -> its origin, for those whose origin matters.
        by_chance: Operators that draw numbers from which an output is computed in a way that leaves nothing
            to judge, sorted.
    """

    known: dict[str, Origin] = {}
    by_chance: tuple[str, ...] = ()


def origins_of(model: "onnx.ModelProto") -> Origins:
    """Read the origins from a model, loaded with or without its external data."""
    graph = _Graph(model)
    known = {}
    by_chance: set[str] = set()
    for port in model.graph.output:
        origin = graph.origin(port.name)
        if origin is not None:
            known[model_text(port.name)] = origin
        if graph.has_chance and not isinstance(origin, DrawnBy):
            by_chance |= graph.chance_behind(port.name)
    return Origins(known=known, by_chance=tuple(sorted(by_chance)))


class _Graph:
    """The main graph of a model by its tensors."""

    def __init__(self, model: "onnx.ModelProto") -> None:
        self.drawing = _drawing_functions(model)
        self.makers = {
            name: (node, at) for node in model.graph.node for at, name in enumerate(node.output) if name
        }
        self.outputs = [port.name for port in model.graph.output]
        self.weights = {weight.name: weight for weight in model.graph.initializer}
        sparse = {one.values.name for one in model.graph.sparse_initializer}
        self.input_types = {port.name: port.type.tensor_type.elem_type for port in model.graph.input}
        self.inputs = self.input_types.keys() - self.weights.keys() - sparse
        self.has_chance = bool(self.drawing) or any(map(self._draws, model.graph.node))
        self.opset = next((one.version for one in model.opset_import if one.domain in _OWN), 0)

    def origin(self, output: str) -> Origin | None:
        """Where an output comes from, if that matters."""
        made, cast, moved = self._source(output)
        if made is None:
            return None
        node, at = made
        op = node.op_type
        if op in _CHOOSING and node.domain in _OWN:
            return self._chosen(node, at, moved=moved)
        if op == "DequantizeLinear":
            return self._quantized(node, moved=moved)
        if (op in QUANTIZING and at != 1) or op.startswith(QUANTIZED_OPERATOR):
            return QuantizedWith()
        if node.domain in _OWN and not cast:
            return self._drawn(node, at)
        return None

    def chance_behind(self, output: str) -> set[str]:
        """Operators that draw numbers on which an output depends in any way."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = [output]
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self.makers:
                continue
            seen.add(name)
            node, _ = self.makers[name]
            found |= self._draws(node)
            waiting += [*node.input, *(name for body in _bodies(node) for name in _read(body))]
        return found

    def _source(self, name: str) -> "tuple[tuple[onnx.NodeProto, int] | None, bool, bool]":
        """The node behind casts and changes of shape; whether there are casts, whether there are any."""
        cast = moved = False
        seen: set[str] = set()  # a broken model may go round in circles
        while name in self.makers and name not in seen:
            seen.add(name)
            node, at = self.makers[name]
            own = node.domain in _OWN and len(node.input) > 0
            if not own or node.op_type not in SAME_ORDER | {"Cast"}:
                return (node, at), cast, moved
            cast |= node.op_type == "Cast"
            moved |= node.op_type != "Identity"
            name = node.input[0]
        return None, cast, moved

    def _chosen(self, node: "onnx.NodeProto", at: int, *, moved: bool) -> ChosenFrom | UnorderedWith | None:
        attributes = _numbers(node)
        axis = int(attributes.get("axis", -1 if node.op_type == "TopK" else 0))
        unordered = node.op_type == "TopK" and attributes.get("sorted", 1) == 0
        if unordered and moved:
            return None  # the axis is no longer where it was
        if unordered and at == 0:
            return UnorderedWith(axis=axis, positions=self._positions_of(node))
        if at != (node.op_type in {"TopK", "MaxPool"}) or attributes.get("storage_order"):
            return None
        data = node.input[1 if node.op_type == "NonMaxSuppression" else 0]
        if data not in self.inputs and data not in self.makers:
            return None  # chosen from a constant
        return ChosenFrom(
            op=node.op_type,  # type: ignore[arg-type]  # one of _CHOOSING
            data=model_text(data),
            computed=data not in self.inputs,
            axis=axis,
            unordered=unordered,
        )

    def _positions_of(self, node: "onnx.NodeProto") -> str:
        """The graph output with the positions of a TopK as they are; empty where there is none."""
        for name in self.outputs:
            made, _, moved = self._source(name)
            if made is not None and made[0] is node and made[1] == 1 and not moved:
                return model_text(name)
        return ""

    def _quantized(self, node: "onnx.NodeProto", *, moved: bool) -> QuantizedWith | None:
        attributes = _numbers(node)
        if attributes.get("block_size") or any(map(self._is_float, (node.input[0], *node.input[2:]))):
            return None  # neither blocks nor float8 have one step that is the same along an axis
        axis = int(attributes.get("axis", 1))
        scale = node.input[1]
        if scale in self.inputs:
            return None if moved else QuantizedWith(scale=model_text(scale), axis=axis)
        values = self._constant(scale)
        return QuantizedWith(values=values, axis=axis) if values and (len(values) == 1 or not moved) else None

    def _drawn(self, node: "onnx.NodeProto", at: int) -> DrawnBy | None:
        op, attributes = node.op_type, _numbers(node)
        if op == "Dropout":
            return self._dropped(node, at)
        if op not in RANDOM_OPERATORS:
            return None
        defaults = {"low": 0.0, "high": 1.0} if "Uniform" in op else {"mean": 0.0, "scale": 1.0}
        if op not in {"Bernoulli", "Multinomial"}:
            # What RandomUniformLike and its like take from their input is its shape and type alone.
            return DrawnBy(op=op, parameters={key: attributes.get(key, defaults[key]) for key in defaults})
        return DrawnBy(op=op, data=model_text(node.input[0])) if node.input[0] in self.inputs else None

    def _dropped(self, node: "onnx.NodeProto", at: int) -> DrawnBy | None:
        """Dropout where it may be in training, which an input says since opset 12."""
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

    def _draws(self, node: "onnx.NodeProto") -> set[str]:
        """Operators in a node, its bodies and its function that draw numbers."""
        found = _random_in(node) | self.drawing.get((node.domain, node.op_type), set())
        if node.op_type == "Dropout" and len(node.input) > 2 and self._constant(node.input[2]) == (1.0,):  # noqa: PLR2004
            found.add("Dropout")
        return found.union(*(self._draws(inner) for body in _bodies(node) for inner in body.node))

    def _is_float(self, name: str) -> bool:
        """Whether the elements of a weight or an input are known to be floats."""
        number = self.weights[name].data_type if name in self.weights else self.input_types.get(name, 0)
        return is_floating(ELEMENT_TYPES.get(number, ""))

    def _constant(self, name: str) -> tuple[float, ...]:
        """The few numbers of a constant; nothing of anything else."""
        proto = self.weights.get(name)
        if name in self.makers:
            node, _ = self.makers[name]
            if node.op_type == "Constant" and node.domain in _OWN:
                proto = next((one.t for one in node.attribute if one.name == "value"), None)
        if proto is None or _elements(proto) > SCALE_LIMIT:
            return ()
        try:
            return tuple(map(float, tensor_value(proto).array.reshape(-1)))
        except ValueError:  # external, or of a type without numbers
            return ()


_OWN = frozenset({"", "ai.onnx"})
_DROPOUT_BY_INPUT = 12


def _drawing_functions(model: "onnx.ModelProto") -> dict[tuple[str, str], set[str]]:
    """Functions of a model that draw numbers, or that call others which do, and by which operators."""
    drawing: dict[tuple[str, str], set[str]] = {}
    callers: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for one in model.functions:
        name = (one.domain, one.name)
        drawing[name] = set()
        for node in _all_nodes(one.node):
            drawing[name] |= _random_in(node)
            callers.setdefault((node.domain, node.op_type), set()).add(name)
    waiting = [name for name, operators in drawing.items() if operators]
    while waiting:  # functions may stand in any order and, in a broken model, call each other in circles
        name = waiting.pop()
        for caller in callers.get(name, ()):
            if not drawing[name] <= drawing[caller]:
                drawing[caller] |= drawing[name]
                waiting.append(caller)
    return {name: operators for name, operators in drawing.items() if operators}


def _random_in(node: "onnx.NodeProto") -> set[str]:
    return {node.op_type} & RANDOM_OPERATORS if node.domain in _OWN else set()


def _all_nodes(nodes: "Iterable[onnx.NodeProto]") -> "Iterator[onnx.NodeProto]":
    for node in nodes:
        yield node
        for body in _bodies(node):
            yield from _all_nodes(body.node)


def _elements(proto: "onnx.TensorProto") -> int:
    count = 1
    for extent in proto.dims:
        count *= extent
    return count


def _numbers(node: "onnx.NodeProto") -> dict[str, float]:
    kinds: Any = {1: "f", 2: "i"}  # AttributeProto.FLOAT and INT
    return {one.name: float(getattr(one, kinds[one.type])) for one in node.attribute if one.type in kinds}


def _bodies(node: "onnx.NodeProto") -> "Iterator[onnx.GraphProto]":
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _read(body: "onnx.GraphProto") -> "Iterable[str]":
    """Names that a body reads, those from outside among them."""
    for node in body.node:
        yield from node.input
        for inner in _bodies(node):
            yield from _read(inner)
    yield from (port.name for port in body.output)
