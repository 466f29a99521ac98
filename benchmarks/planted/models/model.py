"""A model on which faults are planted, and what it computes by hand."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.parser

from benchmarks.planted.arithmetic import Arithmetic, Array

Values = Mapping[str, Array]
"""Inputs and weights by name; floating ones in float64."""

Knobs = Mapping[str, Any]
"""What a wrong implementation does otherwise, by name; empty for the right one."""

Compute = Callable[[Arithmetic, Values, Knobs], list[Array]]

BIAS: Mapping[str, Knobs] = {"dropped bias": {"bias": 0.0}}
"""A fault of all models that add one."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model.

    Attributes:
        name: In the alphabet of ids.
        text: The graph in ONNX's text format, without its head and its weights.
        inputs: What it is fed.
        weights: Initializers beside those of the text.
        compute: What its outputs are, in order, by hand.
        knobs: Fault of this model -> what ``compute`` does otherwise.
        opset: Of ONNX's own domain.
    """

    name: str
    text: str
    inputs: Mapping[str, Array]
    compute: Compute
    weights: Mapping[str, Array] = {}
    knobs: Mapping[str, Knobs] = {}
    opset: int = 17

    def write(self, folder: Path) -> Path:
        """Write the model and its inputs below a folder; return its path."""
        head = f'<ir_version: 9, opset_import: ["" : {self.opset}]> agraph '
        model = onnx.parser.parse_model(head + self.text)
        for name, value in self.weights.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
        onnx.checker.check_model(model, full_check=True)
        own = folder / self.name
        data = own / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        onnx.save(model, own / f"{self.name}.onnx")
        for index, port in enumerate(model.graph.input):
            given = onnx.numpy_helper.from_array(self.inputs[port.name], port.name)
            (data / f"input_{index}.pb").write_bytes(given.SerializeToString())
        return own / f"{self.name}.onnx"

    def run(self, q: Arithmetic, inputs: Values | None = None, **knobs: Any) -> list[Array]:
        """Return the outputs by hand.

        Args:
            q: The arithmetic.
            inputs: Those of the model where None.
            knobs: What is done otherwise.
        """
        given = {**self.weights, **(self.inputs if inputs is None else inputs)}
        change = knobs.pop("weight", None)
        if change is not None:
            name, function = change
            given[name] = function(np.asarray(given[name], np.float64))
        exact = {name: _wide(value) for name, value in given.items()}
        with np.errstate(all="ignore"):
            return self.compute(q, exact, knobs)


def _wide(value: Array) -> Array:
    return value if value.dtype.kind in "iub" else np.asarray(value, np.float64)
