"""Leases: the commands that the matrix has around the life of a place."""

import threading
from collections.abc import Callable
from pathlib import Path

from harness.places.listing import run_command
from harness.places.state import PlaceState
from harness.plan.places import NAME, Places

OnLeased = Callable[[PlaceState, str], None]
"""Called from another thread once a place is acquired, or with why it is not."""


class Leases:
    """Acquires and releases the places of a target: each release belongs to one acquisition.

    Args:
        places: The commands.
        on_leased: Called with each place that was asked for.
        warn: Called with a line for people.
    """

    def __init__(self, places: Places, on_leased: OnLeased, warn: Callable[[str], None]) -> None:
        self._places = places
        self._on_leased = on_leased
        self._warn = warn
        self._lock = threading.Lock()
        self._held: set[str] = set()
        self._busy: dict[str, threading.Thread] = {}
        self._closed = False

    def holds(self, state: PlaceState) -> bool:
        """Return whether a place may be used; if not, begin to acquire it."""
        if not self._places.acquire:
            return True
        with self._lock:
            if state.name in self._held:
                return state.name not in self._busy
            if state.name not in self._busy and not self._closed:
                self._start(state.name, lambda: self._acquire(state))
            return False

    def give_back(self, state: PlaceState) -> None:
        """Release a place, in the background; harmless if it is not held."""
        with self._lock:
            if state.name in self._held and state.name not in self._busy and not self._closed:
                self._start(state.name, lambda: self._release(state.name))

    def close(self) -> None:
        """Release all places, and wait for that."""
        with self._lock:
            self._closed = True
            busy = tuple(self._busy.values())
        for thread in busy:
            thread.join(self._places.limit_s + 5.0)
        with self._lock:
            held, self._held = tuple(self._held), set()
        last = [threading.Thread(target=self._run_release, args=(name,), daemon=True) for name in held]
        for thread in last:
            thread.start()
        for thread in last:
            thread.join(self._places.limit_s + 5.0)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        thread = self._busy[name] = threading.Thread(target=work, daemon=True)
        thread.start()

    def _acquire(self, state: PlaceState) -> None:
        # Held from now on: what a command that fails or hangs has done is undone, too.
        with self._lock:
            self._held.add(state.name)
        ended = self._run(self._places.acquire, state.name)
        problem = f"`acquire`: {ended}" if ended else ""
        if problem:
            self._release(state.name)
        else:
            self._end(state.name)
        self._on_leased(state, problem)

    def _release(self, name: str) -> None:
        with self._lock:
            self._held.discard(name)
        self._run_release(name)
        self._end(name)

    def _run_release(self, name: str) -> None:
        ended = self._run(self._places.release, name) if self._places.release else ""
        if ended:
            self._warn(f"place {name} was not released: {ended}")

    def _end(self, name: str) -> None:
        with self._lock:
            self._busy.pop(name, None)

    def _run(self, command: tuple[str, ...], name: str) -> str:
        words = tuple(word.replace(NAME, name) for word in command)
        return run_command(words, self._places.limit_s, Path(self._places.folder)).problem
