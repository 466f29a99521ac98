"""Targets with a planted fault, and triages of what they compute."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.core.fault import Fault
from harness.core.record import Record
from harness.engine.engine import Engine
from harness.engine.events import Finished
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from harness.plan.matrix import Matrix, matrix_from
from harness.triage.triage import Triage, TriageSettings

PLANTED = Path(__file__).parent / "planted_onnxruntime"

Nodes = list[tuple[str, list[str], list[str], dict[str, Any]]]


def chain_model(nodes: Nodes, width: int = 8) -> onnx.ModelProto:
    """A model whose first input is ``x`` and whose last node makes ``y``; ``w*`` are weights."""
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


@pytest.fixture(scope="session")
def chain() -> Callable[[Nodes], onnx.ModelProto]:
    """Makes a model of nodes."""
    return chain_model


@pytest.fixture(scope="session")
def deep_nodes() -> Nodes:
    """Ten nodes, most operators only once."""
    return DEEP


@pytest.fixture(scope="session")
def deep() -> onnx.ModelProto:
    """The model of these nodes."""
    return chain_model(DEEP)


@pytest.fixture
def triage_planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Fault]]:
    """Run models on a target with a planted fault, and triage what failed."""
    if os.name != "posix":
        pytest.skip("faults are planted by POSIX signals")
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))

    def triage(
        fault: dict[str, Any],
        *,
        budget_s: float | None = None,
        tables: dict[str, Any] | None = None,
        target: dict[str, Any] | None = None,
        learnt: list[str] | None = None,
        **models: onnx.ModelProto,
    ) -> list[Fault]:
        matrix, records = run_planted(tmp_path, fault, models, tables, **(target or {}))
        learnt = [] if learnt is None else learnt
        work = Triage(
            matrix,
            open_suites(matrix),
            records,
            tmp_path / "triage",
            TriageSettings(budget_s=budget_s),
            lambda note: learnt.append(note.text),
        )
        return list(work.run())

    return triage


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
    table = {
        "schema": 1,
        "models": {"folders": ["models"]},
        "target": [
            {
                "name": "planted",
                "provider": "CPUExecutionProvider",
                "env": env,
                "timeouts_s": {"create": 3, "run": 2},
                **target,
            }
        ],
        **(tables or {}),
    }
    matrix = matrix_from(table, folder / "m.toml")
    suites = open_suites(matrix)
    plan = expand(matrix, {name: suite.models() for name, suite in suites.items()})
    engine = Engine(plan, suites)
    try:
        engine.submit(plan.cells)
        engine.drain()
        return matrix, [event.record for event in engine.events() if isinstance(event, Finished)]
    finally:
        engine.close()
