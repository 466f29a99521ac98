"""Whether a fault is one of a single node: does it show when the node is alone, fed with what it gets?"""

import numpy as np
import onnx
from onnx import helper

from benchmarks.detection import cpu
from benchmarks.detection.effect import equal
from benchmarks.detection.faults import Fault
from benchmarks.detection.measure import Bench
from benchmarks.detection.net import Net


def shows_alone(bench: Bench, fault: Fault, index: int) -> bool:
    """Plant a fault in a model of one node, and compare it with what the node makes there.

    A kernel that takes the weight of another node, or spoils two nodes that it fused, is no fault of one.
    """
    model = _alone(bench, index)
    fed = {port.name: bench.values[port.name] for port in model.graph.input}
    net = Net(model, bench.values, np.random.default_rng(index))
    if not fault.plant(net, net.nodes[0]):
        return False
    try:
        return not equal(cpu.run(model, fed), cpu.run(net.model(), fed))
    except cpu.CpuError:
        return False


def _alone(bench: Bench, index: int) -> onnx.ModelProto:
    node = bench.model.graph.node[index]
    weights = {one.name: one for one in bench.model.graph.initializer}
    names = dict.fromkeys(name for name in node.input if name)
    graph = helper.make_graph(
        [node],
        "alone",
        [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(bench.values[name].dtype),
                bench.values[name].shape,
            )
            for name in names
            if name not in weights
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
        [weights[name] for name in names if name in weights],
    )
    return helper.make_model(graph, opset_imports=bench.model.opset_import, ir_version=bench.model.ir_version)
