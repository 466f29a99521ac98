"""The work of one run of a model: multiply-adds, and bytes that are read and written."""

import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING

from harness.core.files.reading import size_text
from harness.core.records.run_work import Work
from harness.core.values.value import NamedValues, Tensor, value_bytes
from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.model_errors import OverBoundError
from harness.corpus.model.nodes import FunctionKey, bodies, called_by, constant_of, local_functions
from harness.corpus.model.protos import tensor_value
from harness.corpus.work.result_sizes import result_size
from harness.corpus.work.size import (
    SIZE_ERRORS,
    UNKNOWN_TENSOR_SIZE,
    TensorSize,
    attribute,
    input_size,
    known_dims,
    of_dims,
)
from harness.corpus.work.work_share import NodeWork
from harness.operators.book import operators_with, rules_of

if TYPE_CHECKING:
    import onnx

_TERMS = 64.0
"""Number of terms of a sum of unknown length: the middle, on a logarithmic scale, of 1 and 4096."""

_TURNS = 16.0
"""Iterations of a loop whose number only a run shows."""

_CONSTANT_ELEMENTS = 64
"""A constant of at most this many elements may be a shape, axes or factors, and is read."""

MOST_MADE = 4 << 30
"""Largest size in bytes of one tensor that a node makes from nothing, or from little, as a model's
constants demand."""

_MAKING = operators_with(lambda row: row.any_size)

_DEPTH = 8
"""Depth of nested local functions and bodies that are followed."""

_PARTLY_READ = operators_with(lambda row: row.partly_read)
_VIEWS = operators_with(lambda row: row.view)


def work_of(model: "onnx.ModelProto", inputs: NamedValues) -> tuple[Work, NodeWork]:
    """Return the work of one run with these inputs, and that of its nodes.

    Every operator counts one multiply-add for each result, operators with sums one for each term, and all
    operands and results as bytes. Facts that only a run shows are guessed, always in the same way: a loop has
    16 iterations.

    Raises:
        OverBoundError: A node makes a tensor larger than any test needs.
    """
    outside = {
        name: of_dims(value.array.shape, value.array.itemsize)
        if isinstance(value, Tensor)
        else TensorSize(value_bytes(value) / 4)
        for name, value in inputs
    }
    counter = _Counter(model)
    try:
        work = counter.graph(model.graph, outside, _DEPTH)
    except (*SIZE_ERRORS, RecursionError):  # a model that no runtime accepts either
        work = Work(nbytes=sum(value_bytes(value) for _, value in inputs), nodes=len(model.graph.node))
        counter.named, counter.by_type = {}, {}
    if counter.most_made > MOST_MADE:
        what = f"a tensor of {counter.most_made / (1 << 30):,.0f} GiB that its constants ask for"
        raise OverBoundError(f"{what}, and the bound of the harness is {size_text(MOST_MADE)}")
    return work, counter.node_work()


