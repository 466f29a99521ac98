"""Runs on a real Slurm and behind a real network, in which something is killed all the time.

A target has four places behind ``srun``, two devices on each of two nodes, and two behind ssh in a network
namespace of their own. Every two seconds something fails, chosen by a seed: an agent, a launcher, an ``srun``
or an ``ssh`` gets SIGKILL. Once in each run a node loses its power, another time it freezes for longer than a
place may be silent, or the network of the namespace is cut for that long.

Each cell must have one record, that of a healthy provider; only cells in flight may run again; and a place
without a network must be set aside within a minute.

Debian as root: slurm-wlm, openssh-server, iproute2. Exit code 1: a figure is not what it should be.
"""

import argparse
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import onnx
import onnx.parser
from fake import FAKE, MODEL

from harness.core.records.verdict import Verdict
from harness.engine.engine import Engine
from harness.engine.prepare import prepare
from harness.engine.tasks.events import Finished, PlaceChanged

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "slurm"))

NAP_S = 0.5
EVERY_S = 2.0
SILENCE_S = 60.0
"""How long a node freezes, or a network is cut: longer than a place may be silent."""

FIRST_S = 6.0
"""When the large failure of a run happens."""

ASIDE_LIMIT_S = 60.0
PLACES_LOST = 2
"""Places that one failure may cost at most: those of a node, or of the namespace."""

LARGE = ("power", "freeze", "network")
ADDRESS, OURS, SPACE, NODE = "10.231.77.2", "10.231.77.1", "epkilled", "n2"

