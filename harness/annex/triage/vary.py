"""Variations of a reduced model: one change at a time, to find out when the failure appears."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import msgspec
import numpy as np

from harness.annex.triage.failure_groups import NOT_PREFIX
from harness.annex.triage.lab import CellAxes
from harness.annex.triage.session_use import plain_axes, with_axes
from harness.annex.triage.subject import Subject
from harness.core.files.structure import OPTION
from harness.core.records.fault import Condition
from harness.core.values.value import Array, Tensor, Value, tensor
from harness.corpus.model.element_types import ELEMENT_TYPES, NUMBERS
from harness.corpus.model.nodes import bodies, domain_of, number_of, opsets_of
from harness.corpus.model.schema_types import schema_of
from harness.operators.book import operators_with

if TYPE_CHECKING:
    import onnx

LEVELS = ("disabled", "basic", "extended", "all")

OPSETS_TRIED = 4
"""Versions below and above that of the model."""

_FLOATS = {"float16": np.float16, "float32": np.float32, "bfloat16": ml_dtypes.bfloat16}


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """One change.

    Attributes:
        condition: What is varied, without a result.
        subject: The model to try.
        axes: Axes to try it with.
        target: Name of the target; empty for that of the failure.
    """

    condition: Condition
    subject: Subject
    axes: CellAxes
    target: str = ""


def session_variations(subject: Subject, axes: CellAxes) -> Iterator[Variation]:
    """Yield other levels of graph optimization, no option of an axis, and a plain session for a scenario."""
    given = dict(axes)
    for level in LEVELS:
        if level != given.get("graph_optimization", "all"):
            condition = Condition(kind="graph_optimization", value=level)
            varied = with_axes(axes, (("graph_optimization", level),))
            yield Variation(condition=condition, subject=subject, axes=varied)
    for axis, value in axes:
        if axis.startswith(OPTION):
            condition = Condition(kind="option", name=axis.removeprefix(OPTION), value=f"{NOT_PREFIX}{value}")
            varied = tuple(pair for pair in axes if pair[0] != axis)
            yield Variation(condition=condition, subject=subject, axes=varied)
    if given.get("scenario", "plain") != "plain":
        condition = Condition(kind="scenario", value="plain")
        yield Variation(condition=condition, subject=subject, axes=plain_axes(axes))


def model_variations(subject: Subject, axes: CellAxes) -> Iterator[Variation]:
    """Yield the model with other element types, opsets, attributes, sizes and input values.

    If onnx finds the model consistent, only consistent variations are yielded: a type that an operator does
    not support, or a missing required attribute, says nothing about an EP.
    """
    strict = _is_consistent(subject)
    for make in (_dtypes, _opsets, _attributes, _values, _shapes):
        for condition, varied in make(subject):
            if varied is None or varied.digest == subject.digest:
                continue
            if varied.model == subject.model or not strict or _is_consistent(varied):
                yield Variation(condition=condition, subject=varied, axes=axes)


def _is_consistent(subject: Subject) -> bool:
    """Return whether the types of all tensors can be inferred, and contradict no declared one."""
    from onnx import shape_inference

    try:
        shape_inference.infer_shapes(subject.proto(), check_type=True, strict_mode=True)
    except (shape_inference.InferenceError, ValueError, RuntimeError):
        return False
    return True


_Varied = Iterator[tuple[Condition, Subject | None]]


def _dtypes(subject: Subject) -> _Varied:
    """Vary the floating-point type, if all floats of the model have one type."""
    dtypes = {value.dtype for _, value in subject.inputs if isinstance(value, Tensor)}
    dtypes |= {ELEMENT_TYPES.get(one.data_type, "") for one in subject.proto().graph.initializer}
    present = dtypes & _FLOATS.keys()
    if len(present) != 1 or subject.external is not None:
        return
    (given,) = present
    for dtype in _FLOATS:
        if dtype != given:
            yield Condition(kind="dtype", value=dtype), _in_dtype(subject, given, dtype)


def _in_dtype(subject: Subject, given: str, dtype: str) -> Subject | None:
    from onnx import numpy_helper

    model = subject.proto()
    source, wanted = NUMBERS[given], NUMBERS[dtype]
    graph = model.graph
    if any([*bodies(node)] for node in graph.node):
        return None
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.type.HasField("tensor_type") and info.type.tensor_type.elem_type == source:
            info.type.tensor_type.elem_type = wanted
    for index, one in enumerate(graph.initializer):
        if one.data_type == source:
            array = _as_float(numpy_helper.to_array(one), dtype)
            graph.initializer[index].CopyFrom(numpy_helper.from_array(array, one.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in {"to", "dtype"} and attribute.i == source:
                attribute.i = wanted
            elif attribute.HasField("t") and attribute.t.data_type == source:
                array = _as_float(numpy_helper.to_array(attribute.t), dtype)
                attribute.t.CopyFrom(numpy_helper.from_array(array, attribute.t.name))
    inputs = tuple((name, _cast(value, given, dtype)) for name, value in subject.inputs)
    return Subject(model=model.SerializeToString(), inputs=inputs)


def _cast(value: Value, given: str, dtype: str) -> Value:
    if isinstance(value, Tensor) and value.dtype == given:
        return tensor(_as_float(value.array, dtype))
    return value


def _as_float(array: Array, dtype: str) -> Array:
    """Convert to another floating-point type; numbers that are too large become infinite, as on an EP."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(_FLOATS[dtype])


