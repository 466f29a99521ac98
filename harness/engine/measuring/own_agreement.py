"""Functions of a matrix that compare answers: each call in its own process, with a time limit.

The engine's thread never waits for one. A function that raises, hangs, ends its process or returns no valid
figure costs only that figure.
"""

import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.core.agreement.agreement import Agreement
from harness.core.text.errors import one_line
from harness.core.values.value import STRING, Array, NamedValues, Tensor, leaves_of
from harness.engine.measuring import agree_runner
from harness.engine.measuring.agree_runner import REQUEST, RESULT
from harness.runtimes.process_group import kill_group

_LIMIT_S = 60.0
"""Seconds that a function may take for one cell, including its imports."""

MOST_LATE = 3
"""Number of cells for which a function may exceed its limit; after that it is not called any more."""

MOST_CELLS_WAITING = 64
"""Number of cells waiting for a function from which on no further ones start: they hold their outputs."""

_LARGEST_RESULT = 1 << 20
_SIDES = ("golden", "actual")
_NATIVE_KINDS = "biufcU"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call: the function's name, and the outputs of all data sets on both sides."""

    function: str
    golden: Sequence[NamedValues]
    actual: Sequence[NamedValues]


OnEnd = Callable[[tuple[Agreement, ...]], None]


class OwnFunctions:
    """Calls functions one after another, in a thread.

    Args:
        folder: The folder where their modules are searched first: that of the matrix.
        post: Queues a call for the engine's thread.
        warn: Called once for each function that fails, from any thread.
        limit_s: Seconds for one call.
    """

    def __init__(
        self,
        folder: Path,
        post: Callable[..., None],
        warn: Callable[[str], None],
        limit_s: float = _LIMIT_S,
    ) -> None:
        self.waiting = 0
        """Number of cells without their figure. The engine's thread alone writes it."""
        self._folder, self._post, self._warn, self._limit_s = folder, post, warn, limit_s
        self._calls: queue.SimpleQueue[tuple[tuple[Call, ...], OnEnd] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._running: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._slow: Counter[str] = Counter()
        self._warned: set[str] = set()

    def ask(self, calls: tuple[Call, ...], on_end: OnEnd) -> None:
        """Make calls, then call ``on_end`` with their figures in the engine's thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="ep-harness-agree", daemon=True)
            self._thread.start()
        self.waiting += 1
        self._calls.put((calls, on_end))

    def close(self) -> None:
        """Kill the running call; no further figure comes."""
        self._closing.set()
        self._calls.put(None)
        running = self._running
        if running is not None:
            kill_group(running)

    def _serve(self) -> None:
        while (asked := self._calls.get()) is not None:
            calls, on_end = asked
            found = tuple(map(self._figure, calls))
            self._post(self._end, on_end, found)

    def _end(self, on_end: OnEnd, found: tuple[Agreement, ...]) -> None:
        self.waiting -= 1
        on_end(found)

    def _figure(self, call: Call) -> Agreement:
        """Return the figure of one call; if anything goes wrong, the figure has the reason."""
        try:
            return self._called(call)
        except Exception as error:  # noqa: BLE001 - it costs this figure alone
            return self._failed(call.function, f"{type(error).__name__}: {error}")

    def _called(self, call: Call) -> Agreement:
        if self._slow[call.function] >= MOST_LATE:
            return self._failed(call.function, f"it has exceeded {self._limit_s:g} s {MOST_LATE} times")
        with tempfile.TemporaryDirectory(prefix="ep-harness-agree-", ignore_cleanup_errors=True) as made:
            home = Path(made)
            _write(home, call, self._folder)
            why = self._run(home, call.function)
            file = home / RESULT
            if why or not file.is_file():
                return self._failed(call.function, why or "it ended without a result")
            if file.stat().st_size > _LARGEST_RESULT:
                return self._failed(call.function, "it returned more than a figure")
            found = figure_of(call.function, json.loads(file.read_bytes()), len(call.golden))
        return self._failed(call.function, found.failed) if found.failed else found

    def _run(self, home: Path, function: str) -> str:
        """Run the process to its end; return why it gave no result, if known."""
        command = [sys.executable, agree_runner.__file__, str(home)]
        with (home / "printed").open("wb") as printed:
            popen = subprocess.Popen(  # noqa: S603 - the matrix names the function
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                cwd=self._folder,
                start_new_session=os.name == "posix",
            )
            self._running = popen
            try:
                if self._closing.is_set():
                    return "the run has ended"
                code = popen.wait(self._limit_s)
            except subprocess.TimeoutExpired:
                self._slow[function] += 1
                return f"it found no end within {self._limit_s:g} s"
            finally:
                kill_group(popen)  # it may have started other processes
                popen.wait()
                self._running = None
        if code == 0:
            return ""
        words = (home / "printed").read_bytes()[-4096:].decode("utf-8", "replace").split("\n")
        last = next((line for line in reversed(words) if line.strip()), "")
        return f"its process ended with code {code}" + (f": {last}" if last else "")

    def _failed(self, function: str, why: str) -> Agreement:
        told = one_line(why)
        if function not in self._warned and not self._closing.is_set():
            self._warned.add(function)
            self._warn(f"agree: {function}: {told}")
        return Agreement(output="", kind=function, failed=told)


def figure_of(function: str, told: Any, sets: int) -> Agreement:
    """Return the summed figure from a function's results for each data set, or why there is none.

    A figure is a share from 0 to 1, or a pair of whole numbers, ``(same, of)``.
    """
    figure = Agreement(output="", kind=function)
    if not isinstance(told, dict) or not isinstance(told.get("returned"), list):
        why = told.get("error") if isinstance(told, dict) else None
        return msgspec.structs.replace(figure, failed=one_line(why or "it ended without a result"))
    if len(told["returned"]) != sets:
        return msgspec.structs.replace(figure, failed="it ended without a result")
    same: float = 0
    of = 0
    for returned in told["returned"]:
        match returned:
            case [int() as one, int() as count] if 0 <= one <= count and not _has_bool(one, count):
                same, of = same + one, of + count
            case (int() | float()) as one if not _has_bool(one) and math.isfinite(one) and 0 <= one <= 1:
                same, of = same + one, of + 1
            case _:
                why = f"it returned {one_line(returned, 60)}, and neither a share from 0 to 1 nor (same, of)"
                return msgspec.structs.replace(figure, failed=why)
    return msgspec.structs.replace(figure, same=same, of=of)


def _has_bool(*numbers: object) -> bool:
    return any(isinstance(one, bool) for one in numbers)


def _write(home: Path, call: Call, folder: Path) -> None:
    """Write the values in numpy's format, without pickle; names are in the request."""
    sets = []
    for index, pair in enumerate(zip(call.golden, call.actual, strict=True)):
        names: dict[str, list[str]] = {}
        for side, values in zip(_SIDES, pair, strict=True):
            arrays = {name: _native(part) for name, part in leaves_of(values) if part is not None}
            names[side] = list(arrays)
            numbered = {f"a{at}": array for at, array in enumerate(arrays.values())}
            np.savez(home / f"{side}_{index}.npz", allow_pickle=False, **numbered)
        sets.append(names)
    request = {"function": call.function, "path": str(folder), "sets": sets}
    (home / REQUEST).write_text(json.dumps(request), encoding="utf-8")


def _native(part: Tensor) -> Array:
    """Return an array of a type that numpy has: narrow floats as float32, narrow integers as int8."""
    if part.dtype == STRING:
        return part.array.astype(str)
    if part.array.dtype.kind in _NATIVE_KINDS and part.array.dtype.isbuiltin == 1:
        return part.array
    if part.dtype.startswith(("float", "bfloat")):
        return part.array.astype(np.float32)
    return part.array.astype(np.uint8 if part.dtype.startswith("uint") else np.int8)
