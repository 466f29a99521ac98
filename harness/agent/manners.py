"""The manners of a provider: unexpected changes that it makes to its process.

They are checked after a session is created, after its runs and after its end. A model's changes are undone
before the next one, so that nothing later is blamed for them; if that fails, the process is replaced.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from typing import Any

from harness.agent.orphans import OWNER
from harness.agent.posix import kill_process, read_at
from harness.agent.process_figures import descriptors, figure
from harness.agent.process_state import CHEAP, DEAR, OTHERS
from harness.agent.safe_text import clean
from harness.agent.target_errors import NotWatchedError

PRINTED_MIB = 1.0
"""Output of one model from which on a provider counts as flooding."""

MEMORY_MIB = 1000.0
"""Peak memory that one model, or loading a library, may take, whatever its size."""

MEMORY_TIMES = 32
"""Additional memory, as a multiple of the size of the model and its values."""

STREAK = 3
"""Number of sessions in a row after each of which more threads, or descriptors, were left.

Things created once, or at first use, cause no such row: with OpenVINO, QNN and WebGPU it has at most one
session.
"""

DESCRIPTORS = 16
"""Number of descriptors that one cell may leave after its session. WebGPU leaves up to 4, once."""

CLOSE_CELLS = 16
"""Number of first cells of a process that are watched completely; all are, once one of them had a manner."""

EVERY = 8
"""Later only one in so many cells is watched completely; a complete check exceeds a small model's time."""

_SHOWN = 3
"""Files and processes that are named."""

_OWN_FILES = re.compile(
    r"output\.txt|tensors|(?:models|profiles|scratch)-.*|[a-z]{1,20}-[0-9]{1,20}|ep-harness.*"
)
"""Files that the harness and its agent write into the folder of a process."""

_KEPT = ("signals", "environment")
"""Changes that a library made while it was loaded, and may need: they are reported, and stay."""

_SEEN_LATE = ("signals", "limits", "files", "processes")
"""Kinds that are not checked in every cell."""

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux

_LOOKS, _LOOK_S = 5, 0.01
"""How often, and after how many seconds, the variables of a process are looked at that shows none."""


