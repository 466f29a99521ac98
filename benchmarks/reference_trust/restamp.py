"""A node written for the newest version of its operator, in the form of each older version."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto, helper

from benchmarks.reference_trust.subject import NEWEST_OPSET, OLDEST_OPSET, Subject, subject

RENAMED = {"constant_value": "value", "const": "value"}
"""Inputs that were attributes of another name before."""

NEWEST = {"": NEWEST_OPSET}
"""Domain -> the newest version that onnxruntime supports; that of others is ONNX's newest."""

Schema = onnx.defs.OpSchema


def versions_of(domain: str, op_type: str) -> list[Schema]:
    """The schemas of an operator that can be asked about, the newest first; none is deprecated."""
    return [schema for schema in _all_of(domain, op_type) if not schema.deprecated and opsets_of(schema)]


def opsets_of(schema: Schema) -> tuple[int, ...]:
    """The first and the last version of a domain in which a schema holds, as far as it can be asked about."""
    later = [one.since_version for one in _all_of(schema.domain, schema.name)]
    newest = NEWEST.get(schema.domain) or _newest(schema.domain)
    last = min([*(since - 1 for since in later if since > schema.since_version), newest])
    first = max(schema.since_version, OLDEST_OPSET if not schema.domain else 1)
    return tuple(sorted({first, last})) if first <= last else ()


def restamped(
    node: onnx.NodeProto,
    written_for: int,
    values: Sequence[Any],
    types: Sequence[TypeProto | None] = (),
    expected: Sequence[Any] = (),
) -> Iterator[Subject]:
    """The node in each version whose schema has a place for what it says.

    An input that the version has as an attribute becomes one. What a version knows neither as an input nor
    as an attribute is left out: the node is another one then, as valid, and the expected outputs go.

    Args:
        node: A node.
        written_for: The opset that it is written for.
        values: Of its inputs; None for one that is left out.
        types: Of inputs that no array tells.
        expected: Its outputs, by a test of ONNX's.
    """
    own = onnx.defs.get_schema(node.op_type, written_for, node.domain)
    for schema in versions_of(node.domain, node.op_type):
        same = schema.since_version == own.since_version
        made = (node, list(values), list(types)) if same else _rewritten(node, own, schema, values, types)
        if made is None:
            continue
        for opset in opsets_of(schema):
            yield subject(made[0], schema.since_version, opset, made[1], made[2], expected if same else ())


def _rewritten(
    node: onnx.NodeProto,
    own: Schema,
    schema: Schema,
    values: Sequence[Any],
    types: Sequence[TypeProto | None],
) -> tuple[onnx.NodeProto, list[Any], list[TypeProto | None]] | None:
    kinds = [*types, *[None] * (len(values) - len(types))]
    one = onnx.NodeProto()
    one.CopyFrom(node)
    del one.attribute[:]
    one.attribute.extend(attribute for attribute in node.attribute if attribute.name in schema.attributes)
    variadic = any(formal.option == Schema.FormalParameterOption.Variadic for formal in own.inputs)
    taken, kept = list(values), kinds
    if not variadic:
        places = {formal.name.lower(): place for place, formal in enumerate(schema.inputs)}
        taken, kept = [None] * len(schema.inputs), [None] * len(schema.inputs)
        for place, (value, kind) in enumerate(zip(values, kinds, strict=True)):
            # A first input may have another name in another version, and means the same.
            name = own.inputs[place].name.lower() if place else schema.inputs[0].name.lower()
            if name in places:
                taken[places[name]], kept[places[name]] = value, kind
            elif value is not None and (attribute := _as_attribute(name, value, schema)):
                one.attribute.append(attribute)
    del one.output[schema.max_output :]
    lacking = sum(value is not None for value in taken) < schema.min_input
    asked = {name for name, attribute in schema.attributes.items() if attribute.required}
    if lacking or asked - {attribute.name for attribute in one.attribute}:
        return None
    return one, taken, kept


def _as_attribute(name: str, value: Any, schema: Schema) -> onnx.AttributeProto | None:
    named = {one.lower(): one for one in schema.attributes}
    found = named.get(name) or named.get(RENAMED.get(name, ""))
    if found is None or not isinstance(value, np.ndarray):
        return None
    kind = schema.attributes[found].type
    numbers = value.reshape(-1).tolist()
    single = {Schema.AttrType.INT: int, Schema.AttrType.FLOAT: float}
    several = {Schema.AttrType.INTS: int, Schema.AttrType.FLOATS: float}
    if kind in several:
        return helper.make_attribute(found, [several[kind](one) for one in numbers], attr_type=_number(kind))
    if kind in single and len(numbers) == 1:
        return helper.make_attribute(found, single[kind](numbers[0]), attr_type=_number(kind))
    return None


def _number(kind: Any) -> int:
    return int(onnx.AttributeProto.AttributeType.Value(kind.name))


_HISTORY: dict[tuple[str, str], list[Schema]] = {}


def _all_of(domain: str, op_type: str) -> list[Schema]:
    if not _HISTORY:
        for schema in onnx.defs.get_all_schemas_with_history():
            _HISTORY.setdefault((schema.domain, schema.name), []).append(schema)
        for schemas in _HISTORY.values():
            schemas.sort(key=lambda schema: -schema.since_version)
    return _HISTORY.get((domain, op_type), [])


def _newest(domain: str) -> int:
    _all_of("", "")
    return max(schemas[0].since_version for (one, _), schemas in _HISTORY.items() if one == domain)


def operators() -> list[tuple[str, str]]:
    """Every operator of ONNX's domains."""
    _all_of("", "")
    return sorted(_HISTORY)