MATRIX = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "fake"
provider = "CUDAExecutionProvider"
places = [
    {places}
]
[target.env]
PYTHONPATH = {fake!r}
PYTHONDONTWRITEBYTECODE = "1"
FAKE_NAP = "{nap_s}"
EP_HARNESS_CACHE = {far!r}
"""


class Round(msgspec.Struct):
    """What one run shows."""

    records: Counter[str]
    verdicts: Counter[Verdict]
    repeated: int = 0
    set_aside: int = 0
    far_aside_s: float | None = None
    wall_s: float = 0.0


class Failures:
    """Makes things fail until it is closed."""

    def __init__(self, slurm: Any, chosen: random.Random, large: str) -> None:
        self.count = 0
        self.cut_at: float | None = None
        self._slurm, self._chosen, self._large = slurm, chosen, large
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        large = threading.Thread(target=self._fail_greatly, daemon=True)
        large.start()
        while not self._over.wait(EVERY_S):
            if victims := sorted(victims_of(os.getpid())):
                with suppress(ProcessLookupError):
                    os.kill(self._chosen.choice(victims), signal.SIGKILL)
                    self.count += 1
        large.join()

    def _fail_greatly(self) -> None:
        if self._over.wait(FIRST_S):
            return
        self.count += PLACES_LOST
        if self._large == "power":
            self._slurm.kill_node(NODE)
            self._over.wait(SILENCE_S / 4)
            self._revive()
        elif self._large == "freeze":
            self._slurm.signal_node(NODE, signal.SIGSTOP)
            self._over.wait(SILENCE_S)
            self._slurm.kill_node(NODE)
            self._revive()
        else:
            self.cut_at = time.monotonic()
            ip("link", "set", "epk0", "down")
            self._over.wait(SILENCE_S)
            ip("link", "set", "epk0", "up")

    def _revive(self) -> None:
        with suppress(RuntimeError):  # it may be back already, and then cannot be resumed
            self._slurm.revive_node(NODE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--cells", type=int, default=160)
    given = parser.parse_args()
    cluster: Any = importlib.import_module("slurm_cluster")
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slurm").mkdir()
        slurm = cluster.Slurm(folder / "slurm", ("n1", NODE))
        os.environ.update(slurm.environment)
        try:
            slurm.start()
            with box(folder):
                matrix = make(folder, given.cells)
                for seed in range(1, given.rounds + 1):
                    good &= play(slurm, matrix, seed, given.cells)
                    slurm.clear()
        finally:
            slurm.stop()
    return not good


def play(slurm: Any, matrix: Path, seed: int, cells: int) -> bool:
    """Run once while things fail; whether every record is as in a quiet run."""
    large = LARGE[seed % len(LARGE)]
    failures = Failures(slurm, random.Random(seed), large)  # noqa: S311 - a seed makes it repeatable
    try:
        seen = run(matrix, lambda: failures.cut_at)
    finally:
        failures.close()
    once = set(seen.records.values()) == {1} and len(seen.records) == cells
    blamed = seen.verdicts.total() - seen.verdicts[Verdict.PASS]
    in_time = large != "network" or (seen.far_aside_s is not None and seen.far_aside_s <= ASIDE_LIMIT_S)
    aside = "" if seen.far_aside_s is None else f", set aside {seen.far_aside_s:.0f} s after the cut"
    print(
        f"seed {seed}, {large}: {failures.count} failures, {seen.set_aside} times set aside, {seen.repeated} "
        f"cells repeated, each recorded once: {once}, verdicts but pass: {blamed}, "
        f"{seen.wall_s:.0f} s{aside}",
        flush=True,
    )
    return once and not blamed and in_time and seen.repeated <= PLACES_LOST * failures.count


def run(matrix: Path, cut_at: Callable[[], float | None]) -> Round:
    """Run a matrix to its end."""
    plan, suites = prepare(matrix)
    engine = Engine(plan, suites)
    seen, began = Round(Counter(), Counter()), time.monotonic()
    try:
        engine.submit(plan.cells)
        engine.drain()
        for event in engine.events():
            if isinstance(event, Finished):
                seen.records[event.record.cell] += 1
                seen.verdicts[event.record.verdict] += 1
                seen.repeated += event.record.attempt > 1
            elif isinstance(event, PlaceChanged) and event.state == "set aside":
                seen.set_aside += 1
                at = cut_at()
                if at is not None and event.place.startswith("far"):
                    # The first one may have been killed at the cut; the last one was silent.
                    seen.far_aside_s = seen.far_aside_s or time.monotonic() - at
    finally:
        engine.close()
    seen.wall_s = time.monotonic() - began
    return seen


def victims_of(parent: int) -> set[int]:
    """Return launchers, agents, ``srun`` and ``ssh`` below a process."""
    below, found = {parent}, set[int]()
    rows = [*_processes()]
    while grown := {pid for pid, above, _ in rows if above in below} - below:
        below |= grown
    for pid, _, command in rows:
        if b"slurmstepd" in command or b"sshd" in command or command.startswith((b"slurm", b"munge")):
            continue
        if (pid in below and pid != parent) or b"closefd" in command:
            found.add(pid)
    return found


def _processes() -> Iterator[tuple[int, int, bytes]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, above, *_ = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            command = (path.parent / "cmdline").read_bytes()
            if state != "Z" and command:
                yield int(path.parent.name), int(above), command


@contextmanager
def box(folder: Path) -> Iterator[None]:
    """Start a server for ssh in a network namespace; meanwhile ``ssh box`` reaches it."""
    home = folder / "ssh"
    home.mkdir()
    for key in ("host", "user"):
        subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", home / key], check=True)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (home / "sshd.conf").write_text(
        f"Port 22\nListenAddress {ADDRESS}\nHostKey {home}/host\nAuthorizedKeysFile {home}/user.pub\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\n"
        "PidFile none\n",
        encoding="utf-8",
    )
    (home / "config").write_text(
        f"Host box\n  HostName {ADDRESS}\n  IdentityFile {home}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {home}/known_hosts\n  StrictHostKeyChecking accept-new\n  ConnectTimeout 10\n",
        encoding="utf-8",
    )
    (home / "bin").mkdir()
    (home / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {program("ssh")} -F {home}/config "$@"\n', "utf-8")
    (home / "bin" / "ssh").chmod(0o755)
    os.environ["PATH"] = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ip("netns", "add", SPACE)
    server = None
    try:
        ip("link", "add", "epk0", "type", "veth", "peer", "name", "epk1", "netns", SPACE)
        ip("addr", "add", f"{OURS}/30", "dev", "epk0")
        ip("link", "set", "epk0", "up")
        for command in (
            ("addr", "add", f"{ADDRESS}/30", "dev", "epk1"),
            ("link", "set", "epk1", "up"),
            ("link", "set", "lo", "up"),
        ):
            ip("-n", SPACE, *command)
        server = subprocess.Popen(
            [program("ip"), "netns", "exec", SPACE, program("sshd"), "-D", "-f", home / "sshd.conf"]
        )
        time.sleep(2.0)
        yield
    finally:
        if server is not None:
            server.terminate()
            server.wait(10)
        ip("netns", "del", SPACE)
        subprocess.run([program("ip"), "link", "del", "epk0"], check=False, stderr=subprocess.DEVNULL)


def ip(*arguments: str) -> None:
    subprocess.run([program("ip"), *arguments], check=True)


def program(name: str) -> str:
    """Return the path of a program of the system."""
    return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") or name


def make(folder: Path, cells: int) -> Path:
    """Write models and a matrix; return the matrix."""
    (folder / "models").mkdir()
    for number in range(cells):
        onnx.save(onnx.parser.parse_model(MODEL), folder / "models" / f"{number:05}_nap_in_run.onnx")
    srun = f"srun --quiet --gres=npu:1 {sys.executable}"
    places = [f'{{ name = "npu-{number}", command = {srun!r} }}' for number in range(1, 5)]
    places += [f'{{ name = "far-{number}", ssh = "box", python = {sys.executable!r} }}' for number in (1, 2)]
    text = MATRIX.format(fake=str(FAKE), nap_s=NAP_S, far=str(folder / "far"), places=",\n    ".join(places))
    (folder / "matrix.toml").write_text(text, encoding="utf-8")
    return folder / "matrix.toml"


if __name__ == "__main__":
    sys.exit(main())
