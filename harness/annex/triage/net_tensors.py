"""Known facts about the tensors inside a net: their types and, where available, their values."""

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from harness.annex.triage.net import Net
from harness.annex.triage.outline import inferred
from harness.annex.triage.reduction_settings import ComputeTensors
from harness.core.values.value import DTYPES, Tensor, Value, value_bytes
from harness.corpus.inputs.generated_inputs import generate
from harness.corpus.model.element_types import ELEMENT_TYPES, NUMBERS
from harness.corpus.model.origins import RANDOM_OPERATORS
from harness.corpus.model.port import Port, model_text, value_type

_AT_ONCE = 256 << 20
"""Bytes of inner tensors that are computed together, so that the model runs once and not for each cut."""

UNKNOWN_BYTES, _UNKNOWN_SIZE = 1 << 20, 32
"""Assumed size in bytes of an unknown tensor, and assumed length of an axis of unknown size."""

NUMBERS_SEED = 22
"""Seed of invented numbers."""


class NetTensors:
    """Types and values of the tensors of one net, computed at first use."""

    def __init__(self, net: Net, values: ComputeTensors | None) -> None:
        self._net = net
        self._compute = values
        self._values: dict[str, Value] = dict(net.fed)
        self._asked: set[str] = set()

    @functools.cached_property
    def types(self) -> dict[str, Any]:
        """Return the declared or inferred type of each tensor that has one."""
        net = self._net
        types = {name: info.type for name, info in {**net.infos, **net.inputs, **net.outputs}.items()}
        model = inferred(net)
        if model is not None:
            types = {model_text(info.name): info.type for info in model.graph.value_info} | types
        types |= {weight.name: dense_type(weight.dtype, weight.shape) for weight in net.weights.values()}
        return types

    @functools.cached_property
    def constants(self) -> frozenset[str]:
        """Tensors that depend on no graph input."""
        net = self._net
        found = set(net.weights) | set(net.sparse)
        for node in net.nodes:
            if node.reads <= found and node.op_type not in RANDOM_OPERATORS and not _draws(net, node.op_type):
                found.update(node.made)
        return frozenset(found)

    def values(self, names: Iterable[str]) -> dict[str, Value]:
        """Return the values of tensors; unavailable ones are left out."""
        wanted = list(names)
        for name in wanted:
            weight = self._net.weights.get(name)
            if weight is not None and name not in self._values:
                self._values[name] = weight.value(self._net.folder)
        missing = [name for name in wanted if name not in self._values and name not in self._asked]
        if missing:
            self._fetch(missing)
        return {name: self._values[name] for name in wanted if name in self._values}

    def forget(self, most: int) -> None:
        """Drop the values if they take more bytes than ``most``; they can be computed again."""
        if sum(map(value_bytes, self._values.values())) > most:
            self._values = dict(self._net.fed)
            self._asked.clear()

    def signature(self, name: str) -> tuple[int | str, ...] | None:
        """Return the element type and the sizes of a dense tensor; None if one of them is unknown."""
        declared = self.types.get(name)
        shape = shape_of(declared)
        if declared is None or shape is None or None in shape:
            value = self.values([name]).get(name)
            if not isinstance(value, Tensor):
                return None
            return (NUMBERS[value.dtype], *value.array.shape)
        return (int(declared.tensor_type.elem_type), *(size for size in shape if size is not None))

    def declaration(self, name: str, value: Value) -> Any:
        """Return the declaration of a graph input or output with this value; None if it is unknown."""
        import onnx.helper

        declared = self.types.get(name)
        if isinstance(value, Tensor):
            declared = dense_type(value.dtype, value.array.shape)
        if declared is None or not declared.WhichOneof("value"):
            return None
        return onnx.helper.make_value_info(name, declared)

    def output(self, name: str) -> Any:
        """Return the declaration of a tensor as an output; None if its type is unknown."""
        import onnx.helper

        declared = self.types.get(name)
        if declared is None or not _complete(declared):
            found = self.values([name])
            return self.declaration(name, found[name]) if name in found else None
        return onnx.helper.make_value_info(name, declared)

    def _fetch(self, names: list[str]) -> None:
        if self._compute is None:
            found: Mapping[str, Value] | None = self._made_up(names)
        else:
            names = self._with_others(names)
            found = self._compute(self._net.subject(), names)
        self._asked.update(names)
        self._values.update(found or {})

    def _with_others(self, names: list[str]) -> list[str]:
        """Return all tensors of the net if they are small together: most of them are requested later."""
        every = [name for node in self._net.nodes for name in node.made if name not in self._asked]
        sizes = self._sizes()
        room = _AT_ONCE - sum(_nbytes(self.types.get(name), sizes) for name in every)
        return every if room >= 0 and set(names) <= set(every) else names

    def _made_up(self, names: list[str]) -> dict[str, Value]:
        sizes = self._sizes()
        made: dict[str, Value] = {}
        for name in names:
            if name in self.types:
                try:
                    port = Port(name=name, type=value_type(self.types[name], sizes))
                    made[name] = generate("", port, NUMBERS_SEED)
                except ValueError:  # too little is known about it
                    continue
        return made

    def _sizes(self) -> dict[str, int]:
        """Return the size of each symbolic dimension in the net's input values."""
        sizes: dict[str, int] = {}
        for name, info in self._net.inputs.items():
            value = self._net.fed.get(name)
            dims = info.type.tensor_type.shape.dim
            if isinstance(value, Tensor) and len(dims) == value.array.ndim:
                for dim, size in zip(dims, value.array.shape, strict=True):
                    if dim.dim_param:
                        sizes.setdefault(dim.dim_param, size)
        return sizes


def dense_type(dtype: str, shape: Iterable[int]) -> Any:
    """Return the type of dense tensors."""
    import onnx.helper

    return onnx.helper.make_tensor_type_proto(NUMBERS.get(dtype, 0), tuple(shape))


def shape_of(declared: Any) -> tuple[int | str | None, ...] | None:
    """Return the shape of a tensor type: sizes, names, None if neither is known; None without a rank."""
    if declared is None or not declared.HasField("tensor_type"):
        return None
    tensor = declared.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim
    )


def _complete(declared: Any) -> bool:
    """Return whether a type has everything that onnx's checker requires of an output."""
    kind = declared.WhichOneof("value")
    if kind == "tensor_type":
        return bool(declared.tensor_type.elem_type) and declared.tensor_type.HasField("shape")
    return kind is not None


def _nbytes(declared: Any, sizes: Mapping[str, int]) -> int:
    """Estimate how many bytes a tensor of a type takes."""
    shape = shape_of(declared)
    if shape is None:
        return UNKNOWN_BYTES
    dtype = DTYPES.get(ELEMENT_TYPES.get(declared.tensor_type.elem_type, ""))
    known = [
        sizes.get(size, _UNKNOWN_SIZE) if isinstance(size, str) else size or _UNKNOWN_SIZE for size in shape
    ]
    return math.prod(known) * (dtype.itemsize if dtype else _UNKNOWN_SIZE)


def _draws(net: Net, op_type: str) -> bool:
    """Whether a function of the model's own may draw random numbers."""
    return any(
        op_type in {function.name, f"{function.domain}.{function.name}"}
        and any(node.op_type in RANDOM_OPERATORS for node in function.node)
        for function in net.functions
    )
