"""A run of the stand-in: each fault is a target, which runs its models plainly and in ``generate``."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.generation.faults import FAULTS, Fault
from benchmarks.harness_command import start
from harness.core.records import ways
from harness.corpus.suites.suites import open_suite

ROOT = Path(__file__).resolve().parents[2]
PLANTED = Path(__file__).parent / "planted_onnxruntime"
HEALTHY = "healthy"
"""Prefix of the targets without a fault, one for each level of graph optimizations."""

SITES = 1
"""Models in which each kind of fault is planted."""

LEVELS = ("disabled", "all")

_HEAD = """schema = 1

[models]
suites = ["generate"]

[axes]
scenario = ["plain", "generate"]

[scenarios.generate]
ways = [{ways}]
"""

WAYS = tuple(way for way in ways.WAYS if way != "lengths")
"""All but the prompts of many lengths, which are half of the runs: no fault here needs them to be found."""


def matrix(faults: Iterable[Fault], *, healthy: bool) -> str:
    """Return the matrix of some faults, and of the CPU EP without one at each level of optimizations."""
    names = open_suite("generate").models()
    head = _HEAD.format(ways=_texts(WAYS))
    return "\n".join([head, *(_healthy() if healthy else ()), *(_target(one, names) for one in faults)])


def _target(fault: Fault, names: Iterable[str]) -> str:
    others = [name for name in names if name not in fault.models[:SITES]]
    env = f'PYTHONPATH = "{PLANTED}:{ROOT}", GENERATION_FAULT = "{fault.name}"'
    return f"""
[[target]]
name = "{fault.name}"
provider = "CPUExecutionProvider"
env = {{ {env} }}

[[exclude]]
target = "{fault.name}"
model = [{_texts(others)}]
"""


def _texts(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _healthy() -> Iterator[str]:
    for level in LEVELS:
        yield f"""
[[target]]
name = "{HEALTHY}-{level}"
provider = "CPUExecutionProvider"
axes = {{ graph_optimization = ["{level}"] }}

[[exclude]]
target = "{HEALTHY}-{level}"
scenario = "plain"
"""


def run(folder: Path, faults: Iterable[Fault] = tuple(FAULTS.values()), *, healthy: bool = True) -> Path:
    """Run the faults, and return the folder of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "matrix.toml").write_text(matrix(faults, healthy=healthy), encoding="utf-8")
    start(folder, "run", "matrix.toml", "--out", "run", "--no-report").wait()
    return folder / "run"
