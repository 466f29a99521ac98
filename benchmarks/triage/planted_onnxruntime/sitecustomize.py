"""An onnxruntime whose CPU provider has faults of the detection benchmark: a stand-in for an EP.

On the module path of a target's process it changes ``InferenceSession``. The file that ``PLANTED_FAULT_FILE``
names says in JSON which ``faults`` the next sessions have: ``fault`` (a kind), ``node`` (the guilty one's
name), ``seed`` and ``rate`` (share of the sessions that are wrong). A model without such a node is computed
rightly. ``session`` holds entries of each session's configuration.
"""

import json
import os
import random
from pathlib import Path
from typing import Any

FILE = os.environ.get("PLANTED_FAULT_FILE", "")


def planted(module: Any) -> Any:
    healthy_class = module.InferenceSession

    class Planted(healthy_class):  # type: ignore[misc]
        """Places its nodes like a healthy session; what it computes comes from a spoilt one."""

        def __init__(self, model: Any, sess_options: Any = None, *args: Any, **more: Any) -> None:
            told = json.loads(Path(FILE).read_text(encoding="utf-8"))
            options = module.SessionOptions() if sess_options is None else sess_options
            for key, value in told["session"].items():
                options.add_session_config_entry(key, value)
            super().__init__(model, options, *args, **more)
            chance = random.random()  # noqa: S311 - no secret
            self.planted = [one for one in told["faults"] if chance < one["rate"]]
            self.given = (model, options)
            self.spoilt: Any = None

        def run(self, names: Any, feeds: Any, *more: Any) -> Any:
            if self.planted and self.spoilt is None:
                # Only now: faults depend on the values of tensors.
                model = spoilt_model(module, healthy_class, self.given[0], feeds, self.planted)
                self.planted = [] if model is None else self.planted
                self.spoilt = None if model is None else healthy_class(model, self.given[1])
            if self.spoilt is not None:
                return self.spoilt.run(names, feeds, *more)
            return super().run(names, feeds, *more)

    return Planted


def spoilt_model(module: Any, healthy_class: Any, given: Any, feeds: Any, faults: Any) -> bytes | None:
    """Return the model with its fault; None where it has nothing that one of them could befall."""
    import numpy as np
    import onnx

    from benchmarks.detection.faults import FAULTS
    from benchmarks.detection.net import Net

    model = onnx.load_model_from_string(given) if isinstance(given, bytes) else onnx.load(given)
    names = [node.name for node in model.graph.node]
    for wanted in faults:
        fault = FAULTS[wanted["fault"]]
        if fault.operators and wanted["node"] not in names:
            continue
        index = names.index(wanted["node"]) if fault.operators else 0
        values = traced(module, healthy_class, model, feeds)
        net = Net(model, values, np.random.default_rng(wanted["seed"]))
        if fault.plant(net, net.nodes[index]):
            return net.model().SerializeToString()
    return None


def traced(module: Any, healthy_class: Any, model: Any, feeds: Any) -> dict[str, Any]:
    """Return the value of each tensor of the main graph."""
    import numpy as np
    import onnx

    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    known = {output.name for output in wide.graph.output}
    names = [name for node in wide.graph.node for name in node.output if name]
    wide.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    options = module.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = healthy_class(wide.SerializeToString(), options, providers=["CPUExecutionProvider"])
    ports = [port.name for port in session.get_outputs()]
    found = zip(ports, session.run(ports, feeds), strict=True)
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    return {**feeds, **weights, **{name: value for name, value in found if isinstance(value, np.ndarray)}}


if FILE:
    from benchmarks.planting import plant

    plant(planted)
