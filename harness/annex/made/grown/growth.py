"""A graph while it grows: values with their types and bounds, and nodes typed by ONNX's own inference."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.defs
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference

from harness.annex.made.forms.draw import ChoiceStream
from harness.core.values.value import Array
from harness.corpus.model.element_types import ELEMENT_TYPES, NUMBERS, is_floating

_REFUSALS = (onnx.defs.SchemaError, onnx.shape_inference.InferenceError)

_LARGEST = 4096
"""Elements of a value."""

GREATEST = 10_000.0
"""Bound of magnitudes: float16 holds it, and whole numbers up to it are exact in float32."""

_UNIT = 64
"""Drawn numbers are multiples of 1/64 from -2 to below 2."""


class MisfitError(ValueError):
    """A node does not fit the existing values, by ONNX's inference or by the grammar."""


class GrownTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of the graph.

    ``most`` is a bound of its magnitudes. ``exact``: it is computed without rounding, so that decisions based
    on it are the same everywhere.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    most: float = 2.0
    exact: bool = True

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class Growth:
    """A graph that productions add to; ``random`` decides on everything."""

    def __init__(self, random: ChoiceStream, opset: int) -> None:
        self.random = random
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}
        self.values: list[GrownTensor] = []
        self._numbers: dict[str, int] = {}

    def input(self, dtype: str, shape: Sequence[int]) -> GrownTensor:
        """Add an input with drawn elements."""
        name = self._fresh("x")
        self.inputs[name] = self.draw(dtype, shape)
        value = GrownTensor(name=name, dtype=dtype, shape=tuple(shape), most=_bound(self.inputs[name]))
        self.values.append(value)
        return value

    def draw(self, dtype: str, shape: Sequence[int]) -> Array:
        """Return elements of a type: floats are multiples of 1/64 below 2; wide integers are from -8 to 8."""
        bits = self.random.bits(math.prod(shape))
        drawn = (bits >> np.uint64(56)).astype(np.uint8).reshape(tuple(shape))
        if is_floating(dtype):
            # At rank 0, arithmetic turns arrays into scalars.
            return np.asarray((drawn.astype(np.float64) - 128) / _UNIT).astype(dtype)
        if dtype in {"int8", "uint8"}:
            return drawn.view(dtype)
        if dtype == "bool":
            return np.asarray(drawn % 2 == 1)
        return np.asarray((drawn % 17).astype(dtype) - np.array(8, dtype))

    def weight(self, values: Array) -> GrownTensor:
        """Add an initializer."""
        name = self._fresh("w")
        array = np.asarray(values)
        self.weights[name] = array
        return GrownTensor(name=name, dtype=array.dtype.name, shape=array.shape, most=_bound(array))

    def drawn(self, dtype: str, shape: Sequence[int], scale: float = 1.0) -> GrownTensor:
        """Add an initializer of drawn elements; floats are multiplied by a power of two."""
        values = self.draw(dtype, shape)
        return self.weight((values * np.array(scale, dtype)) if is_floating(dtype) else values)

    def ints(self, *values: int) -> GrownTensor:
        """Add an int64 vector."""
        return self.weight(np.array(values, np.int64))

    def pick(self, suits: Callable[[GrownTensor], bool] = lambda _: True) -> GrownTensor:
        """Return one of the values that suit; later ones are more likely.

        Raises:
            RefusedError: No value suits.
        """
        found = [one for one in self.values if suits(one)]
        if not found:
            raise MisfitError("no value suits")
        # The later of two: graphs become deep, not only wide.
        return found[max(self.random.below(len(found)), self.random.below(len(found)))]

    def chance(self, share: float) -> bool:
        """Return whether an event of this probability happens."""
        return self.random.chance(round(100 * share))

    def axis(self, value: GrownTensor) -> int:
        """Return an axis of a value, occasionally counted from the end.

        Raises:
            RefusedError: It has none.
        """
        if not value.rank:
            raise MisfitError("no axis")
        axis = self.random.below(value.rank)
        return axis - value.rank if self.chance(0.3) else axis

    def op(
        self, op_type: str, *inputs: GrownTensor | None, most: float, exact: bool = False, **attributes: Any
    ) -> GrownTensor:
        """Add a node of one output; see ``ops``."""
        return self.ops(1, op_type, *inputs, most=most, exact=exact, **attributes)[0]

    def ops(
        self,
        count: int,
        op_type: str,
        *inputs: GrownTensor | None,
        most: float,
        exact: bool = False,
        **attributes: Any,
    ) -> list[GrownTensor]:
        """Add a node with so many outputs; inputs and attributes that are None are left out.

        ``most`` is a bound of the magnitudes of its results. ``exact``: it rounds nothing if its inputs were
        not rounded.

        Raises:
            RefusedError: ONNX does not allow the node, or its results are too large or of unknown size.
        """
        if most > GREATEST:
            raise MisfitError("too far")
        given = {name: value for name, value in attributes.items() if value is not None}
        names = ["" if one is None else one.name for one in inputs]
        while not names[-1]:
            names.pop()
        outputs = [self._fresh(op_type.lower()) for _ in range(count)]
        node = onnx.helper.make_node(op_type, names, outputs, name=self._fresh(f"n_{op_type}"), **given)
        fed = [one for one in inputs if one is not None]
        types = self._infer(node, fed)
        clean = exact and all(one.exact for one in fed)
        made = [
            GrownTensor(name=name, dtype=dtype, shape=shape, most=most, exact=clean)
            for name, (dtype, shape) in zip(outputs, types, strict=True)
        ]
        if any(one.size > _LARGEST for one in made):
            raise MisfitError("too large")
        self.nodes.append(node)
        self.values.extend(made)
        return made

    def _infer(self, node: onnx.NodeProto, fed: Iterable[GrownTensor]) -> list[tuple[str, tuple[int, ...]]]:
        kinds = {one.name: onnx.helper.make_tensor_type_proto(NUMBERS[one.dtype], one.shape) for one in fed}
        known = [name for name in node.input if name in self.weights]
        data = {name: onnx.numpy_helper.from_array(self.weights[name], name) for name in known}
        imports = [onnx.helper.make_opsetid("", self.opset)]
        try:
            schema = onnx.defs.get_schema(node.op_type, self.opset, "")
            if schema.deprecated:
                raise MisfitError(f"{node.op_type} is deprecated")
            found = onnx.shape_inference.infer_node_outputs(schema, node, kinds, data, opset_imports=imports)
        except (*_REFUSALS, RuntimeError, ValueError) as error:
            raise MisfitError(str(error)) from error
        return [_known(found.get(name)) for name in node.output]

    def _fresh(self, stem: str) -> str:
        self._numbers[stem] = self._numbers.get(stem, -1) + 1
        return f"{stem}_{self._numbers[stem]}"


def _known(declared: onnx.TypeProto | None) -> tuple[str, tuple[int, ...]]:
    if declared is None or not declared.HasField("tensor_type") or not declared.tensor_type.HasField("shape"):
        raise MisfitError("of unknown type")
    dims = declared.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
        raise MisfitError("of unknown size")
    return ELEMENT_TYPES[declared.tensor_type.elem_type], tuple(dim.dim_value for dim in dims)


def _bound(values: Array) -> float:
    return float(np.abs(values.astype(np.float64)).max()) if values.size else 0.0
