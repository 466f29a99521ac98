"""Error rates of `ep-harness compare-speed`: alarms among equal builds, and slower builds that are found.

    python benchmarks/compare_speed.py [--equal 100] [--slower 20] [--busy 4] [--samples FILE]
    python benchmarks/compare_speed.py --resample FILE      # 2,000 comparisons drawn from stored pairs

The model has ten equal kernels of the crooked EP of the tests; a slower build computes one of them twice,
which is a tenth more work. ``--busy`` processes compute meanwhile in bursts. Each comparison is a job of its
own. Stored pairs of equal builds are drawn with replacement, each with its sides swapped or not by a coin; a
slower build is one whose times are multiplied by 1.1. The same processes are judged as asv does it. Ends with
1 if a promise is not kept.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from processes import verdict

from harness.annex.speed.build_plans import plan_of_build
from harness.annex.speed.compare_builds import BuildComparison
from harness.annex.speed.in_turns import SideName
from harness.annex.speed.looks import (
    FALSE_ALARMS,
    FOUND_FROM,
    MOST_MISSED,
    SeenPairs,
    TimedPair,
    first_look,
    look,
)
from harness.core.timing.latency import Latency
from harness.engine.prepare import RunnablePlan
from tests.crooked_ep.build import build

NODES, SIZE = 10, 48
MINUTES = 4.0
RESAMPLED = 2000
MOST_LOOKS = 3
BUSY = """
import random, time
while True:
    end = time.time() + random.random()
    while time.time() < end: pass
    time.sleep(random.random())
"""
"""What a busy process does: up to a second of work, then up to a second of rest."""

ASV_P, ASV_FACTOR, ASV_PROCESSES, ASV_SAMPLES = 0.002, 1.1, 2, 10
"""asv's rule (asv/_stats.py: is_different; asv/commands/compare.py: --factor): Mann and Whitney's test on the
raw samples of two interleaved processes, ten each, and a ratio of medians of at least 1.1."""


Times = dict[str, Any]
"""``ms`` of each run, and ``processor_ms``."""
Stored = dict[str, Times]
"""The times of ``base`` and ``new``."""


def write_model(folder: Path) -> None:
    """Write a chain of equal products of matrices, and the matrix file."""
    import onnx
    from onnx import helper, numpy_helper

    generator = np.random.default_rng(1)
    weights = [
        numpy_helper.from_array(
            (generator.normal(0, 1, (SIZE, SIZE)) / SIZE**0.5).astype(np.float32), f"w{at}"
        )
        for at in range(NODES)
    ]
    nodes = [
        helper.make_node("MatMul", [f"x{at}", f"w{at}"], [f"x{at + 1}"], name=f"n{at}") for at in range(NODES)
    ]
    ports = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (SIZE, SIZE))
        for name in ("x0", f"x{NODES}")
    ]
    graph = helper.make_graph(nodes, "chain", ports[:1], ports[1:], weights)
    (folder / "models").mkdir(parents=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "models" / "chain.onnx")
    library = build(Path(tempfile.gettempdir()) / "crooked_speed")
    (folder / "matrix.toml").write_text(
        f"""schema = 1
models = {{ folders = ["models"] }}
[[target]]
name = "crooked"
provider = "CrookedExecutionProvider"
plugin = "{library}"
device = {{ type = "CPU" }}
unchecked_options = true
""",
        encoding="utf-8",
    )


def plan(folder: Path, slower_node: int | None) -> RunnablePlan:
    """Return the plan of a build; one that is slower computes a node twice."""
    plan = plan_of_build(folder / "matrix.toml", "--new", sys.executable)
    if slower_node is None:
        return plan
    options = {"fault": "computes_twice", "only": f"n{slower_node}"}
    (target,) = plan.matrix.targets
    slower = msgspec.structs.replace(target, options=options)
    matrix = msgspec.structs.replace(plan.matrix, targets=(slower,))
    return RunnablePlan(matrix=matrix, cells=plan.cells, suites=plan.suites)


def told(side: Latency) -> Times:
    return {"ms": [round(ms, 5) for ms in side.samples_ms], "processor_ms": side.processor_ms}


def compare(folder: Path, seed: int, slower_node: int | None, samples: Path | None) -> bool:
    """Compare once; return whether the new build is told as slower."""
    plans: dict[SideName, RunnablePlan] = {"base": plan(folder, None), "new": plan(folder, slower_node)}
    began, load = time.monotonic(), os.getloadavg()[0]
    comparison = BuildComparison(plans, ("base", "new"), seed, MINUTES, lambda _: None)
    (found,) = comparison.run().cells
    what = "equal" if slower_node is None else f"n{slower_node} twice"
    print(
        f"{what:<9} {found.verdict:<9} load {load:4.1f} {time.monotonic() - began:3.0f} s  {found.reason}",
        flush=True,
    )
    if samples is not None:
        ((_, pairs),) = comparison.pairs.items()
        line = {
            "slower": slower_node,
            "verdict": found.verdict,
            "load": load,
            "pairs": [{"base": told(one.base), "new": told(one.new)} for one in pairs],
        }
        with samples.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return found.verdict == "slower"


def measured(equal: int, slower: int, seed: int, samples: Path | None) -> bool:
    """Run real comparisons, with seeds from ``seed`` on; return whether the promises are kept."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder)
        alarms = sum(compare(folder, seed + one, None, samples) for one in range(equal))
        found = sum(compare(folder, seed + one, (seed + one) % NODES, samples) for one in range(slower))
    print(f"| equal builds | told as slower | {alarms} of {equal} |")
    print(f"| one kernel of ten twice | told as slower | {found} of {slower} |")
    met = verdict(f"of {equal} equal builds, those told as slower", alarms, FALSE_ALARMS * equal)
    least = (1 - MOST_MISSED) * slower
    return met & verdict(f"of {slower} slower builds, those told as slower", found, least, at_least=True)