def _opsets(subject: Subject) -> _Varied:
    """Vary the version of ONNX's operators, as far as onnx can convert them."""
    import onnx.defs
    from onnx import version_converter

    model = subject.proto()
    version = opsets_of(model).get("", 0)
    if not version or subject.external is not None or model.functions:
        return
    around = (*range(version - OPSETS_TRIED, version), *range(version + 1, version + OPSETS_TRIED + 1))
    operators = {node.op_type for node in model.graph.node if domain_of(node) == ""}
    changed = {
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == "" and schema.name in operators
    }
    for other in around:
        # Between two versions of an operator only a number changes.
        crossed = any(min(version, other) < since <= max(version, other) for since in changed)
        if not crossed or not 7 <= other <= onnx.defs.onnx_opset_version():  # noqa: PLR2004 - the converter's oldest
            continue
        try:
            converted = version_converter.convert_version(model, other)
        except Exception:  # noqa: BLE001, S112 - the converter raises whatever its adapters do
            continue
        varied = Subject(model=converted.SerializeToString(), inputs=subject.inputs)
        yield Condition(kind="opset", value=str(other)), varied


def _attributes(subject: Subject) -> _Varied:
    """Leave out each attribute of each node, if the operator has a default for it."""
    model = subject.proto()
    opsets = opsets_of(model)
    for index, node in enumerate(model.graph.node):
        schema = schema_of(node, opsets)
        for attribute in node.attribute:
            declared = schema.attributes.get(attribute.name) if schema is not None else None
            if declared is None or declared.required:
                continue
            varied = subject.proto()
            kept = [one for one in node.attribute if one.name != attribute.name]
            del varied.graph.node[index].attribute[:]
            varied.graph.node[index].attribute.extend(kept)
            _forget_sizes(varied.graph)
            condition = Condition(kind="attribute", name=f"{node.op_type}.{attribute.name}", value="default")
            yield condition, msgspec.structs.replace(subject, model=varied.SerializeToString())


DIMENSIONS = {"first dimension": 0, "last dimension": -1}
"""Name of a varied dimension -> its axis."""

_SIZES = (1, 2, 3, 4, 5, 8)
"""Sizes that are tried: odd and even ones, and multiples of vector lengths."""

_INDEXED = operators_with(lambda row: row.indexed)
"""Operators whose second input are indices along the attribute ``axis`` of the first one."""

_Change = Callable[[np.ndarray[Any, np.dtype[Any]]], np.ndarray[Any, np.dtype[Any]]]

_VALUES: Mapping[str, _Change] = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "absolute": np.abs,
    "small whole numbers": lambda array: np.clip(np.rint(array.astype(np.float64)), -3, 3),
    "1/1000 of the size": lambda array: array.astype(np.float64) / 1000,
    "1000 times the size": lambda array: array.astype(np.float64) * 1000,
}