class _Counter:
    def __init__(self, model: "onnx.ModelProto") -> None:
        self.functions = local_functions(model)
        self.called: dict[
            tuple[FunctionKey, int, tuple[TensorSize | None, ...]], tuple[Work, dict[str, TensorSize]]
        ] = {}
        """Work of calls by the sizes of their arguments: functions may call each other without end."""
        self.most_made = 0.0
        """Bytes of the largest tensor that a node makes from little."""
        self.named: dict[str, float] = {}
        self.by_type: dict[str, tuple[float, int]] = {}
        """Operator type -> work of its nodes, and their number."""
        self.turns = 1.0
        """How often the nodes that are being counted run, as the body of a loop."""

    def node_work(self) -> NodeWork:
        """Return the work of each node that was counted."""
        mean = {op_type: work / count for op_type, (work, count) in self.by_type.items()}
        return NodeWork(named=self.named, mean=mean)

    def _note(self, node: "onnx.NodeProto", work: float) -> None:
        before, count = self.by_type.get(node.op_type, (0.0, 0))
        self.by_type[node.op_type] = before + work * self.turns, count + 1
        if isinstance(node.name, str) and node.name:  # two nodes with one name are interchangeable
            self.named[node.name] = work * self.turns

    def graph(self, graph: "onnx.GraphProto", sizes: MutableMapping[str, TensorSize], depth: int) -> Work:
        """Return the work of a graph; it adds to the sizes of visible tensors, which include its inputs."""
        for weight in graph.initializer:
            sizes.setdefault(weight.name, _of_weight(weight))
        for sparse in graph.sparse_initializer:
            dense = of_dims(sparse.dims, _element_bytes(sparse.values.data_type))
            self.most_made = max(self.most_made, dense.elements * dense.nbytes)
            sizes.setdefault(sparse.values.name, dense)
        symbols = _symbols(graph, sizes)
        for port in (*graph.value_info, *graph.output, *graph.input):
            if (declared := _declared(port.type, symbols)) is not None:
                sizes.setdefault(port.name, declared)
        return self.nodes(graph.node, sizes, depth)

    def nodes(
        self, nodes: "Iterable[onnx.NodeProto]", sizes: MutableMapping[str, TensorSize], depth: int
    ) -> Work:
        """Return the work of nodes in their order; the sizes of their results are added."""
        multiply_adds = nbytes = count = 0.0
        for node in nodes:
            given = [sizes.get(name, UNKNOWN_TENSOR_SIZE) if name else None for name in node.input]
            result = _constant(node) or result_size(node, given)
            for index, name in enumerate(node.output):
                # The model's declaration is right, but it does not declare the numbers of a shape.
                if name and (name not in sizes or (result.values and not index)):
                    sizes[name] = result
            results = [sizes[name] for name in node.output if name]
            if node.op_type in _MAKING and result.dims is not None:
                self.most_made = max(self.most_made, result.elements * result.nbytes)
            inner = self.inner(node, given, sizes, depth) if depth else Work()
            own = _multiply_adds(node, given, results), _moved(node, given, results)
            self._note(node, sum(own))
            multiply_adds += inner.multiply_adds + own[0]
            nbytes += inner.nbytes + own[1]
            count += inner.nodes + (node.op_type not in _VIEWS)
        return Work(multiply_adds=multiply_adds, nbytes=nbytes, nodes=count)

    def inner(
        self,
        node: "onnx.NodeProto",
        given: Sequence[TensorSize | None],
        sizes: MutableMapping[str, TensorSize],
        depth: int,
    ) -> Work:
        """Return the work of a node's bodies, or of the local function that it calls."""
        function = self.functions.get(called_by(node))
        if function is not None:
            key = (called_by(node), depth, tuple(given))
            if key not in self.called:
                named = dict(zip(function.input, (one or UNKNOWN_TENSOR_SIZE for one in given), strict=False))
                self.called[key] = self.nodes(function.node, named, depth - 1), named
            found, named = self.called[key]
            for outer, own in zip(node.output, function.output, strict=False):
                if outer and own in named:
                    sizes[outer] = named[own]
            return found
        turns = _turns(node, given)
        around, self.turns = self.turns, self.turns * turns
        parts = [self.graph(body, _fed(node, body, given, sizes), depth - 1) for body in bodies(node)]
        self.turns = around
        if not parts:
            return Work()
        most = max(parts, key=lambda part: part.operations)
        return Work(
            multiply_adds=most.multiply_adds * turns, nbytes=most.nbytes * turns, nodes=most.nodes * turns
        )


