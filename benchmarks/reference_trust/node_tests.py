"""ONNX's own operator tests as subjects, at every version whose schema permits them."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto, numpy_helper

from benchmarks.reference_trust.restamp import restamped
from benchmarks.reference_trust.subject import Subject, shuffled

SEED = 20
LARGEST = 1 << 17
"""Elements of an input beyond which a test is too slow for the reference."""


def node_tests() -> Iterator[Subject]:
    """Each test of one node, by itself and with its floats in another order."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = collect_testcases(None)
    random = np.random.default_rng(SEED)
    for test in sorted(tests, key=lambda test: str(test.name)):
        model = test.model
        if model is None or len(model.graph.node) != 1 or "_expanded" in test.name or not test.data_sets:
            continue
        node = model.graph.node[0]
        opset = next((one.version for one in model.opset_import if one.domain == node.domain), 0)
        if not onnx.defs.has(node.op_type, node.domain):
            continue
        inputs, outputs = test.data_sets[0]
        yield from _of(
            node, model, opset, [_plain(one) for one in inputs], [_plain(one) for one in outputs], random
        )


def _of(
    node: onnx.NodeProto,
    model: onnx.ModelProto,
    opset: int,
    inputs: list[Any],
    outputs: list[Any],
    random: np.random.Generator,
) -> Iterator[Subject]:
    given = dict(zip((info.name for info in model.graph.input), inputs, strict=False))
    declared = {info.name: info.type for info in model.graph.input}
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    values, types = [], []
    for name in node.input:
        value = given.get(name, constants.get(name))
        kind: TypeProto | None = declared.get(name)
        if isinstance(value, np.ndarray):
            if value.size > LARGEST:
                return
            # Strings are objects, and the numbers of a type narrower than a byte tell it by themselves.
            kind = kind if value.dtype.kind in "OUS" else None
            if value.dtype.type.__module__ != "numpy":
                return  # Python's onnxruntime takes no numbers of ml_dtypes
        values.append(value)
        types.append(kind)
    for one in restamped(node, opset, values, types, outputs):
        yield one
        other = shuffled(one, random)
        if other is not None:
            yield other


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    if isinstance(value, onnx.MapProto):
        return numpy_helper.to_dict(value)
    return np.asarray(value) if isinstance(value, np.generic | int | float) else value
