"""Targets with a planted fault, what they compute, and models of a few nodes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from harness.core.records.fault import Fault
from harness.core.records.record import Record
from harness.plan.matrix import Matrix
from tests.kit import make_matrix, of_folder, records_of, run_matrix

PLANTED = Path(__file__).parent / "planted_onnxruntime"

Nodes = list[tuple[str, list[str], list[str], dict[str, Any]]]


def chain(nodes: Nodes, width: int = 8) -> onnx.ModelProto:
    """Return a model whose first input is ``x`` and whose last node makes ``y``; ``w*`` are weights."""
    random = np.random.default_rng(5)
    weights = sorted({name for _, inputs, _, _ in nodes for name in inputs if name.startswith("w")})
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op, ins, outs, name=f"{op}_{outs[0]}", **more) for op, ins, outs, more in nodes],
        "chain",
        [value("x", onnx.TensorProto.FLOAT, [2, width])],
        [value("y", onnx.TensorProto.FLOAT, [2, width])],
        [
            numpy_helper.from_array(random.standard_normal((width, width)).astype(np.float32), name)
            for name in weights
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


DEEP: Nodes = [
    ("MatMul", ["x", "w1"], ["a"], {}),
    ("Relu", ["a"], ["b"], {}),
    ("MatMul", ["b", "w2"], ["c"], {}),
    ("Tanh", ["c"], ["d"], {}),
    ("Add", ["d", "x"], ["e"], {}),
    ("Softplus", ["e"], ["f"], {}),
    ("MatMul", ["f", "w3"], ["g"], {}),
    ("Sigmoid", ["g"], ["h"], {}),
    ("Mul", ["h", "e"], ["i"], {}),
    ("Erf", ["i"], ["y"], {}),
]
"""Ten nodes, most operators only once."""


def deep() -> onnx.ModelProto:
    """Return the model of ``DEEP``."""
    return chain(DEEP)


def run_planted(
    folder: Path,
    fault: dict[str, Any],
    models: dict[str, onnx.ModelProto],
    tables: dict[str, Any] | None = None,
    **target: Any,
) -> tuple[Matrix, list[Record]]:
    """The records of models on a CPU provider with a planted fault; ``tables`` go into the matrix."""
    for name, model in models.items():
        (folder / "models").mkdir(exist_ok=True)
        onnx.save(model, folder / "models" / f"{name}.onnx")
    if "rate" in fault:  # a path would be taken out of a bundle
        fault = {"tally": str(folder / "sessions"), **fault}
    env = {"PYTHONPATH": str(PLANTED), "PLANTED_FAULT": json.dumps(fault)}
    planted = {"name": "planted", "provider": "CPUExecutionProvider", "env": env, **target}
    planted["timeouts_s"] = target.get("timeouts_s", {"create": 3, "run": 2})
    table = of_folder(planted, **tables or {})
    return make_matrix(table, folder / "m.toml"), records_of(run_matrix(folder, table))


def only(faults: list[Fault]) -> Fault:
    """Return the one fault that was found, which has to be conclusive."""
    (fault,) = faults
    assert not fault.inconclusive, fault.sentence
    return fault