def _fed(
    node: "onnx.NodeProto",
    body: "onnx.GraphProto",
    given: Sequence[TensorSize | None],
    sizes: MutableMapping[str, TensorSize],
) -> MutableMapping[str, TensorSize]:
    """Return the tensors that a body sees: those around it, and those that the node feeds it."""
    if node.op_type == "Loop":
        fed: Sequence[TensorSize | None] = (UNKNOWN_TENSOR_SIZE, UNKNOWN_TENSOR_SIZE, *given[2:])
    elif node.op_type == "Scan":
        states = len(given) - attribute(node, "num_scan_inputs", 0)
        fed = [one if index < states else _slice(one) for index, one in enumerate(given)]
    else:
        fed = ()
    named = zip((port.name for port in body.input), fed, strict=False)
    # Not a copy: a graph of many tensors may have as many bodies.
    return ChainMap({name: one._replace(fixed=False) for name, one in named if one is not None}, sizes)


def _slice(one: TensorSize | None) -> TensorSize | None:
    return of_dims(one.dims[1:], one.nbytes) if one is not None and one.dims else one


def _turns(node: "onnx.NodeProto", given: Sequence[TensorSize | None]) -> float:
    first = given[0] if given else None
    if node.op_type == "Loop":
        return max(1.0, first.values[0]) if first is not None and first.values else _TURNS
    if node.op_type == "Scan":
        last = given[-1]
        return float(last.dims[0]) if last is not None and last.dims else _TURNS
    return _TURNS if node.op_type == "SequenceMap" else 1.0


def _of_weight(weight: "onnx.TensorProto") -> TensorSize:
    size = of_dims(weight.dims, _element_bytes(weight.data_type))._replace(fixed=True)
    if size.elements > _CONSTANT_ELEMENTS or weight.data_location == weight.EXTERNAL:
        return size
    try:
        values = tuple(float(number) for number in tensor_value(weight).array.ravel().tolist())
    except (ValueError, TypeError, KeyError):  # texts, or a damaged tensor
        return size
    return size._replace(values=values if all(map(math.isfinite, values)) else None)


def _constant(node: "onnx.NodeProto") -> TensorSize | None:
    if node.op_type != "Constant":
        return None
    for one in node.attribute:
        if one.type == one.SPARSE_TENSOR:
            return of_dims(one.sparse_tensor.dims, _element_bytes(one.sparse_tensor.values.data_type))
    value = constant_of(node)
    return UNKNOWN_TENSOR_SIZE if value is None else _of_weight(value)


def _element_bytes(number: int) -> float:
    name = ELEMENT_TYPES.get(number, "")
    bits = "".join(filter(str.isdigit, name.partition("e")[0] if name.startswith("float8") else name)) or "8"
    return int(bits[:3]) / 8 if name != "string" else 16.0


def _symbols(graph: "onnx.GraphProto", sizes: Mapping[str, TensorSize]) -> dict[str, int]:
    """Return the sizes of symbolic dimensions, taken from the graph's inputs."""
    symbols: dict[str, int] = {}
    for port in graph.input:
        known = sizes.get(port.name)
        dims = port.type.tensor_type.shape.dim
        if known is not None and known.dims is not None and len(known.dims) == len(dims):
            symbols |= {
                dim.dim_param: size for dim, size in zip(dims, known.dims, strict=True) if dim.dim_param
            }
    return symbols


def _declared(kind: "onnx.TypeProto", symbols: Mapping[str, int]) -> TensorSize | None:
    """Return the size that a model declares for a tensor; None unless each extent is known."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = []
    for dim in kind.tensor_type.shape.dim:
        extent = dim.dim_value if dim.HasField("dim_value") else symbols.get(dim.dim_param, -1)
        if extent < 0:
            return None
        dims.append(extent)
    return of_dims(dims, _element_bytes(kind.tensor_type.elem_type))


def _moved(
    node: "onnx.NodeProto", given: Sequence[TensorSize | None], results: Sequence[TensorSize]
) -> float:
    if node.op_type in _VIEWS:
        return 0.0
    written = sum(one.elements * one.nbytes for one in results)
    if node.op_type in _PARTLY_READ:
        return 2 * written
    return written + sum(one.elements * one.nbytes for one in given if one is not None)


def _multiply_adds(
    node: "onnx.NodeProto", given: Sequence[TensorSize | None], results: Sequence[TensorSize]
) -> float:
    if node.op_type in _VIEWS:
        return 0.0
    written = sum(one.elements for one in results)
    count = _PRODUCTS.get(node.op_type)
    if count is None:
        return written
    try:
        return max(written, count(node, given, results[0]))
    except SIZE_ERRORS:
        return written * _TERMS  # an absent input, or an unknown size


_Count = Callable[["onnx.NodeProto", Sequence[TensorSize | None], TensorSize], float]


def _in_window(weight: int) -> _Count:
    """Count the weights that contribute to each element of a convolution's result."""
    return lambda _node, given, result: (
        result.elements * input_size(given, weight).elements / known_dims(given[weight])[0]
    )


