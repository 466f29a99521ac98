"""Commands of the harness, each in a fork of a process that has imported them; how each ended."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

LIMIT_S = 180.0
"""Seconds for a command, on a machine that may be busy; most take less than two."""

ADDRESS_BYTES = 8 << 30
"""What a command and its processes may have each, so that no fault ends the machine; far above the bound."""

SERVER = """
import importlib, json, os, pathlib, resource, signal, sys, time
from harness.cli import main
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)

def child(asked):
    os.setsid()
    os.chdir(asked["folder"])
    os.environ.update(asked["env"])
    resource.setrlimit(resource.RLIMIT_AS, (asked["address_bytes"],) * 2)
    for descriptor, name in ((0, os.devnull), (1, asked["out"]), (2, asked["err"])):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), descriptor)
    if profiles := os.environ.get("MUTATION_PROFILES"):
        import harness.annex.conformance.verify.verification as module
        module.profiles_folder = lambda: pathlib.Path(profiles)
    try:
        sys.exit(main(asked["arguments"]))
    finally:
        used = resource.getrusage(resource.RUSAGE_SELF)
        with open(asked["used"], "w") as file:
            json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss], file)

while line := sys.stdin.readline():
    asked = json.loads(line)
    if (pid := os.fork()) == 0:
        break
    until, pause = time.monotonic() + asked["limit_s"], 0.002
    while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < until:
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    if not ended[0]:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    print(json.dumps(os.waitstatus_to_exitcode(ended[1]) if ended[0] else None), flush=True)
else:
    sys.exit()
child(asked)
"""
IMPORTED = (
    *("onnx", "harness.cli.run", "harness.cli.results", "harness.annex.conformance.command_verify"),
    "harness.annex.triage.command_replay",
    *("harness.cli.listing", "harness.cli.judge", "harness.engine.engine", "harness.report.report_files"),
)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended.

    Attributes:
        code: Its exit code, or minus a signal; None if it was killed at the limit.
        out: What it printed.
        err: Likewise, on the other stream.
        processor_s: Seconds of its own process, without those that it started.
        peak_mib: Memory of its own process, at most.
    """

    code: int | None
    out: str
    err: str
    processor_s: float
    peak_mib: float


class Commands:
    """The process that forks. Args: home, a folder for what commands print."""

    def __init__(self, home: Path) -> None:
        self._home = home
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads cannot be forked
        environment.pop("COLUMNS", None)
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, json.dumps(IMPORTED)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, arguments: tuple[str, ...], folder: Path, **env: str) -> Ended:
        """Run a command in a folder, with these variables beside those of this process."""
        files = {name: self._home / name for name in ("out", "err", "used")}
        for path in files.values():
            path.unlink(missing_ok=True)
        asked: dict[str, Any] = {
            **{name: str(path) for name, path in files.items()},
            "arguments": arguments,
            "folder": str(folder),
            "env": env,
            "limit_s": LIMIT_S,
            "address_bytes": ADDRESS_BYTES,
        }
        assert self._process.stdin is not None  # noqa: S101 - for mypy
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())
        used = json.loads(files["used"].read_text("utf-8")) if files["used"].exists() else [0.0, 0]
        per_mib = 1 << (20 if sys.platform == "darwin" else 10)
        printed = {name: files[name].read_text("utf-8", errors="replace") for name in ("out", "err")}
        return Ended(code=code, processor_s=used[0], peak_mib=used[1] / per_mib, **printed)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def commands(home: Path) -> Iterator[Commands]:
    """Give commands, and end their process."""
    found = Commands(home)
    try:
        yield found
    finally:
        found.close()
