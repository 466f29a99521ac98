"""Single nodes on the CPU provider, where it has a kernel for doubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.target_errors import UnsupportedError

# It would round to float32 inside: its text, or its function, says so.
FLOAT32_KERNELS = (
    *("GroupNormalization", "RMSNormalization", "RotaryEmbedding", "Attention", "FlexAttention"),
    *("LinearAttention", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"),
)


class Kernels:
    """Sessions of one node each."""

    def __init__(self, target: Any, ir_version: int) -> None:
        self._ort = target.ort
        self._ir_version = ir_version

    def find(self, node: Any, inputs: list[Any]) -> Callable[[Any, list[Any]], Any] | None:
        """Return the function that computes a node.

        Return None if no kernel takes these inputs, with doubles unchanged.
        """
        if node.op_type in FLOAT32_KERNELS or node.domain not in ("", "ai.onnx.ml"):
            return None
        content = self._model(node, inputs)
        if content is None:
            return None
        settings = self._ort.SessionOptions()
        settings.log_severity_level = 4
        settings.intra_op_num_threads = 1
        try:
            session = self._ort.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
        except Exception:  # noqa: BLE001 - it has no such kernel
            return None

        def compute(node: Any, inputs: list[Any]) -> Any:
            feeds = {name: data for name, data in zip(node.inputs, inputs) if name}
            results = session.run(None, feeds)
            if any(getattr(one, "dtype", None) == np.float32 for one in results):
                raise UnsupportedError("the CPU provider computes %s in float32" % node.name)
            found = iter(results)
            return tuple(next(found) if name else None for name in node.outputs)

        return compute

    def _model(self, node: Any, inputs: list[Any]) -> bytes | None:
        from onnx import helper

        infos = {}
        for name, data in zip(node.inputs, inputs):
            if name and not (isinstance(data, np.ndarray) and data.dtype.kind in "fiubO"):
                return None
            if name:
                number = helper.np_dtype_to_tensor_dtype(data.dtype)
                infos[name] = helper.make_tensor_value_info(name, number, [None] * data.ndim)
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.outputs if name]
        graph = helper.make_graph([node.proto], "node", list(infos.values()), outputs)
        imports = [helper.make_opsetid(domain, version) for domain, version in node.opsets.items()]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = self._ir_version
        content: bytes = model.SerializeToString()
        return content
