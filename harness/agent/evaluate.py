"""A second reference: ONNX's own implementation runs the model of a job in place of onnxruntime.

It is slow and has faults of its own, but it shares no kernel with any execution provider. Only the harness's
own interpreter is certain to have it.
"""

from __future__ import annotations

import collections
import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.agent.job_run import JobRun
from harness.agent.safe_text import clean, sendable
from harness.agent.system import elapsed_ms
from harness.agent.target_errors import UnsupportedError
from harness.agent.wire import NARROW, output_to_wire, to_feed

_EVALUATOR = "onnx.reference"  # takes the place of a session's providers
# Operators that it computes only according to their latest definition, and the opset of that definition.
_LAST_MEANING = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "Resize": 11, "RoiAlign": 16}
BROADCASTING = 7  # the first opset in which operators broadcast as numpy does
_RECURRENT = {"RNN", "GRU", "LSTM"}
LENGTHS = 4  # index of their input with the length of each sequence
_IGNORED = {"activations", "activation_alpha", "activation_beta", "clip", "input_forget"}
_NARROW_NAMES = {number: name for name, (number, _) in NARROW.items()}


def play(job_run: JobRun) -> None:
    """Run every data set of a job; the result has the same form as a session's."""
    try:
        import onnx
        from onnx.reference import ReferenceEvaluator
    except Exception as error:
        raise UnsupportedError("onnx cannot be imported here: %s" % clean(error)) from error
    started = time.perf_counter()
    # ReferenceEvaluator would load a path without its external data.
    given = job_run.model
    model = onnx.load(given) if isinstance(given, str) else onnx.load_from_string(given)
    gap = next(gaps(model), "")
    if gap:
        raise UnsupportedError("onnx.reference computes %s" % gap)
    evaluator = ReferenceEvaluator(model)
    result = job_run.result
    result["timings_ms"]["create"] = elapsed_ms(started)
    result["names"] = sendable(list(evaluator.output_names))
    result["outputs"] = []
    for inputs in job_run.job["data_sets"]:
        job_run.enter("run")
        feeds = {name: as_array(wire) for name, wire in inputs}
        started = time.perf_counter()
        with np.errstate(all="ignore"):  # models overflow and divide by 0 on purpose
            outputs = evaluator.run(None, feeds)
        result["timings_ms"].setdefault("first_run", elapsed_ms(started))
        result["outputs"].append(job_run.send(list(map(in_wire_form, outputs))))
    ops = collections.Counter(node.op_type for node in model.graph.node)
    result["providers"] = result["providers_after"] = [_EVALUATOR]
    result["placement"] = sendable(
        {
            "ep_nodes": len(model.graph.node),
            "cpu_nodes": 0,
            "ep_ops": dict(ops),
            "cpu_ops": {},
            "partitions": 1,
            "source": "profile",  # every node has run
        }
    )


def gaps(model: Any) -> Iterator[str]:
    """Yield known deviations of the evaluator from ONNX's definition that raise no error.

    The evaluator must not confirm a provider with the same fault.
    """
    imported = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    opset = max(imported, default=max(_LAST_MEANING.values()))
    if opset < BROADCASTING:
        yield "every opset before %d as that one" % BROADCASTING
    for node in _nodes(model.graph.node, *(function.node for function in model.functions)):
        if node.domain not in ("", "ai.onnx"):
            continue
        if opset < _LAST_MEANING.get(node.op_type, 0):
            since = _LAST_MEANING[node.op_type]
            yield "%s of opset %d as that of opset %d" % (node.op_type, opset, since)
        if node.op_type in _RECURRENT:
            if len(node.input) > LENGTHS and node.input[LENGTHS]:
                yield "%s without the lengths of sequences" % node.op_type
            for name in sorted(_IGNORED & {attribute.name for attribute in node.attribute}):
                yield "%s without its attribute %s" % (node.op_type, name)


def _nodes(*scopes: Any) -> Iterator[Any]:
    """Yield the nodes of some scopes, and those of their branches and bodies."""
    for node in itertools.chain(*scopes):
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g.node, *(graph.node for graph in attribute.graphs))


def as_array(wire: Any) -> Any:
    """Return a value in wire form in the evaluator's form, with arrays that it may write to."""
    if wire is None:
        return None
    if "sequence" in wire:
        return [as_array(item) for item in wire["sequence"]]
    if "keys" in wire:
        return to_feed(wire)
    if wire["dtype"] not in NARROW:
        return np.array(to_feed(wire))
    from onnx import TensorProto, numpy_helper

    data_type = NARROW[wire["dtype"]][0]
    tensor = TensorProto(data_type=data_type, dims=wire["shape"], raw_data=bytes(wire["data"]))
    return numpy_helper.to_array(tensor)


def in_wire_form(value: Any) -> Any:
    """Return an output of the evaluator in wire form."""
    if isinstance(value, list):
        return {"sequence": [in_wire_form(item) for item in value]}
    if value is None or isinstance(value, dict):
        return output_to_wire(value)
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return output_to_wire(array)
    from onnx import helper, numpy_helper

    narrow = _NARROW_NAMES.get(helper.np_dtype_to_tensor_dtype(array.dtype))
    if narrow is None:
        return output_to_wire(array)
    return {"dtype": narrow, "shape": list(array.shape), "data": numpy_helper.from_array(array).raw_data}