def _from_window(_node: "onnx.NodeProto", given: Sequence[TensorSize | None], _result: TensorSize) -> float:
    return input_size(given).elements * input_size(given, 1).elements / known_dims(given[1])[0]


def _rows(right: int) -> _Count:
    """Count the terms of a matrix product: the last extent of one operand, the last but one of the other."""

    def count(_node: "onnx.NodeProto", given: Sequence[TensorSize | None], result: TensorSize) -> float:
        left = input_size(given).dims
        if left:
            return result.elements * left[-1]
        other = known_dims(given[right])
        return result.elements * other[max(-2, -len(other))]

    return count


def _gemm(node: "onnx.NodeProto", given: Sequence[TensorSize | None], result: TensorSize) -> float:
    return result.elements * known_dims(given[1])[1 if attribute(node, "transB", 0) else 0]


def _recurrence(_node: "onnx.NodeProto", given: Sequence[TensorSize | None], _result: TensorSize) -> float:
    sequence, batch, *_ = known_dims(given[0])
    return sequence * batch * (input_size(given, 1).elements + input_size(given, 2).elements)


def _attention(_node: "onnx.NodeProto", given: Sequence[TensorSize | None], _result: TensorSize) -> float:
    """Count the products with keys and values; a packed operator includes its projection."""
    query = input_size(given)
    key = given[1] if given[1] is not None else query
    if key.fixed:
        return query.elements * (known_dims(key)[-1] + 2 * known_dims(query)[-2])
    return 2 * query.elements * known_dims(key)[-2]


def _einsum(node: "onnx.NodeProto", given: Sequence[TensorSize | None], _result: TensorSize) -> float:
    terms = attribute(node, "equation", "").replace(" ", "").partition("->")[0].split(",")
    extents = {
        letter: size
        for text, one in zip(terms, given, strict=True)
        for letter, size in zip(text, known_dims(one), strict=True)
    }
    return float(math.prod(extents.values()))


def _transform(_node: "onnx.NodeProto", given: Sequence[TensorSize | None], _result: TensorSize) -> float:
    return input_size(given).elements * _TERMS


def _block_product(node: "onnx.NodeProto", _given: Sequence[TensorSize | None], result: TensorSize) -> float:
    return result.elements * float(attribute(node, "K", _TERMS))


def _kernel(node: "onnx.NodeProto", _given: Sequence[TensorSize | None], result: TensorSize) -> float:
    return result.elements * float(math.prod(attribute(node, "kernel_shape", ())))


_COUNTS: dict[str, _Count] = {
    "attention": _attention,
    "block_product": _block_product,
    "equation": _einsum,
    "gemm": _gemm,
    "kernel": _kernel,
    "matmul": _rows(1),
    "quantized_matmul": _rows(3),
    "quantized_window": _in_window(3),
    "recurrence": _recurrence,
    "transform": _transform,
    "transposed_window": _from_window,
    "window": _in_window(1),
}
"""Rules of the book of operators."""

_PRODUCTS = rules_of(lambda row: row.products, _COUNTS)
"""Operators that add up products or elements -> how many there are in one run."""
