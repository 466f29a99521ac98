"""A model of more than 1,200 nodes with one fault: seconds, trials and nodes, beside Polygraphy's reducer."""

import hashlib
import resource
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import onnx

from benchmarks.detection import cpu
from benchmarks.detection.faults import FAULTS as FAULT_KINDS
from benchmarks.detection.net import Net
from benchmarks.detection.subjects import stack
from benchmarks.triage.ep import Planted, StandIn
from benchmarks.triage.hunt import Hunted, hunt
from harness.annex.made.zoo.graph_builder import GraphBuilder
from harness.annex.triage.lab import Lab
from harness.annex.triage.subject import Subject
from harness.core.values.value import tensor

LAYERS, WIDTH = 36, 64
"""Of the zoo's transformer layers, 34 nodes each."""

FAULTS = ("block-unwritten", "channels-shifted", "input-scaled")
"""Planted in one node each, drawn by the name of the fault among those in the middle third."""

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
        processor_s: Of all its processes.
        trials: Models that were tried.
        nodes: Nodes of the result; None if it came to none.
        model: The result, if it is a file.
        why: Why not.
    """

    name: str
    seconds: float
    processor_s: float
    trials: int
    nodes: int | None
    model: Path | None = None
    why: str = ""


class Deep:
    """The model, what it is fed, and the stand-in with a fault in one of its nodes.

    Args:
        folder: For files.
        fault: A key of the detection benchmark's faults.
    """

    def __init__(self, folder: Path, fault: str) -> None:
        self.folder = folder
        graph = GraphBuilder(seed="deep.0", opset=17, fixed=True)
        stack(graph, layers=LAYERS, width=WIDTH)
        self.model = graph.model("deep")
        self.feeds = graph.inputs
        self.stand_in = StandIn(folder)
        self.fault = fault
        self.node = self._drawn()
        self.stand_in.plant(Planted(fault=fault, node=self.node, seed=0))

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return len(self.model.graph.node)

    def by_triage(self) -> tuple[Side, Hunted]:
        """Locate and reduce in a fresh lab, its start included."""
        started, spent = time.monotonic(), _processor_s()
        feeds = tuple((name, tensor(value)) for name, value in self.feeds.items())
        subject = Subject(model=self.model.SerializeToString(), inputs=feeds)
        with Lab([self.stand_in.target()], self.folder / "lab", lambda _: None) as lab:
            hunted = hunt(lab, subject, 1)
        if hunted is None:
            raise RuntimeError(f"{self.fault} in {self.node} does not show")
        side = Side(
            name="ep-harness",
            seconds=time.monotonic() - started,
            processor_s=_processor_s() - spent,
            trials=lab.trials,
            nodes=hunted.nodes_after,
        )
        return side, hunted

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
        started, spent, why = time.monotonic(), _processor_s(), ""
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
        seconds, processor_s = time.monotonic() - started, _processor_s() - spent
        trials = len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
        nodes = len(onnx.load(reduced).graph.node) if reduced.exists() else None
        return Side(
            name=f"Polygraphy, {mode}",
            seconds=seconds,
            processor_s=processor_s,
            trials=trials,
            nodes=nodes,
            model=reduced if reduced.exists() else None,
            why=why,
        )

    def _drawn(self) -> str:
        """A node that the fault may befall, with its residual connections before and behind it."""
        nodes = list(self.model.graph.node)
        values = cpu.trace(self.model, self.feeds)
        kind = FAULT_KINDS[self.fault]
        middle = range(len(nodes) // 3, 2 * len(nodes) // 3)
        fits = [
            nodes[index].name
            for index in middle
            if nodes[index].op_type in kind.operators
            for net in [Net(self.model, values, np.random.default_rng(0))]
            if kind.plant(net, net.nodes[index])
        ]
        digest = hashlib.sha256(self.fault.encode()).digest()
        return fits[int.from_bytes(digest[:4], "big") % len(fits)]


def _processor_s() -> float:
    """Seconds of the processors that this process and those that it waited for have taken."""
    own, waited = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + waited.ru_utime + waited.ru_stime
