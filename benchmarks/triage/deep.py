"""A model of more than 1,200 nodes with one fault: seconds, trials and nodes, beside Polygraphy's reducer."""

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import onnx

from benchmarks.detection import cpu
from benchmarks.detection.subjects import stack
from benchmarks.triage.ep import Planted, StandIn
from benchmarks.triage.hunt import Hunted, hunt
from harness.core.value import tensor
from harness.corpus.zoo.graph import Graph
from harness.triage.lab import Lab
from harness.triage.subject import Subject

LAYERS, WIDTH = 36, 64
"""Of the zoo's transformer layers, 34 nodes each."""

FAULTS = ("block-unwritten", "weight-transposed", "float16-storage")
"""Planted in one node each, drawn by the name of the fault."""

CHECK = Path(__file__).parent / "polygraphy_check.py"

LOADER = """
import numpy
def load_data():
    yield dict(numpy.load({!r}))
"""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What one reducer took.

    Attributes:
        name: Of the reducer.
        seconds: From its start to its end.
        trials: Models that were tried.
        nodes: Nodes of the result; None if it came to none.
        why: Why not.
    """

    name: str
    seconds: float
    trials: int
    nodes: int | None
    why: str = ""


class Deep:
    """The model, what it is fed, and the stand-in with a fault in one of its nodes.

    Args:
        folder: For files.
        fault: A key of the detection benchmark's faults.
        node: Name of the guilty node.
    """

    def __init__(self, folder: Path, fault: str, layers: int = LAYERS) -> None:
        self.folder = folder
        graph = Graph(seed="deep.0", opset=17, fixed=True)
        stack(graph, layers=layers, width=WIDTH)
        self.model = graph.model("deep")
        self.feeds = graph.inputs
        self.stand_in = StandIn(folder)
        self.fault = fault
        self.node = ""

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return len(self.model.graph.node)

    def plant(self, node: str) -> None:
        """Have a node computed wrongly."""
        self.node = node
        self.stand_in.plant(Planted(fault=self.fault, node=node, seed=0))

    def by_triage(self) -> tuple[Side, Hunted]:
        """Locate and reduce in a fresh lab, its start included."""
        started = time.monotonic()
        feeds = tuple((name, tensor(value)) for name, value in self.feeds.items())
        subject = Subject(model=self.model.SerializeToString(), inputs=feeds)
        with Lab([self.stand_in.target()], self.folder / "lab", lambda _: None) as lab:
            hunted = hunt(lab, subject, 1)
            seconds = time.monotonic() - started
            if hunted is None:
                raise RuntimeError(f"{self.fault} in {self.node} does not show")
            return Side(
                name="ep-harness", seconds=seconds, trials=lab.trials, nodes=hunted.nodes_after
            ), hunted

    def by_polygraphy(self, python: Path, mode: str, limit_s: float, start: Path | None = None) -> Side:
        """Reduce with Polygraphy, by a check that compares the same two providers.

        Args:
            python: Of an environment that has Polygraphy, onnx, onnxruntime and onnx-graphsurgeon.
            mode: ``bisect`` or ``linear``.
            limit_s: Seconds after which it is stopped.
            start: What to reduce; the whole model if left out.
        """
        home = self.folder / f"polygraphy-{mode}"
        home.mkdir()
        model, values, inputs = home / "model.onnx", home / "values.npz", home / "inputs.npz"
        onnx.save(self.model, model)
        np.savez(values, **cpu.trace(self.model, self.feeds))
        np.savez(inputs, **self.feeds)
        (home / "loader.py").write_text(LOADER.format(str(inputs)), encoding="utf-8")
        log, reduced = home / "trials.log", home / "reduced.onnx"
        # Only the check sees the stand-in: Polygraphy itself computes with a healthy provider.
        env = [f"{key}={value}" for key, value in self.stand_in.env.items()]
        check = ["env", *env, sys.executable, str(CHECK), "polygraphy_debug.onnx", str(values), str(log)]
        command = [
            str(python.parent / "polygraphy"), "debug", "reduce", str(start or model), "-o", str(reduced),
            "--mode", mode, "--data-loader-script", str(home / "loader.py"), "--check", *check,
        ]  # fmt: skip
        started, why = time.monotonic(), ""
        try:
            done = subprocess.run(
                command,
                cwd=home,
                capture_output=True,
                timeout=limit_s,
                check=False,
            )
            (home / "output.txt").write_bytes(done.stdout + done.stderr)
            why = "" if reduced.exists() else f"exit code {done.returncode}, no model"
        except subprocess.TimeoutExpired:
            why = f"stopped after {limit_s:g} s"
        seconds = time.monotonic() - started
        trials = len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
        nodes = len(onnx.load(reduced).graph.node) if reduced.exists() else None
        return Side(name=f"polygraphy {mode}", seconds=seconds, trials=trials, nodes=nodes, why=why)
