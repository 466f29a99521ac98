"""Devices and their slots: no device gets more processes than it can hold, whichever run starts them."""

import contextlib
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import filelock
import msgspec

from harness.catalog.catalog import find_provider
from harness.core.records.cell import Cell
from harness.core.text.errors import one_line
from harness.engine.processes.slurm import JOB, allocates
from harness.places.place_state import PlaceState
from harness.plan.target import Runtime, Target

SHARED_HARDWARE = frozenset({"cpu", "cloud"})
"""Hardware that any number of processes may use at once."""

DEVICE_OPTIONS = ("device_id", "device_type")
"""Options by which providers choose among several devices of one kind."""


def devices_at(target: Target, cell: Cell, states: Sequence[PlaceState]) -> dict[str, str | None]:
    """Return place -> the name of the device that a cell's session occupies there.

    Return None if processes may share it.

    Only one run at a time uses a place elsewhere, whatever its device, unless a scheduler assigns it.
    """
    return {state.name: _device_at(target, cell, state) for state in states}


def _device_at(target: Target, cell: Cell, state: PlaceState) -> str | None:
    place = state.place
    if target.device_lock is not None:
        return f"{target.device_lock} at {state.lock}" if target.device_lock else None
    runtime = Runtime(command=place.command) if place.is_elsewhere else target.runtime
    if allocates(runtime):
        return None
    there = msgspec.structs.replace(
        target,
        runtime=Runtime(command=state.lock),
        device={**target.device, **place.device},
    )
    return device_of(there, cell) or (f"place {state.lock}" if place.is_elsewhere else None)


def device_of(target: Target, cell: Cell) -> str | None:
    """Return a name for the device that a cell's session occupies; None if processes may share it freely.

    Two targets with the same name never hold more sessions at once than the device supports. The name comes
    from the matrix alone, because asking the device means using it. Where the guess is wrong, the target's
    ``device_lock`` sets the name.
    """
    if target.device_lock is not None:
        return target.device_lock or None
    if allocates(target.runtime):
        return None  # its scheduler assigns devices
    known = find_provider(target.provider[0])
    hardware = known.hardware if known else target.provider[0]
    options = target.options_at(cell)
    chosen = {
        **target.device,
        **{key: options[key] for key in DEVICE_OPTIONS if key in options},
    }
    if hardware in SHARED_HARDWARE or "CPU" in {value.upper() for value in chosen.values()}:
        return None
    where = target.runtime.ssh or target.runtime.adb or target.runtime.command or here(os.environ)
    return " ".join([hardware, *(f"{key}={value}" for key, value in sorted(chosen.items())), where])


def uses_processor(target: Target, cell: Cell) -> bool:
    """Return whether a cell's session certainly computes on the processor of this machine.

    Two processes may do so at once. A target with a lock of its own or a limit of memory has other limits
    than processors, and so has one whose agent is no Python of this machine.
    """
    runtime = target.runtime
    known = find_provider(target.provider[0])
    return (
        known is not None
        and known.hardware == "cpu"
        and device_of(target, cell) is None
        and target.device_lock is None
        and target.memory_limit_mb is None
        and not (runtime.is_elsewhere or runtime.agent or runtime.node or runtime.browser)
    )


def here(environment: Mapping[str, str]) -> str:
    """Return a name for this machine's devices, or for those that our Slurm job has."""
    job = environment.get(JOB)
    return "here" if job is None else f"here, of Slurm job {one_line(job, 20)}"


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """One process's place on a device, or the whole device."""

    device: str
    locks: tuple[filelock.BaseFileLock, ...]

    def release(self) -> None:
        """Give it back."""
        for lock in self.locks:
            lock.release()


NO_SLOT = Slot(device="", locks=())
"""The slot of a process that occupies no device."""


class Slots:
    """Locks on devices, held as files: they work across processes, and end with the process that holds them.

    The folder of the files is the same for all runs on a machine.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, device: str, count: int) -> Slot | None:
        """Return a free slot of a device that has ``count`` of them, or None if all are taken.

        Raises:
            OSError: The folder cannot be written.
        """
        for number in range(count):
            lock = self._lock(device, number)
            if lock is not None:
                return Slot(device=device, locks=(lock,))
        return None

    def take_all(self, device: str, count: int) -> Slot | None:
        """Return all slots of a device that has ``count`` of them, as one; None if any is taken.

        Raises:
            OSError: The folder cannot be written.
        """
        with contextlib.ExitStack() as undo:
            locks = []
            for number in range(count):
                lock = self._lock(device, number)
                if lock is None:
                    return None
                undo.callback(lock.release)
                locks.append(lock)
            undo.pop_all()
            return Slot(device=device, locks=tuple(locks))

    def _lock(self, device: str, number: int) -> filelock.BaseFileLock | None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Several machines may share the folder: a home folder that all nodes of a cluster mount.
        name = hashlib.sha256(f"{device}\n{platform.node()}".encode()).hexdigest()[:16]
        lock = filelock.FileLock(self._folder / f"{name}.{number}.lock", timeout=0, thread_local=False)
        try:
            lock.acquire()
        except filelock.Timeout:
            return None
        return lock
