"""What the benchmarks share: whole processes and how long they take, targets, tables.

Time is wall time from a process's start to its exit, imports and all; Python's bytecode is one of the caches
that are warm, whatever PYTHONDONTWRITEBYTECODE and the installer of the packages think of it. pytest loads no
plugin that is not named: what else happens to be installed takes its time with or without the harness.
Progress goes to stderr, and to stdout rows of Markdown, as they stand in docs/reference/benchmarks.md. POSIX.
"""

import atexit
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from harness.corpus.caches.cache import cache_root
from harness.corpus.suites.suites import open_suite
from harness.engine.processes.launch import interpreter
from harness.plan.target import Runtime

HERE = Path(__file__).resolve().parent
FOUR = HERE / "four_providers.toml"
"""The matrix of whatever is measured on a real provider."""
MODELS = "onnx-node"
CRASHING = {"qnn-htp": ("test_stft*",)}
"""Models that end the process of a bare loop."""
PLUGIN = ("-p", "ep_harness")
"""Arguments of pytest that load the harness's plugin."""
OUTPUT_SHOWN = 2000
FOLDERS = tempfile.TemporaryDirectory()
"""Where processes run, until the benchmark ends. For minutes after files were removed, ext4 looks at each of
their inodes again whenever it makes a file: 2 of the 150 billion cycles of a run of the four targets."""
atexit.register(FOLDERS.cleanup)
UNEXPECTED = 1  # exit code of pytest and of ep-harness where the matrix was run, and a result is news


class Timed(NamedTuple):
    """A process's wall time, from its start to its exit, processor time with its children's, its output."""

    seconds: float
    processor_s: float
    printed: str


class Bare(NamedTuple):
    """A bare loop: seconds of its whole process, on the clock and of processors, and of the loop alone on the
    clock; models tried, run, right."""

    process_s: float
    processor_s: float
    loop_s: float
    models: int
    ran: int
    right: int


def timed(
    command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, codes: tuple[int, ...] = (0,)
) -> Timed:
    """Run a process in an empty folder, and end everything where its exit code is not one of these."""
    folder = tempfile.mkdtemp(dir=FOLDERS.name)
    before_s = _children_s()
    started = time.perf_counter()
    process = subprocess.run(
        command,
        cwd=folder,
        env=_environment() | dict(env or {}),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    took_s = time.perf_counter() - started
    printed = process.stdout.decode("utf-8", "replace")
    if process.returncode not in codes:
        sys.exit(f"{printed[-OUTPUT_SHOWN:]}\nexit code {process.returncode}: {command}")
    return Timed(took_s, _children_s() - before_s, printed)


def _children_s() -> float:
    """Processor seconds of all processes that were waited for, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    own = {"PYTHONPYCACHEPREFIX": str(cache_root() / "bytecode"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return own | {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def targets() -> dict[str, dict[str, Any]]:
    """The four targets, as the matrix has them, by name."""
    with FOUR.open("rb") as file:
        return {table["name"]: table for table in tomllib.load(file)["target"]}


def python_of(target: Mapping[str, Any]) -> list[str]:
    """Return the command of the Python that has a target's packages."""
    runtime = target.get("runtime", {})
    return [*interpreter(Runtime(**runtime | {"packages": tuple(runtime.get("packages", ()))}))]


def bare(
    target: Mapping[str, Any], *, hold: bool, folder: Path | None = None, skip: Sequence[str] = ()
) -> Bare:
    """Run the bare loop of a target over a folder, by default ONNX's operator tests; see bare_loop.py."""
    command: list[str | Path] = [
        *python_of(target),
        HERE / "bare_loop.py",
        folder or open_suite(MODELS).root,
        json.dumps(target),
        *(["--hold"] * hold),
    ]
    for glob in (*CRASHING.get(target["name"], ()), *skip):
        command += ["--skip", glob]
    process = timed(command, env=target.get("env"))
    # Providers print, too.
    line = next(line for line in process.printed.splitlines() if line.startswith('{"loop_s"'))
    return Bare(process.seconds, process.processor_s, *json.loads(line).values())


def bare_at_once(targets: Sequence[Mapping[str, Any]], *, hold: bool) -> Timed:
    """Run several bare loops that are started at once, until the last of them has ended."""
    before_s, started = _children_s(), time.perf_counter()
    with ThreadPoolExecutor(len(targets)) as pool:
        for _ in pool.map(lambda target: bare(target, hold=hold), targets):
            pass
    return Timed(time.perf_counter() - started, _children_s() - before_s, "")


def harness(target_glob: str = "*") -> Timed:
    """Run ``ep-harness run`` with these of the four targets, over ONNX's operator tests."""
    return _run(target_glob, "run")


def usable() -> list[str]:
    """Names of those of the four targets that can be used on this machine; to find out, they are run."""
    out = Path(FOLDERS.name) / "usable"
    _run("*", out)
    found = json.loads((out / "run.json").read_text(encoding="utf-8"))["targets"]
    return [name for name, environment in found.items() if "unavailable" not in environment]


def _run(target_glob: str, out: str | Path) -> Timed:
    command: list[str | Path] = [sys.executable, "-m", "harness", "run", FOUR, "--target", target_glob]
    command += ["--model", f"{MODELS}/*", "--out", out, "--no-report"]
    return timed(command, codes=(0, UNEXPECTED))


def progress(text: str) -> None:
    """Say how far it is, to people."""
    print(text, file=sys.stderr, flush=True)


def row(*cells: object) -> None:
    """Print a row of a Markdown table."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def heading(*cells: str) -> None:
    """Print the head of a Markdown table whose first column is text and whose others are figures."""
    row(*cells)
    print("|---|" + "---:|" * (len(cells) - 1), flush=True)


def verdict(what: str, figure: float, limit: float, *, at_least: bool = False) -> bool:
    """Say whether a figure is within its limit."""
    met = figure >= limit if at_least else figure <= limit
    bound = "at least" if at_least else "at most"
    print(f"{what}: {figure:.3g}, {bound} {limit:g} wanted: {'met' if met else 'MISSED'}", flush=True)
    return met
