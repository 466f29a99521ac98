"""Measure every figure of docs/reference/benchmarks.md and evidence.md on this machine in one go.

    python -m benchmarks.all cost        # what the harness costs: some seventy minutes
    python -m benchmarks.all evidence    # whether its verdicts are right: some three hours
    python -m benchmarks.all --list      # the scripts, their minutes, and what they need
    python -m benchmarks.all --only operators.py --only scale.py

A script by itself takes larger sizes than here. A page is written after each script, so that an interrupted
call keeps what it has. Tables that this call does not
measure stay, with the machine that they name. Exit code 1: a figure is not what it should be, or a script
failed.
"""

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from benchmarks.growth_chart import pictures
from benchmarks.measured_page import read_printed, with_measured, with_steps
from harness.agent.system import processor

HERE = Path(__file__).resolve().parent
REFERENCE = HERE.parent / "docs" / "reference"
_HEAD = ("script", "arguments", "minutes", "needs")


class Step(NamedTuple):
    """One script.

    Attributes:
        name: Its name on the page.
        command: What Python runs, with arguments.
        minutes: On two idle cores of a slow server (AMD Zen 3).
        needs: What it needs beyond this environment; such a script runs only if it is named.
    """

    name: str
    command: str
    minutes: int
    needs: str = ""


COST = (
    Step("operators.py", "operators.py --onnx-rounds 1", 4),
    Step("providers.py", "providers.py 1 --held-only", 10),
    Step("side_by_side.py", "side_by_side.py 2", 14),
    Step("scale.py", "scale.py 2000 20000", 11),
    Step("places.py sleep", "places.py sleep --rounds 1", 6),
    Step("places.py overhead", "places.py overhead --cells 5000", 2),
    Step("page_weight.py", "page_weight.py 10000", 1),
    Step("recovery.py", "recovery.py", 3),
    Step("recovery_native.py", "recovery_native.py", 1),
    Step("tensors.py", "tensors.py", 2),
    Step("restarts.py", "restarts.py 200", 1),
    Step("judging.py", "judging.py --sample 20", 3),
    Step("store.py", "store.py 10 100", 3),
    Step("store_engines.py", "store_engines.py 100", 1),
    Step("real_folder.py", "real_folder.py --models 8", 9),
)
"""What the harness costs, in the order in which they run."""

EVIDENCE = (
    Step("oracle.py", "oracle.py", 6),
    Step("foreign.py", "foreign.py", 6),
    Step("odd_models", "-m benchmarks.odd_models", 2),
    Step("stale_outputs.py", "stale_outputs.py", 5),
    Step("busy.py", "busy.py", 8),
    Step("weak_goldens.py", "weak_goldens.py", 5),
    Step("night_to_night.py", "night_to_night.py", 5),
    Step("check_finds.py", "check_finds.py", 30),
    Step("trace_faults.py", "trace_faults.py 44", 20),
    Step("compare_speed.py", "compare_speed.py --equal 20 --slower 5", 25),
    Step("triage planted", "-m benchmarks.triage planted --share 0.05", 20),
    Step("triage deep", "-m benchmarks.triage deep", 3),
    Step("triage flaky", "-m benchmarks.triage flaky", 5),
    Step("triage resume", "-m benchmarks.triage resume", 5),
    Step("triage bundles", "-m benchmarks.triage bundles", 5),
    Step("fuzzing", "-m benchmarks.fuzzing", 15),
    Step("planted", "-m benchmarks.planted --out {scratch}/planted.json", 25),
    Step("generation", "-m benchmarks.generation --out {scratch}/generation.json", 15),
    Step("places_killed.py", "places_killed.py", 30, needs="root, Slurm, a network namespace"),
)
"""Whether verdicts are right: counts that a slow machine does not change."""

PAGES: dict[str, tuple[Path, Sequence[Step]]] = {
    "cost": (REFERENCE / "benchmarks.md", COST),
    "evidence": (REFERENCE / "evidence.md", EVIDENCE),
}
"""Name of a part -> the page that has its figures, and the scripts that measure them."""


def main(arguments: list[str] | None = None) -> int:
    """Measure what is asked for; 1 where a figure is not what it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [step.name for _, steps in PAGES.values() for step in steps]
    parser.add_argument("part", nargs="?", choices=PAGES, help="only what belongs on this page")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the scripts, and run none")
    chosen = parser.parse_args(arguments)
    failed = []
    for page, steps in [PAGES[chosen.part]] if chosen.part else PAGES.values():
        for step in steps:
            if step.name not in chosen.only if chosen.only else step.needs:
                continue
            if chosen.list:
                print(f"{step.name:20} {step.minutes:4} min  {step.needs}")
            elif not measure(step, page, steps):
                failed.append(step.name)
    if not chosen.list:
        print(f"not as it should be: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def measure(step: Step, page: Path, steps: Sequence[Step]) -> bool:
    """Run a script, and put what it prints into the page; return whether all is as it should be."""
    with tempfile.TemporaryDirectory() as scratch:
        script, *given = shlex.split(step.command.format(scratch=scratch))
        command = ["-m", *given] if script == "-m" else [str(HERE / script), *given]
        print(f"\n{step.name}", flush=True)
        load, started = os.getloadavg()[0], time.monotonic()
        process = subprocess.run(
            [sys.executable, *command], cwd=HERE.parent, stdout=subprocess.PIPE, check=False, text=True
        )
    print(process.stdout, flush=True)
    print(f"{step.name}: exit code {process.returncode}, {time.monotonic() - started:.0f} s", flush=True)
    loads = f"{load:.1f} before, {os.getloadavg()[0]:.1f} at the end"
    printed = read_printed(process.stdout)
    for name, title, drawn in pictures(step.name, printed.rows):
        (page.parents[1] / "images" / name).write_text(drawn, encoding="utf-8", newline="\n")
        printed = printed._replace(pictures=(*printed.pictures, (name, title)))
    text = with_measured(page.read_text("utf-8"), step.name, printed, machine(), loads)
    page.write_text(with_steps(text, _HEAD, map(_about, steps)), encoding="utf-8", newline="\n")
    return process.returncode == 0


def _about(step: Step) -> tuple[str, ...]:
    _, *given = step.command.removeprefix("-m ").split()
    given = [one for one in given if one not in step.name.split() and "{" not in one and one != "--out"]
    return f"`{step.name}`", f"`{' '.join(given)}`" if given else "", str(step.minutes), step.needs


def machine() -> str:
    """Return this machine in one line: what may change a figure."""
    found = processor()
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    features = ", ".join(found.get("features", ())) or "features unknown"
    return (
        f"{found['count']} cores of {found['model'] or platform.machine()} ({features}), {memory_gb:.0f} GB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"onnxruntime {version('onnxruntime')}, onnx {version('onnx')}"
    )


if __name__ == "__main__":
    sys.exit(main())
