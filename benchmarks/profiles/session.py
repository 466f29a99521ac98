"""Models in this process on the CPU EP, with every element type: the agent's own conversion of values."""

from typing import Any

import onnx
import onnxruntime

from harness.agent.session_run import Runner
from harness.agent.tensor_files import Bulk
from harness.agent.wire import to_feed
from harness.core.values.value import NamedValues, from_wire, to_wire
from harness.golden.provenance import SESSION

ort: Any = onnxruntime


class RefusedError(Exception):
    """onnxruntime refuses a model, or fails."""


class CpuSession:
    """A session of one thread, set as for goldens.

    Args:
        model: The model.
        optimized: Whether the graph is optimized.

    Raises:
        RefusedError: onnxruntime refuses the model.
    """

    def __init__(self, model: onnx.ModelProto, *, optimized: bool = True) -> None:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        levels = ort.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
        for key, value in SESSION.items():
            options.add_session_config_entry(key, value)
        try:
            self._session = ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise RefusedError(str(error)) from error
        self._run = Runner(self._session)

    def run(self, inputs: NamedValues) -> NamedValues:
        """Run once.

        Raises:
            RefusedError: onnxruntime fails, or cannot be fed these values.
        """
        try:
            found = self._run({name: to_feed(to_wire(value)) for name, value in inputs})
            return tuple(
                (name, from_wire(_unbulked(wire))) for name, wire in zip(self._run.names, found, strict=True)
            )
        except Exception as error:
            raise RefusedError(str(error)) from error


def _unbulked(wire: Any) -> Any:
    """Return a value in wire form with its bytes, which the agent would send from where they are."""
    if isinstance(wire, dict):
        return {name: _unbulked(part) for name, part in wire.items()}
    if isinstance(wire, list):
        return [_unbulked(part) for part in wire]
    return bytes(wire.view) if isinstance(wire, Bulk) else wire
