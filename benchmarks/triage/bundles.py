"""Bundles of planted faults, replayed where there is nothing but onnxruntime and numpy.

There the CPU provider is healthy, so ``repro.py`` must say that the fault is gone. On the stand-in it must
say that the fault is there.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import msgspec

from benchmarks.detection import cpu
from benchmarks.detection.effect import effect
from benchmarks.detection.faults import FAULTS
from benchmarks.detection.measure import VISIBLE, Bench
from benchmarks.detection.subjects import Subject as Model
from benchmarks.detection.subjects import subjects
from benchmarks.triage.ep import Planted
from benchmarks.triage.run import Run
from harness.annex.triage.run_triage import read_faults

GONE, THERE = 0, 1
"""Exit codes of ``repro.py``."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """One bundle.

    Attributes:
        fault: Id.
        bare: Exit code of ``repro.py`` where the provider is healthy.
        planted: The same on the stand-in.
        printed: What the first printed.
    """

    fault: str
    bare: int
    planted: int
    printed: str

    @property
    def is_right(self) -> bool:
        """Whether both are."""
        return (self.bare, self.planted) == (GONE, THERE)


def replayed(folder: Path, names: list[str], python: Path | None) -> tuple[int, list[Replayed]]:
    """Triage one planted fault for each model, and replay the bundles.

    Args:
        folder: For files.
        names: Models.
        python: An environment with onnxruntime and numpy; one is made if left out.

    Returns:
        The number of faults, and what came of the bundles.
    """
    run = Run(folder)
    faults = []
    for model in subjects(folder / "subjects", names):
        planted = visible_fault(model)
        proto = model.model()
        for node in proto.graph.node:
            # Other models have nodes of the same name.
            node.name = f"{model.name}/{node.name}"
        run.add(model.name, proto)
        faults.append(msgspec.structs.replace(planted, node=f"{model.name}/{planted.node}"))
    run.stand_in.plant(*faults)
    run.start()
    run.triage("triage").wait()
    bare = python or bare_python(folder)
    found = read_faults(run.folder / "triage" / "faults.jsonl")
    # Faults with the same smallest model and failure are one, with one bundle.
    written = dict.fromkeys(fault.bundle for fault in found if fault.bundle)
    bundled = [run.folder / "triage" / name for name in written]
    replays = [_replay(home, bare, run.stand_in.env, folder / "away") for home in bundled]
    return len({fault.id for fault in found}), replays


def visible_fault(model: Model) -> Planted:
    """Return a visible fault of a model and one of its nodes, drawn by the model's name."""
    bench = Bench(model, {})
    noises = bench.full_noise()
    order = sorted(FAULTS, key=lambda name: hashlib.sha256(f"{model.name} {name}".encode()).digest())
    for fault in map(FAULTS.__getitem__, order):
        if not fault.operators:
            continue
        for index, net in islice(bench.spoilt(fault), 1):
            try:
                size = effect(bench.golden, cpu.run(net.model(), model.feeds), noises)
            except cpu.CpuError:
                continue
            if size > VISIBLE:
                return Planted(fault=fault.name, node=bench.model.graph.node[index].name, seed=index)
    raise RuntimeError(f"no fault shows in {model.name}")


def bare_python(folder: Path) -> Path:
    """Make an environment with onnxruntime and numpy alone; its interpreter."""
    home = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = [f"onnxruntime=={version('onnxruntime')}", "numpy"]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True)
    return python


def _replay(bundle: Path, bare: Path, env: dict[str, str], away: Path) -> Replayed:
    """Run ``repro.py`` of a copy of the bundle, for nothing beside it may be needed."""
    home = away / bundle.name
    shutil.copytree(bundle, home)
    none = dict.fromkeys(env, "")
    first, second = (
        subprocess.run(
            [str(python), "repro.py"],
            cwd=home,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        for python, more in ((bare, none), (Path(sys.executable), env))
    )
    return Replayed(
        fault=bundle.name,
        bare=first.returncode,
        planted=second.returncode,
        printed=first.stdout + first.stderr + second.stdout + second.stderr,
    )
