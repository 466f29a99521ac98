"""The CPU provider in this process, as goldens are made: one thread, no fused integer kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnxruntime

from benchmarks.detection.net import Array
from harness.agent.wire import output_to_wire
from harness.core.values.value import NamedValues, Tensor, from_wire
from harness.golden.provenance import SESSION

ort: Any = onnxruntime

Feeds = Mapping[str, Array]
"""Name of an input -> its value."""

LEVELS = {
    "disabled": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
"""Graph optimizations."""


class CpuError(Exception):
    """onnxruntime refuses a model, or fails."""


def run(model: onnx.ModelProto, feeds: Feeds, *, level: str = "all", threads: int = 1) -> NamedValues:
    """Run a model once; see ``run_all``."""
    return run_all(model, [feeds], level=level, threads=threads)[0]


def run_all(
    model: onnx.ModelProto, data_sets: Sequence[Feeds], *, level: str = "all", threads: int = 1
) -> list[NamedValues]:
    """Run a model in one session, once for each data set.

    Args:
        model: The model.
        data_sets: Its inputs.
        level: A key of ``LEVELS``.
        threads: Within an operator.

    Raises:
        CpuError: It cannot be run.
    """
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.graph_optimization_level = LEVELS[level]
    for key, value in SESSION.items():
        settings.add_session_config_entry(key, value)
    try:
        session = ort.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        ports = session.get_outputs()
        results = [session.run(None, dict(feeds)) for feeds in data_sets]
    except Exception as error:
        raise CpuError(str(error)) from error
    return [
        tuple(
            (port.name, from_wire(output_to_wire(value, port.type.lower())))
            for port, value in zip(ports, values, strict=True)
        )
        for values in results
    ]


def trace(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    """The value of every tensor of the main graph, inputs and weights included."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    known = {output.name for output in wide.graph.output}
    for node in wide.graph.node:
        for name in node.output:
            if name and name not in known:
                wide.graph.output.add().name = name
    found = {
        name: value.array for name, value in run(wide, feeds, level="disabled") if isinstance(value, Tensor)
    }
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    return {**feeds, **weights, **found}