class Manners:
    """Compares the process with its state before the provider came.

    Later, with that before the present model.
    """

    def __init__(self) -> None:
        self.watches: list[Any] = []
        self.not_watched: list[str] = []
        """What this system does not report, for the fingerprint."""
        for watch in (*CHEAP, *OTHERS, *DEAR):
            try:
                self.watches.append(watch())
            except (NotWatchedError, OSError, AttributeError) as error:
                self.not_watched.append(clean(error))
        self.folder = os.getcwd()
        self.base = [watch.read() for watch in self.watches]
        self.seen = list(self.base)
        self.files = self._files()
        self.children_of: int | None = None
        if figure("VmHWM") is None:
            self.not_watched += ["the peak of memory", "threads"]
        if descriptors() is None:
            self.not_watched.append("the number of descriptors")
        self._watch_children()
        self.children = self._children()
        self.found: list[tuple[str, str, str]] = []
        """``(kind, phase, text)`` of the present model's changes; each kind once."""
        self.most_kib = _most_kib()
        self.cells = 0
        self.unseen = 0
        """Cells since the last one that was watched completely."""
        self.is_dear = True
        """Whether the present cell is watched completely."""
        self.has_some = False
        self.peak = _mib("VmHWM")
        self.own_mib = _mib("RssAnon")
        self.counts = counts()
        self.rows = dict.fromkeys(self.counts, 0)
        """Number of sessions in a row after which there were more of each."""

    def _watch_children(self) -> None:
        """Become the parent of orphans of the provider's processes, so that they are seen, on Linux."""
        try:
            import ctypes

            self.children_of = os.open("/proc/self/task/%d/children" % os.getpid(), os.O_RDONLY)
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        except (OSError, AttributeError):
            self.not_watched.append("processes left behind, before the end of this one")

    def allow(self, entries: dict[str, str]) -> None:
        """Accept changes that session options request: onnxruntime then flushes denormals to zero."""
        if entries.get("session.set_denormal_as_zero") != "1":
            return
        for at, watch in enumerate(self.watches):
            if watch.kind == "fp_control":
                watch.flush_is_asked = True
                self.base[at] = self.seen[at] = watch.read()

    def settle(self) -> None:
        """Accept the changes of the provider's library as the normal state, and report them later."""
        self.look("register")
        self._look_at_files("register")
        self._look_at_children("register")
        grown = _mib("RssAnon") - self.own_mib
        if grown > MEMORY_MIB:
            self.note("memory", "register", "it took %.1f GiB of memory" % (grown / 1024))
        self._restore(_KEPT)
        for watch in self.watches:
            if hasattr(watch, "rebase"):
                watch.rebase()
        self.base = [watch.read() for watch in self.watches]
        self.seen = list(self.base)
        self.peak, self.most_kib = _mib("VmHWM"), _most_kib()
        self.counts = counts()

    def look(self, phase: str, *, cheap: bool = False) -> None:
        """Note changes since the last check, as far as this cell is watched.

        Only the cheap part with ``cheap``.
        """
        for at, watch in enumerate(self.watches):
            # The most expensive ones come last.
            if (cheap and type(watch) not in CHEAP) or (not self.is_dear and type(watch) in DEAR):
                break
            now = watch.read()
            if now != self.seen[at]:
                if now != self.base[at]:
                    self.note(watch.kind, phase, watch.told(self.base[at], now))
                self.seen[at] = now

    def note(self, kind: str, phase: str, text: str) -> None:
        """Note one finding, unless the model already has one of this kind."""
        self.has_some = True
        if self.unseen and kind in _SEEN_LATE:
            text += ", in this cell or one of the %d before it" % self.unseen
        if all(known != kind for known, _, _ in self.found):
            self.found.append((kind, phase, clean(text, limit=300)))

    def printed(self, nbytes: int) -> None:
        """Count the output of the present model."""
        if nbytes > PRINTED_MIB * (1 << 20):
            self.note("printed", "run", "it printed %.1f MiB" % (nbytes / (1 << 20)))

    def close(self, job: dict[str, Any], result: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the fields for the message about the end of a cell, and what could not be undone.

        The cell's session is closed. The fields have the model's changes, and threads and descriptors if they
        were counted; the second value is empty if everything was undone.
        """
        self.look("teardown", cheap=not self.is_dear)
        self._look_at_memory(job, result)
        told: dict[str, Any] = {}
        risen = False
        if self.is_dear:
            self._look_at_files("teardown")
            self._look_at_children("teardown")
            risen = self._look_at_counts()
            told.update(self.counts)
        sick = self._restore() if any(now != old for now, old in zip(self.seen, self.base)) else ""
        if self.found:
            told["manners"], self.found = self.found, []
        self.unseen = 0 if self.is_dear else self.unseen + 1
        self.cells += 1
        watched = self.cells < CLOSE_CELLS or self.has_some or risen
        self.is_dear = watched or self.unseen >= EVERY - 1
        return told, sick

    def _restore(self, but: tuple[str, ...] = ()) -> str:
        """Undo changes; return in words what remains."""
        left = ""
        for at, watch in enumerate(self.watches):
            if self.seen[at] == self.base[at] or watch.kind in but:
                continue
            watch.restore(self.base[at])
            self.seen[at] = watch.read()
            if self.seen[at] != self.base[at]:
                left = left or watch.told(self.base[at], self.seen[at])
        return left

    def _files(self) -> set[str]:
        with contextlib.suppress(OSError):
            return {name for name in os.listdir(self.folder) if not _OWN_FILES.fullmatch(name)}
        return set()

    def _look_at_files(self, phase: str) -> None:
        files = self._files()
        new = sorted(files - self.files)
        self.files |= files
        if new:
            shown = ", ".join(clean(name, limit=60) for name in new[:_SHOWN])
            more = " and %d more" % (len(new) - _SHOWN) if len(new) > _SHOWN else ""
            self.note("files", phase, "it wrote into the working directory: %s%s" % (shown, more))

    def _children(self) -> set[int]:
        if self.children_of is None:
            return set()
        with contextlib.suppress(OSError):
            return set(map(int, read_at(self.children_of, 65536).split()))
        return set()

    def _look_at_children(self, phase: str) -> None:
        children = self._children()
        new = sorted(children - self.children)
        self.children = children
        left = [(name, state) for name, state in map(_about, new) if state not in ("Z", "X", "")]
        if left:
            names = ", ".join(name for name, _ in left[:_SHOWN])
            self.note("processes", phase, "it left a process behind: %s" % names)

    def _look_at_memory(self, job: dict[str, Any], result: dict[str, Any]) -> None:
        most = _most_kib()  # the memory that the harness held before it started this process counts, too
        if most == self.most_kib:
            return
        self.most_kib = most
        before, self.peak = self.peak, _mib("VmHWM")
        grown = self.peak - before
        if grown > MEMORY_MIB:
            size = _size_mib(job, result)
            if grown > MEMORY_MIB + MEMORY_TIMES * size:
                text = "its memory rose by %.1f GiB at its peak; the model and its values have %.1f MiB"
                self.note("memory", "run", text % (grown / 1024, size))

    def _look_at_counts(self) -> bool:
        """Return whether there are more than before; only cells in a row show what each leaves."""
        now = counts(again=False)
        risen = False
        for name, count in now.items():
            more = count - self.counts.get(name, count)
            risen |= more > 0
            self.rows[name] = self.rows.get(name, 0) + 1 if more > 0 and not self.unseen else 0
            many = name == "descriptors" and more >= DESCRIPTORS and not self.unseen
            if self.rows[name] >= STREAK or many:
                told = "after its session there were %d %s, %d more than before it" % (count, name, more)
                self.note("leftovers", "teardown", told)
        self.counts = now
        return risen

    def end_children(self) -> None:
        """Kill the provider's remaining processes that lack the variable by which the harness finds them."""
        owner = ("%s=%s" % (OWNER, os.environ.get(OWNER, ""))).encode()
        for pid in self._children():
            with contextlib.suppress(OSError):
                if _about(pid)[1] not in ("Z", "X", "") and owner not in _variables(pid).split(b"\0"):
                    kill_process(pid)


def _variables(pid: int) -> bytes:
    """Return the variables of a process; one that begins its program shows them a little later."""
    for _ in range(_LOOKS):
        with open("/proc/%d/environ" % pid, "rb") as file:
            variables = file.read(1 << 20)
        if variables:
            return variables
        time.sleep(_LOOK_S)
    return b""


def counts(*, again: bool = True) -> dict[str, int]:
    """Return how many threads and descriptors the process has, as far as the system reports them."""
    found = {"threads": figure("Threads", again=again), "descriptors": descriptors()}
    return {name: count for name, count in found.items() if count is not None}


def _most_kib() -> int:
    """Return a number that rises with the peak of memory, in a microsecond; 0 if the system has none."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _mib(name: str, *, again: bool = True) -> float:
    return (figure(name, again=again) or 0) / 1024


def _about(pid: int) -> tuple[str, str]:
    """Return the name of a process, and the letter of its state; empty if it has ended."""
    with contextlib.suppress(OSError):
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            name, _, rest = file.read().rpartition(")")
        return clean(name.partition("(")[2], limit=60), rest.split()[0]
    return "", ""


def _size_mib(job: dict[str, Any], result: dict[str, Any]) -> float:
    """Return the MiB of a model with the files beside it, and of its inputs and outputs."""
    model = job.get("model")
    total = len(model) if isinstance(model, bytes) else 0
    with contextlib.suppress(OSError, TypeError):
        folder = os.path.dirname(str(model))
        total += sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())
    values = [wire for inputs in job.get("data_sets", ()) for _, wire in inputs]
    values += [wire for outputs in result.get("outputs", ()) for wire in outputs]
    return (total + sum(map(_value_bytes, values))) / (1 << 20)


def _value_bytes(wire: Any) -> int:
    if not isinstance(wire, dict):
        return 0
    if "sequence" in wire:
        return sum(map(_value_bytes, wire["sequence"]))
    if "shape" not in wire:
        return 0
    elements = 1
    for size in wire["shape"]:
        elements *= size
    return elements * 8
