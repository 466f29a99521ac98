"""Leases: the matrix's commands that surround the use of a place."""

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.places.place_list import run_command
from harness.places.place_state import PlaceState
from harness.plan.places import NAME, Places

OnLeased = Callable[[PlaceState, str], None]
"""Called from another thread once a place is acquired, or with the reason why it is not."""


class Leases(msgspec.Struct, eq=False):
    """Acquires and releases the places of a target: each release belongs to one acquisition."""

    places: Places
    on_leased: OnLeased
    warn: Callable[[str], None]
    lock: threading.Lock = msgspec.field(default_factory=threading.Lock)
    held: set[str] = set()
    busy: dict[str, threading.Thread] = {}
    closed: bool = False

    def holds(self, state: PlaceState) -> bool:
        """Return whether a place may be used; if not, begin to acquire it."""
        if not self.places.acquire:
            return True
        with self.lock:
            if state.name in self.held:
                return state.name not in self.busy
            if state.name not in self.busy and not self.closed:
                self._start(state.name, lambda: self._acquire(state))
            return False

    def give_back(self, state: PlaceState) -> None:
        """Release a place, in the background; harmless if it is not held."""
        with self.lock:
            if state.name in self.held and state.name not in self.busy and not self.closed:
                self._start(state.name, lambda: self._release(state.name))

    def close(self) -> None:
        """Release all places, and wait for that."""
        with self.lock:
            self.closed = True
            busy = tuple(self.busy.values())
        for thread in busy:
            thread.join(self.places.limit_s + 5.0)
        with self.lock:
            held, self.held = tuple(self.held), set()
        last = [threading.Thread(target=self._run_release, args=(name,), daemon=True) for name in held]
        for thread in last:
            thread.start()
        for thread in last:
            thread.join(self.places.limit_s + 5.0)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        thread = self.busy[name] = threading.Thread(target=work, daemon=True)
        thread.start()

    def _acquire(self, state: PlaceState) -> None:
        # Held from now on: the effects of a command that fails or hangs are undone, too.
        with self.lock:
            self.held.add(state.name)
        ended = self._run(self.places.acquire, state.name)
        problem = f"`acquire`: {ended}" if ended else ""
        if problem:
            self._release(state.name)
        else:
            self._end(state.name)
        self.on_leased(state, problem)

    def _release(self, name: str) -> None:
        with self.lock:
            self.held.discard(name)
        self._run_release(name)
        self._end(name)

    def _run_release(self, name: str) -> None:
        ended = self._run(self.places.release, name) if self.places.release else ""
        if ended:
            self.warn(f"place {name} was not released: {ended}")

    def _end(self, name: str) -> None:
        with self.lock:
            self.busy.pop(name, None)

    def _run(self, command: tuple[str, ...], name: str) -> str:
        words = tuple(word.replace(NAME, name) for word in command)
        return run_command(words, self.places.limit_s, Path(self.places.folder)).problem