def _values(subject: Subject) -> _Varied:
    """Put other values into all floating-point inputs."""
    for name, change in _VALUES.items():
        inputs = tuple((port, _changed(value, change)) for port, value in subject.inputs)
        yield Condition(kind="values", value=name), msgspec.structs.replace(subject, inputs=inputs)
    if (varied := _from_the_start(subject)) is not None:
        yield Condition(kind="values", value="whose indices are not negative"), varied


def _from_the_start(subject: Subject) -> Subject | None:
    """Return a model with negative indices counted from the start instead; None if it has none."""
    from onnx import numpy_helper

    model = subject.proto()
    fed = dict(subject.inputs)
    weights = {one.name: one for one in model.graph.initializer}
    arrays = {name: value.array for name, value in fed.items() if isinstance(value, Tensor)}
    arrays |= {name: numpy_helper.to_array(one) for name, one in weights.items()}
    for node in model.graph.node:
        if node.op_type not in _INDEXED or domain_of(node) or not arrays.keys() >= {*node.input[:2]}:
            continue
        data, indices = (arrays[name] for name in node.input[:2])
        axis = int(number_of(node, "axis", 0))
        if not data.ndim or not (indices < 0).any():
            continue
        changed = np.where(indices < 0, indices + data.shape[axis], indices).astype(indices.dtype)
        if node.input[1] in fed:
            fed[node.input[1]] = tensor(changed)
        else:
            weights[node.input[1]].CopyFrom(numpy_helper.from_array(changed, node.input[1]))
    varied = msgspec.structs.replace(subject, model=model.SerializeToString(), inputs=tuple(fed.items()))
    return None if varied.digest == subject.digest else varied


def _changed(value: Value, change: _Change) -> Value:
    if not isinstance(value, Tensor) or value.dtype not in _FLOATS:
        return value
    with np.errstate(over="ignore", invalid="ignore"):
        return tensor(change(value.array).astype(value.array.dtype))


def _shapes(subject: Subject) -> _Varied:
    """Give the first or the last dimension of all inputs that share its size another size."""
    arrays = {name: value for name, value in subject.inputs if isinstance(value, Tensor) and value.array.ndim}
    if len(arrays) != len(subject.inputs) or not all(value.array.size for value in arrays.values()):
        return
    flat = all(value.array.ndim == 1 for value in arrays.values())
    for name, axis in DIMENSIONS.items():
        sizes = {value.array.shape[axis] for value in arrays.values()}
        if len(sizes) != 1 or (flat and axis):
            continue
        (size,) = sizes
        for wanted in dict.fromkeys(other for other in (*_SIZES, 2 * size) if other != size):
            condition = Condition(kind="shape", name=name, value=str(wanted))
            yield condition, _resized(subject, arrays, axis, wanted)


def _resized(subject: Subject, arrays: Mapping[str, Tensor], axis: int, wanted: int) -> Subject:
    """Return a model whose inputs have another size along one axis; elements are dropped or repeated."""
    model = subject.proto()
    for info in model.graph.input:
        if info.name in arrays and info.type.tensor_type.shape.dim:
            info.type.tensor_type.shape.dim[axis].dim_value = wanted
    _forget_sizes(model.graph)
    inputs = tuple(
        (name, tensor(np.take(value.array, np.arange(wanted) % value.array.shape[axis], axis=axis)))
        for name, value in arrays.items()
    )
    return msgspec.structs.replace(subject, model=model.SerializeToString(), inputs=inputs)


def _forget_sizes(graph: "onnx.GraphProto") -> None:
    """Remove the sizes of node results from a graph's declarations."""
    del graph.value_info[:]
    for info in graph.output:
        for dim in info.type.tensor_type.shape.dim:
            dim.Clear()


def chosen(conditions: Sequence[Condition], kind: str, *, fails: bool) -> tuple[Condition, ...]:
    """Return the conditions of one kind that have one result."""
    return tuple(one for one in conditions if one.kind == kind and one.fails is fails)