def resampled(samples: Path) -> bool:
    """Draw comparisons from stored pairs of equal builds; return whether the promises are kept."""
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    stored = [pair for line in lines if line["slower"] is None for pair in line["pairs"]]
    coin = random.Random(7)  # noqa: S311 - no secret
    kept = True
    print(f"{len(stored)} stored pairs of equal builds")
    for factor, wanted in ((1.0, "at most"), (1 + FOUND_FROM, "at least")):
        verdicts = [resample(stored, factor, coin) for _ in range(RESAMPLED)]
        for one in sorted(set(verdicts)):
            print(f"| times {factor:g} | {one} | {share(verdicts.count(one))} |")
        slower = verdicts.count("slower") / RESAMPLED
        kept &= slower <= FALSE_ALARMS if wanted == "at most" else slower >= 1 - MOST_MISSED
        for processes in (ASV_PROCESSES, first_look(1)):
            count = sum(asv_slower(stored, factor, coin, processes) for _ in range(RESAMPLED))
            print(f"| times {factor:g} | asv's rule, {processes} processes | {share(count)} |")
    return kept


def resample(stored: Sequence[Stored], factor: float, coin: random.Random) -> str:
    """Return the verdict on pairs that are drawn, look after look."""
    pairs: list[TimedPair] = []
    for number in range(MOST_LOOKS):
        while len(pairs) < first_look(1) << number:
            pairs.append(drawn(stored, factor, coin))
        found = look(number, {"": SeenPairs(pairs=tuple(pairs), computes_here=True)})[""]
        if found.verdict != "too_noisy":
            return found.verdict
    return "too_noisy"


def drawn(stored: Sequence[Stored], factor: float, coin: random.Random) -> TimedPair:
    base, new = swapped(coin.choice(stored), coin)
    return TimedPair(base_first=True, base=as_latency(base, 1.0), new=as_latency(new, factor))


def swapped(pair: Stored, coin: random.Random) -> tuple[Times, Times]:
    sides = (pair["base"], pair["new"])
    return sides if coin.random() < 0.5 else sides[::-1]  # noqa: PLR2004 - a coin


_MADE: dict[tuple[int, float], Latency] = {}


def as_latency(side: Times, factor: float) -> Latency:
    """Return stored times, of which looks read the medians alone."""
    key = (id(side), factor)
    if key not in _MADE:
        p50_ms = float(np.median(side["ms"])) * factor
        processor_ms = side["processor_ms"] and float(side["processor_ms"]) * factor
        _MADE[key] = Latency(
            runs=1, warm_up=0, stopped_by="budget", min_ms=p50_ms, p50_ms=p50_ms, p90_ms=None, p99_ms=None,
            max_ms=p50_ms, mean_ms=p50_ms, stddev_ms=None, samples_ms=(p50_ms,), io="copied",
            intra_op_threads=1, inter_op_threads=1, waiting_threads=None, host_peak_mib=None, device_mib=None,
            processor_ms=processor_ms or None,
        )  # fmt: skip
    return _MADE[key]


def asv_slower(stored: Sequence[Stored], factor: float, coin: random.Random, processes: int) -> bool:
    """Return whether asv tells drawn processes as slower."""
    sides: list[list[float]] = [[], []]
    for _ in range(processes):
        pair = swapped(coin.choice(stored), coin)
        for at, side in enumerate(pair):
            parts = np.array_split(np.asarray(side["ms"]), ASV_SAMPLES)
            sides[at] += [float(part.mean()) * (factor if at else 1.0) for part in parts if len(part)]
    base, new = sides
    return bool(np.median(new) >= ASV_FACTOR * np.median(base)) and mann_whitney_p(base, new) < ASV_P


def mann_whitney_p(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the p-value of both sides, by the normal distribution, as asv has it for so many samples."""
    below = np.searchsorted(np.sort(one), other, side="left").sum()
    above = len(one) * len(other) - np.searchsorted(np.sort(one), other, side="right").sum()
    least = min(
        below + (len(one) * len(other) - below - above) / 2,
        above + (len(one) * len(other) - below - above) / 2,
    )
    mean = len(one) * len(other) / 2
    deviation = math.sqrt(len(one) * len(other) * (len(one) + len(other) + 1) / 12)
    return math.erfc((mean - least) / deviation / math.sqrt(2))


def share(count: int, of: int = RESAMPLED) -> str:
    """Return a share with its interval of 95 % (Wilson, 1927)."""
    z, part = 1.96, count / of
    middle, half = part + z * z / 2 / of, z * math.sqrt(part * (1 - part) / of + z * z / 4 / of / of)
    low, high = ((middle + sign * half) / (1 + z * z / of) for sign in (-1, 1))
    return f"{part:.2%} ({max(low, 0):.2%} to {high:.2%})"


def busy(count: int) -> Iterator[subprocess.Popen[bytes]]:
    for _ in range(count):
        yield subprocess.Popen([sys.executable, "-c", BUSY])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--equal", type=int, default=100)
    parser.add_argument("--slower", type=int, default=20)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--resample", type=Path)
    given = parser.parse_args()
    if given.resample is not None:
        return int(not resampled(given.resample))
    others = [*busy(given.busy)]
    try:
        return int(not measured(given.equal, given.slower, given.seed, given.samples))
    finally:
        for other in others:
            other.kill()


if __name__ == "__main__":
    sys.exit(main())
