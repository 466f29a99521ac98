"""A model with one of the faults whose form is in it, in the process of the fake EP."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.numpy_helper

from benchmarks.fuzzing.faults import FAULTS, Fault
from benchmarks.fuzzing.faults.fault import Site
from benchmarks.fuzzing.faults.places import SECOND_RUN


class Spoilt(NamedTuple):
    """A session that computes a model wrongly; the model's SHA-256, and the fault."""

    session: Any
    digest: str
    fault: str


def spoilt(
    module: Any, healthy_class: Any, content: bytes, feeds: Mapping[str, Any], *, first: bool
) -> Spoilt | None:
    """Return a session with a fault for one run; None if no form of a fault is in the model.

    Args:
        module: onnxruntime.
        healthy_class: Its sessions, without faults.
        content: The model.
        feeds: What the run is fed.
        first: Whether this is the first run of its session.
    """
    model = onnx.ModelProto.FromString(content)
    sites = _sites(model, _traced(module, healthy_class, model, feeds))
    digest = hashlib.sha256(content).hexdigest()
    # Ordered by a digest: each model has one fault, and each fault its share of the models.
    order = sorted(FAULTS.values(), key=lambda one: hashlib.sha256(f"{digest} {one.name}".encode()).digest())
    for fault in order:
        for site in sites:
            if not _has(fault, site):
                continue
            wrong = _with_result(model, site, fault)
            try:
                session = healthy_class(
                    wrong.SerializeToString(), _options(module), providers=["CPUExecutionProvider"]
                )
            except Exception:  # noqa: BLE001, S112 - onnxruntime has no common one
                continue  # such as a wrong shape: a model that is refused shows nothing
            if fault.kind == SECOND_RUN and first:
                return None
            return Spoilt(session, digest, fault.name)
    return None


def _has(fault: Fault, site: Site) -> bool:
    return (not fault.ops or site.op in fault.ops) and not site.node.domain and bool(fault.applies(site))


def _sites(model: onnx.ModelProto, values: Mapping[str, Any]) -> list[Site]:
    opset = next((one.version for one in model.opset_import if one.domain in {"", "ai.onnx"}), 1)
    return [
        Site(model.graph, opset, node, values)
        for node in model.graph.node
        if _is_numeric(values.get(node.output[0]))
    ]


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype != object


def _with_result(model: onnx.ModelProto, site: Site, fault: Fault) -> onnx.ModelProto:
    """Return the model where a node's first result is the wrong one, whatever computes it."""
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    name = site.node.output[0]
    node = next(node for node in wrong.graph.node if name in node.output)
    node.output[0] = f"{name}_right"
    tensor = onnx.numpy_helper.from_array(np.asarray(fault.damage(site), order="C"), name)
    at = list(wrong.graph.node).index(node)
    kept = [onnx.NodeProto.FromString(one.SerializeToString()) for one in wrong.graph.node]
    kept.insert(at, onnx.helper.make_node("Constant", [], [name], value=tensor))
    del wrong.graph.node[:]
    wrong.graph.node.extend(kept)
    return wrong


def _traced(
    module: Any, healthy_class: Any, model: onnx.ModelProto, feeds: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the value of each tensor of the main graph."""
    wide = onnx.ModelProto.FromString(model.SerializeToString())
    known = {output.name for output in wide.graph.output}
    # Constants may be of types that numpy lacks.
    made = [node for node in wide.graph.node if node.op_type != "Constant"]
    names = dict.fromkeys(name for node in made for name in node.output if name)
    wide.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    session = healthy_class(wide.SerializeToString(), _options(module), providers=["CPUExecutionProvider"])
    ports = [port.name for port in session.get_outputs()]
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    return {**weights, **feeds, **dict(zip(ports, session.run(ports, dict(feeds)), strict=True))}


def _options(module: Any) -> Any:
    options = module.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options
