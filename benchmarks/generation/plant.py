"""A decoder with a planted fault."""

import numpy as np
import onnx

from benchmarks.detection.net import Net
from benchmarks.generation.faults import FAULTS


def spoilt(model: onnx.ModelProto, fault: str) -> onnx.ModelProto | None:
    """The model with a fault; None where it is no decoder, or has nothing for the fault to befall."""
    plant = FAULTS[fault].plant
    if plant is None or not any(port.name == "input_ids" for port in model.graph.input):
        return None
    net = Net(model, {}, np.random.default_rng(0))
    return net.model() if plant(net) else None
