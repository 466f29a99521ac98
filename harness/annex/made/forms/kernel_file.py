"""Write `kernels.json` from onnx's schemas and the CPU EP's kernels.

    python -m harness.annex.made.forms.kernel_file > harness/annex/made/forms/kernels.json

Increase ``GENERATOR`` in `fuzz.py` after a change: it changes which forms the numbers stand for.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from harness.annex.made.forms.operator_schemas import OperatorSchema, Types
from harness.core.values.value import DTYPES, STRING

_CONTRIB = "com.microsoft"
_LAST_OPSET = {"": 26, "ai.onnx.ml": 5, _CONTRIB: 1}
"""The newest opsets of onnxruntime 1.31, whose kernels are in the file. 1.32 reads opset 28 of ONNX."""

_NO_END = (1 << 31) - 1
"""The last version of a kernel without one."""

_FIRST_OPSET = 7
"""The oldest opset of ONNX that onnxruntime supports."""

_WHOLE = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
_LEFT_OUT: dict[str, dict[str, str]] = {
    "ConstantOfShape": {"T2": "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz"},
    "GRU": {"T": "float64"},
    "LSTM": {"T": "float64"},
    "RNN": {"T": "float64"},
    "Resize": {"T2": "float16 float64"},
    **{name: {"T": _WHOLE} for name in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")},
}
"""Operator -> type variable -> types whose registered kernels raise an error, or truncate a rounded
result, so that the last bit decides."""

_EQUAL = {"QuantizeLinear": ("T1", "T2")}
"""Operator -> type variables that must be equal; kernels are registered separately and raise otherwise."""

_SPELLED = {"float": "float32", "double": "float64"}
_EXPANDED_TYPES = frozenset({"float32", "int64", "bool"})
"""Types of operators that the CPU EP computes by their function: the types that all its kernels have."""


def operators_here() -> Iterator[OperatorSchema]:
    """Yield the operators that the installed onnxruntime's CPU EP computes, sorted; imports onnxruntime."""
    import onnxruntime.capi.onnxruntime_pybind11_state as runtime
    from onnx import defs

    schemas: dict[tuple[str, str], list[Any]] = defaultdict(list)
    contrib = [schema for schema in runtime.get_all_operator_schema() if schema.domain == _CONTRIB]
    for schema in (*defs.get_all_schemas_with_history(), *contrib):
        if schema.domain in _LAST_OPSET and not schema.deprecated:
            schemas[schema.domain, schema.name].append(schema)
    kernels = defaultdict(list)
    for kernel in runtime.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            kernels[kernel.domain, kernel.op_name].append(kernel)
    for (domain, name), versions in sorted(schemas.items()):
        versions.sort(key=lambda schema: schema.since_version)
        ends = [one.since_version - 1 for one in versions[1:]] + [_LAST_OPSET[domain]]
        for schema, end in zip(versions, ends, strict=True):
            yield from _of_schema(schema, end, kernels[domain, name])


def _of_schema(schema: Any, end: int, kernels: Iterable[Any]) -> Iterator[OperatorSchema]:
    """Yield one operator for each range of opsets in which the CPU EP has the same kernels."""
    begin = max(schema.since_version, 1 if schema.domain else _FIRST_OPSET)
    end = min(end, _LAST_OPSET[schema.domain])
    by_range: dict[tuple[int, int], list[Types]] = defaultdict(list)
    variables = {one.type_param_str: _dtypes(one.allowed_type_strs) for one in schema.type_constraints}
    for kernel in kernels:
        first, last = max(begin, kernel.version_range[0]), min(end, kernel.version_range[1])
        types = {
            name: tuple(sorted(set(allowed) & set(_dtypes(kernel.type_constraints.get(name)) or allowed)))
            for name, allowed in variables.items()
        }
        # onnxruntime's rule: a kernel without a last version serves only the schema that it begins with.
        is_open = kernel.version_range[1] >= _NO_END
        if is_open and kernel.version_range[0] != schema.since_version:
            continue
        if first <= last and all(types[name] or not variables[name] for name in types):
            by_range[first, last] += _served(schema.name, types)
    is_function = not schema.domain and (schema.has_function or schema.has_context_dependent_function)
    if not kernels and is_function and begin <= end:
        by_range[begin, end] = [
            {name: tuple(sorted(set(allowed) & _EXPANDED_TYPES)) for name, allowed in variables.items()}
        ]
    for (first, last), found in sorted(by_range.items()):
        yield OperatorSchema(
            domain=schema.domain,
            name=schema.name,
            since=schema.since_version,
            first=first,
            last=last,
            inputs=tuple(map(_formal, schema.inputs)),
            outputs=tuple(map(_formal, schema.outputs)),
            attributes=tuple(sorted(schema.attributes)),
            kernels=tuple(_merged(found)),
        )


def _served(name: str, types: Types) -> Iterator[Types]:
    """Yield the types of a kernel, without those that it refuses at run time or truncates."""
    left_out = _LEFT_OUT.get(name, {})
    left = {
        variable: tuple(one for one in known if one not in left_out.get(variable, "").split())
        for variable, known in types.items()
    }
    first, second = _EQUAL.get(name, ("", ""))
    if set(left.get(second, ("",))) <= set(left.get(first, ())):
        yield from (left | {first: (one,), second: (one,)} for one in left[first])
    elif all(left[variable] or not types[variable] for variable in types):
        yield left


def _dtypes(texts: Iterable[str] | None) -> tuple[str, ...]:
    """Return the element types of the tensor types that onnxruntime supports; none for sequences and maps."""
    inner = (re.fullmatch(r"tensor\((\w+)\)", text) for text in texts or ())
    names = (_SPELLED.get(one[1], one[1]) for one in inner if one)
    known = {name for name in names if name in DTYPES or name == STRING}
    return tuple(sorted(name for name in known if not name.startswith("complex")))


def _formal(formal: Any) -> str:
    text = getattr(formal, "type_str", None) or formal.typeStr
    plain = re.fullmatch(r"tensor\((\w+)\)", text)
    option = str(formal.option).rpartition(".")[2]
    mark = {"Optional": "?", "Variadic": "*"}.get(option, "")
    return (_SPELLED.get(plain[1], plain[1]) if plain else text) + mark


def _merged(found: list[Types]) -> Iterator[Types]:
    """Yield kernels; kernels that differ in only one type variable are merged."""
    left = [dict(one) for one in {repr(sorted(one.items())): one for one in found}.values()]
    while left:
        first = left.pop(0)
        at = 0
        while at < len(left):
            differing = [name for name in first if first[name] != left[at][name]]
            if len(differing) == 1:
                (name,) = differing
                first[name] = tuple(sorted({*first[name], *left.pop(at)[name]}))
                at = 0
            else:
                at += 1
        yield first


if __name__ == "__main__":
    for operator in operators_here():
        sys.stdout.buffer.write(msgspec.json.encode(operator) + b"\n")
