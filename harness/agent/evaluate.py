"""A witness in onnxruntime's place: ONNX's own reference implementation runs the model of a job.

It is slow, and not without faults of its own, but it shares no kernel with any execution provider. Only the
harness's own interpreter is sure to have it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.agent.errors import UnsupportedError
from harness.agent.system import elapsed_ms
from harness.agent.text import clean, sendable
from harness.agent.wire import NARROW, to_feed, to_wire

if TYPE_CHECKING:
    from harness.agent.job_run import JobRun

EVALUATOR = "onnx.reference"  # stands where a session names its providers
# Operators of which it knows the last meaning alone, and the opset that gave it to them.
LAST_MEANING = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "Resize": 11, "RoiAlign": 16}
BROADCASTING = 7  # the opset from which on operators broadcast as numpy does
RECURRENT = {"RNN", "GRU", "LSTM"}
LENGTHS = 4  # the input of these operators with the length of each sequence
PASSED_OVER = {"activations", "activation_alpha", "activation_beta", "clip", "input_forget"}
NARROW_NAMES = {number: name for name, (number, _) in NARROW.items()}


def play(job_run: JobRun) -> None:
    """Run every data set of a job; the result has the form of a session's."""
    try:
        import onnx
        from onnx.reference import ReferenceEvaluator
    except Exception as error:
        raise UnsupportedError("onnx cannot be imported here: %s" % clean(error)) from error
    started = time.perf_counter()
    # By its path alone it would be read without its external data.
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
        with np.errstate(all="ignore"):  # what overflows or is divided by 0 does so on purpose
            outputs = evaluator.run(None, feeds)
        result["timings_ms"].setdefault("first_run", elapsed_ms(started))
        result["outputs"].append([job_run.files.send(in_wire_form(value)) for value in outputs])
    ops: dict[str, int] = {}
    for node in model.graph.node:
        ops[node.op_type] = ops.get(node.op_type, 0) + 1
    result["providers"] = result["providers_after"] = [EVALUATOR]
    result["placement"] = sendable(
        {
            "ep_nodes": sum(ops.values()),
            "cpu_nodes": 0,
            "ep_ops": ops,
            "cpu_ops": {},
            "partitions": 1,
            "source": "profile",  # for each has run
        }
    )


def gaps(model: Any) -> Iterator[str]:
    """What the evaluator is known to compute otherwise than ONNX defines it, without a word.

    A provider with the same misunderstanding must not find a witness in it.
    """
    imported = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    opset = max(imported, default=max(LAST_MEANING.values()))
    if opset < BROADCASTING:
        yield "every opset before %d as that one" % BROADCASTING
    for node in nodes(model.graph.node, *(function.node for function in model.functions)):
        if node.domain not in ("", "ai.onnx"):
            continue
        if opset < LAST_MEANING.get(node.op_type, 0):
            since = LAST_MEANING[node.op_type]
            yield "%s of opset %d as that of opset %d" % (node.op_type, opset, since)
        if node.op_type in RECURRENT:
            if len(node.input) > LENGTHS and node.input[LENGTHS]:
                yield "%s without the lengths of sequences" % node.op_type
            for name in sorted(PASSED_OVER & {attribute.name for attribute in node.attribute}):
                yield "%s without its attribute %s" % (node.op_type, name)


def nodes(*scopes: Any) -> Iterator[Any]:
    """The nodes of some scopes, and those of their branches and bodies."""
    for node in itertools.chain(*scopes):
        yield node
        for attribute in node.attribute:
            yield from nodes(attribute.g.node, *(graph.node for graph in attribute.graphs))


def as_array(wire: Any) -> Any:
    """A value in wire form as the evaluator takes it; arrays that it may write to."""
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
    """What the evaluator gave, in wire form."""
    if isinstance(value, list):
        return {"sequence": [in_wire_form(item) for item in value]}
    if value is None or isinstance(value, dict):
        return to_wire(value)
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return to_wire(array)
    from onnx import helper, numpy_helper

    narrow = NARROW_NAMES.get(helper.np_dtype_to_tensor_dtype(array.dtype))
    if narrow is None:
        return to_wire(array)
    return {"dtype": narrow, "shape": list(array.shape), "data": numpy_helper.from_array(array).raw_data}
