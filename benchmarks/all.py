"""Measure every figure of docs/reference/benchmarks.md on this machine in one go, and write the tables.

    python -m benchmarks.all            # everything but what needs root: hours
    python -m benchmarks.all --quick    # what fits into 25 minutes on two idle cores
    python -m benchmarks.all --list     # the scripts, their minutes, and what they need
    python -m benchmarks.all --only operators.py --only scale.py

The page is written after each script, so that an interrupted call keeps what it has. Tables that this call
does not measure stay, with the machine that they name. Exit code 1: a figure is not what it should be, or a
script failed.
"""

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from benchmarks.growth_chart import pictures
from benchmarks.measured_page import read_printed, with_measured, with_steps
from harness.agent.system import processor

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "reference" / "benchmarks.md"
_HEAD = ("script", "minutes", "with `--quick`", "needs")


class Step(NamedTuple):
    """One script.

    Attributes:
        name: Its name on the page.
        command: What Python runs, with arguments.
        minutes: On two idle cores.
        quick: Arguments for ``--quick`` in place of those of ``command``; None if it takes too long even so.
        quick_minutes: Minutes then.
        needs: What it needs beyond this environment; such a script runs only if it is named.
    """

    name: str
    command: str
    minutes: int
    quick: str | None = None
    quick_minutes: int = 0
    needs: str = ""


STEPS = (
    Step("operators.py", "operators.py", 6, "--only bare", 2),
    Step("providers.py", "providers.py", 25, "2 --held-only", 6),
    Step("side_by_side.py", "side_by_side.py", 10, "1", 4),
    Step("scale.py", "scale.py", 12, "2000 20000", 2),
    Step("places.py sleep", "places.py sleep", 2, "--rounds 1", 1),
    Step("places.py overhead", "places.py overhead", 12, "--cells 5000", 1),
    Step("page_weight.py", "page_weight.py", 4),
    Step("recovery.py", "recovery.py", 1, "", 1),
    Step("recovery_native.py", "recovery_native.py", 1, "", 1),
    Step("tensors.py", "tensors.py", 2, "", 2),
    Step("restarts.py", "restarts.py", 5),
    Step("foreign.py", "foreign.py", 3, "", 3),
    Step("odd_models", "-m benchmarks.odd_models", 1, "", 1),
    Step("stale_outputs.py", "stale_outputs.py", 3),
    Step("busy.py", "busy.py", 5),
    Step("weak_goldens.py", "weak_goldens.py", 3),
    Step("night_to_night.py", "night_to_night.py", 3),
    Step("store.py", "store.py", 45, "10", 1),
    Step("store_engines.py", "store_engines.py", 20),
    Step("real_folder.py", "real_folder.py", 240, needs="26 GB of disk"),
    Step("check_finds.py", "check_finds.py", 20),
    Step("trace_faults.py", "trace_faults.py 44", 15),
    Step("compare_speed.py", "compare_speed.py", 120),
    Step("triage planted", "-m benchmarks.triage planted", 60),
    Step("triage deep", "-m benchmarks.triage deep", 3),
    Step("triage flaky", "-m benchmarks.triage flaky", 5),
    Step("triage resume", "-m benchmarks.triage resume", 5),
    Step("triage bundles", "-m benchmarks.triage bundles", 5),
    Step("fuzzing", "-m benchmarks.fuzzing", 15),
    Step("judging.py", "judging.py", 4, "--sample 50", 3),
    Step("planted", "-m benchmarks.planted --out {scratch}/planted.json", 20),
    Step("generation", "-m benchmarks.generation --out {scratch}/generation.json", 10),
    Step("oracle.py", "oracle.py", 6),
    Step("places_killed.py", "places_killed.py", 30, needs="root, Slurm, a network namespace"),
)
"""In the order in which they run."""


def main(arguments: list[str] | None = None) -> int:
    """Measure what is asked for; 1 where a figure is not what it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="what fits into 25 minutes")
    parser.add_argument("--only", action="append", choices=[step.name for step in STEPS], metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the scripts, and run none")
    parser.add_argument("--page", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    steps = [step for step in STEPS if _is_chosen(step, chosen.only, quick=chosen.quick)]
    if chosen.list:
        for step in steps:
            minutes = step.quick_minutes if chosen.quick else step.minutes
            print(f"{step.name:20} {minutes:4} min  {step.needs}")
        return 0
    failed = [step.name for step in steps if not measure(step, chosen.page, quick=chosen.quick)]
    print(f"not as it should be: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _is_chosen(step: Step, only: list[str] | None, *, quick: bool) -> bool:
    if only:
        return step.name in only
    return step.quick is not None if quick else not step.needs


def measure(step: Step, page: Path, *, quick: bool) -> bool:
    """Run a script, and put what it prints into the page; return whether all is as it should be."""
    with tempfile.TemporaryDirectory() as scratch:
        return _measure(step, page, scratch, quick=quick)


def _measure(step: Step, page: Path, scratch: str, *, quick: bool) -> bool:
    script, *given = shlex.split(step.command.format(scratch=scratch))
    command = ["-m", given.pop(0)] if script == "-m" else [str(HERE / script)]
    if quick and step.quick is not None:
        # The first argument of a script with several kinds of figures chooses one.
        command += [*given[:1], *shlex.split(step.quick)]
    else:
        command += given
    print(f"\n{step.name}", flush=True)
    load, started = os.getloadavg()[0], time.monotonic()
    process = subprocess.run(
        [sys.executable, *command], cwd=HERE.parent, stdout=subprocess.PIPE, check=False, text=True
    )
    print(process.stdout, flush=True)
    print(f"{step.name}: exit code {process.returncode}, {time.monotonic() - started:.0f} s", flush=True)
    loads = f"{load:.1f} before, {os.getloadavg()[0]:.1f} at the end"
    printed, whole = read_printed(process.stdout), not (quick and step.quick)
    for name, title, drawn in pictures(step.name, printed.rows):
        (page.parents[1] / "images" / name).write_text(drawn, encoding="utf-8", newline="\n")
        printed = printed._replace(pictures=(*printed.pictures, (name, title)))
    text = with_measured(page.read_text("utf-8"), step.name, printed, machine(), loads, whole=whole)
    page.write_text(with_steps(text, _HEAD, map(_about, STEPS)), encoding="utf-8", newline="\n")
    return process.returncode == 0


def _about(step: Step) -> tuple[str, ...]:
    quick = "" if step.quick is None else f"{step.quick_minutes} min"
    return f"`{step.name}`", str(step.minutes), quick, step.needs


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
