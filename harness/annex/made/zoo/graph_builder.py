"""A model during construction: operators, seeded weights and inputs."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import DTypeLike

from harness.core.values.value import Array

if TYPE_CHECKING:
    import onnx

MakeInput = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Makes the data of one input in a given shape; the data's element type becomes the input's."""


class SymbolicDim(NamedTuple):
    """A symbolic dimension, and its size in the suite's data."""

    name: str
    size: int


_Dims = Sequence[int | SymbolicDim | str]
"""Sizes of the axes; a text is an output dimension whose size depends on the data."""

BATCH_DIM = SymbolicDim("batch", 2)
"""Two, because many faults of providers only appear from the second item on."""

ML_DOMAIN = "ai.onnx.ml"
CONTRIB_DOMAIN = "com.microsoft"
"""The domain of onnxruntime's own operators, which has one version."""

FLOAT, INT32 = 1, 6
"""Numbers of element types in ``TensorProto``, for Cast."""


class _Body:
    """A branch of If or the body of Loop."""

    def __init__(self) -> None:
        self.outputs: list[onnx.ValueInfoProto] = []
        self.graph: onnx.GraphProto | None = None


class GraphBuilder:
    """Collects a model.

    Values go by their names, as in ONNX. Values are identified by their names, as in ONNX. The random numbers
    of a weight or an input derive from its name and the seed, so the exports of one architecture at two
    opsets have the same weights and inputs, however their nodes differ.

    The random numbers of a weight or an input derive from its name and the seed. So the exports of one
    architecture at two opsets have the same weights and inputs, however their nodes differ. With ``fixed``,
    sizes of symbolic dimensions are declared instead of their names.
    """

    def __init__(self, *, seed: str, opset: int, ml_opset: int | None = None, fixed: bool = False) -> None:
        self.opset = opset
        self.ml_opset = ml_opset
        self.inputs: dict[str, Array] = {}
        self._seed = seed
        self._fixed = fixed
        self._scope: tuple[str, ...] = ()
        self._names: dict[str, int] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._ports: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._contrib = False

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Prefix the names of nodes and weights added inside with a layer's name."""
        outer, self._scope = self._scope, (*self._scope, name)
        yield
        self._scope = outer

    def input(self, name: str, dims: _Dims, draw: MakeInput) -> str:
        """Declare an input; its data has the symbols' sizes and decides on the element type."""
        shape = tuple(dim.size if isinstance(dim, SymbolicDim) else int(dim) for dim in dims)
        data = draw(self.random(name), shape)
        self.inputs[name] = data
        self._ports.append(self.declare(name, data.dtype, dims))
        return name

    def output(self, name: str, value: str, dtype: DTypeLike, dims: _Dims) -> None:
        """Make a value an output, which renames it everywhere outside of bodies."""
        self._rename(value, name)
        self._outputs.append(self.declare(name, dtype, dims))

    def output_maps(self, name: str, value: str) -> None:
        """Make a result of ZipMap an output: a sequence of maps from string to float32."""
        import onnx

        self._rename(value, name)
        item = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
        entry = onnx.helper.make_map_type_proto(onnx.TensorProto.STRING, item)
        self._outputs.append(onnx.helper.make_value_info(name, onnx.helper.make_sequence_type_proto(entry)))

    def normal(self, name: str, shape: Sequence[int], std: float, mean: float = 0.0) -> str:
        """Add a float32 weight of normally distributed elements."""
        values = self.random(name).standard_normal(shape, np.float32)
        return self.weight(name, np.float32(mean) + np.float32(std) * values)

    def weight(self, name: str, values: Array) -> str:
        """Add a weight; float64 becomes float32."""
        full = self._full(name)
        if full in self._weights:
            raise ValueError(f"two weights are named {full!r}")
        self._initializer(full, values.astype(np.float32) if values.dtype == np.float64 else values)
        return full

    def random(self, name: str) -> np.random.Generator:
        """Return the random numbers of a name within its layer, the same on every machine."""
        digest = hashlib.sha256(f"{self._seed}\0{self._full(name)}".encode()).digest()
        return np.random.default_rng(list(digest))

    def ints(self, *values: int) -> str:
        """Add a constant int64 vector, such as axes or a shape; equal ones are shared."""
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        """Add a constant float32 scalar; equal ones are shared."""
        return self.constant(np.array(value, np.float32))

    def constant(self, values: Array) -> str:
        """Add a small constant of any type; equal ones are shared."""
        key = (str(values.dtype), values.shape, values.tobytes())
        if key not in self._constants:
            self._constants[key] = self._initializer(f"constant_{len(self._constants)}", values)
        return self._constants[key]

    def op(self, op_type: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output; an empty name leaves an optional input out."""
        return self.ops(0, op_type, *inputs, domain=domain, **attributes)[0]

    def ops(self, count: int, op_type: str, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
        """Add a node with several outputs; with a count of 0, its only output has the node's name."""
        import onnx

        self._contrib |= domain == CONTRIB_DOMAIN
        full = self._full(op_type)
        earlier = self._names[full] = self._names.get(full, -1) + 1
        name = f"{full}_{earlier}" if earlier else full
        outputs = [f"{name}_{index}" for index in range(count)] or [name]
        node = onnx.helper.make_node(op_type, inputs, outputs, name=name, domain=domain, **attributes)
        self._nodes.append(node)
        return outputs

    @contextmanager
    def body(self, name: str, inputs: "Sequence[onnx.ValueInfoProto]" = ()) -> Iterator[_Body]:
        """Add the nodes inside to a body, which sees all outer names; ``graph`` is set at the end."""
        import onnx

        outer, self._nodes, body = self._nodes, [], _Body()
        with self.scope(name):
            yield body
        body.graph = onnx.helper.make_graph(self._nodes, name, inputs, body.outputs)
        self._nodes = outer

    def declare(self, name: str, dtype: DTypeLike, dims: _Dims) -> "onnx.ValueInfoProto":
        """Return the declaration of an input or output, here or in a body; texts are of type object."""
        import onnx

        shape = [
            dim if not isinstance(dim, SymbolicDim) else dim.size if self._fixed else dim.name for dim in dims
        ]
        number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return onnx.helper.make_tensor_value_info(name, number, shape)

    def model(self, name: str) -> "onnx.ModelProto":
        """Return the model built so far."""
        import onnx

        opsets = [onnx.helper.make_opsetid("", self.opset)]
        if self.ml_opset is not None:
            opsets.append(onnx.helper.make_opsetid(ML_DOMAIN, self.ml_opset))
        if self._contrib:
            opsets.append(onnx.helper.make_opsetid(CONTRIB_DOMAIN, 1))
        graph = onnx.helper.make_graph(
            self._nodes, name, self._ports, self._outputs, initializer=list(self._weights.values())
        )
        return onnx.helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=onnx.helper.find_min_ir_version_for(opsets, ignore_unknown=True),
            producer_name="ort-ep-harness",
        )

    def _full(self, name: str) -> str:
        return "/".join((*self._scope, name))

    def _initializer(self, name: str, values: Array) -> str:
        import onnx

        self._weights[name] = onnx.numpy_helper.from_array(values, name)
        return name

    def _rename(self, value: str, name: str) -> None:
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [name if each == value else each for each in names]


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """An architecture that is exported in several sizes, at two opsets.

    Attributes:
        what: One line about its parts.
        build: Adds the whole model to an empty graph.
        sizes: Name of a size -> arguments of ``build``; ``small`` runs in milliseconds.
        opsets: Versions of ONNX's operators, the older first.
        ml_opsets: Versions of the operators for classical machine learning, if it has any.
        symbolic: Whether it has symbolic dimensions; then its small size is also exported with fixed ones.
    """

    name: str
    what: str
    build: Callable[..., None]
    sizes: Mapping[str, Mapping[str, Any]]
    opsets: tuple[int, int] = (17, 22)
    ml_opsets: tuple[int, int] | None = None
    symbolic: bool = True
