"""Large tensors between the harness and its agents on this machine: each is written once, and mapped.

A pipe and a message copy data several times, and a message has a size limit. So a tensor of at least
``FILE_FROM`` bytes travels as a file: in memory if the system has a file system there (``/dev/shm``), else in
the worker's own folder. The receiver maps the file and deletes it at once. Both sides are
``harness.agent.tensor_files.TensorFiles``. This module creates the folders. It removes files that a worker
leaves, and folders that a run leaves.

A process that shortens a mapped file could kill the harness. A broken provider alone cannot do that: the file
has no name any more, and the agent has no descriptor of it.
"""

import contextlib
import shutil
import stat
import tempfile
import weakref
from pathlib import Path
from typing import Any

import filelock

from harness.agent.system import is_closed_to_others
from harness.agent.target_errors import UnfeedableError
from harness.agent.tensor_files import FILE_FROM, TensorFiles, array_bytes
from harness.core.values.value import BITS, STRING, Sequence, Tensor, Value, from_wire, to_wire

MEMORY = Path("/dev/shm")  # noqa: S108 - folders made there have unique names and are closed to others
"""A file system in memory that every user may write to; only on Linux."""

PREFIX = "ep-harness-"


class Tensors(TensorFiles):
    """Carries a worker's tensors in both directions.

    Args:
        folders: Folders of this worker alone, the first choice first; none for a remote worker, whose tensors
            travel inside the messages.
    """

    def __init__(self, folders: tuple[Path, ...] = ()) -> None:
        super().__init__([str(folder) for folder in folders], "in", "the inputs")

    @property
    def nbytes(self) -> int:
        """Bytes of the latest message, with its files."""
        return self.file_bytes + self.inline_bytes

    def put(self, value: Value) -> Any:
        """Return the wire form of a value; large tensors are written to files.

        Raises:
            NoRoomError: There is no room for them.
        """
        return self.send(_uncopied(value))

    def take(self, wire: Any) -> Value:
        """Return the value of a wire form; arrays of large tensors are read-only views of their files.

        Raises:
            ValueError: Its form is another one, or a file cannot be read or does not fill its shape.
        """
        try:
            self.receive(wire)
        except UnfeedableError as error:
            raise ValueError(str(error)) from error
        return from_wire(wire)

    def remove(self) -> None:
        """Delete the folders, with files that were not received."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


class TensorHome:
    """The folder of one run, in memory if possible, that contains its workers' folders.

    A killed run leaves its folder, which takes memory. The next run of the same user deletes folders whose
    lock is free: a lock ends with its process. Folders of other users, to which links may lead, are not
    opened.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        with contextlib.suppress(OSError):  # it does not exist, or may not be written
            self._folder, lock = _open_home()
            self._end = weakref.finalize(self, _close_home, self._folder, lock)

    def open(self, scratch: Path) -> Tensors:
        """Create the folders of a worker, whose scratch folder has a name unique in the run.

        Raises:
            OSError: Even the scratch folder cannot be written.
        """
        folders = [scratch / "tensors"]
        folders[0].mkdir()
        if self._folder is not None:
            with contextlib.suppress(OSError):  # deleted meanwhile, as systemd does when a user logs out
                (self._folder / scratch.name).mkdir()
                folders.insert(0, self._folder / scratch.name)
        return Tensors(tuple(folders))

    def close(self) -> None:
        """Delete the folder in memory; the owner deletes the scratch folders."""
        if self._folder is not None:
            self._end()


def _open_home() -> tuple[Path, filelock.BaseFileLock]:
    _sweep()
    new = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=MEMORY))
    lock = filelock.FileLock(new / "lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
        # Other runs search for this name, and must find the lock taken. Another user may have taken the name.
        return new.rename(MEMORY / new.name.removeprefix(".")), lock
    except OSError:
        _close_home(new, lock)
        raise


def _close_home(folder: Path, lock: filelock.BaseFileLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()


def _sweep() -> None:
    """Delete the folders of runs that have ended."""
    for folder in MEMORY.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # it is locked, or gone
            if is_closed_to_others(folder) and stat.S_ISREG((folder / "lock").lstat().st_mode):
                with filelock.FileLock(folder / "lock", timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)


def _uncopied(value: Value) -> Any:
    """Return the wire form of a value without copying large tensors."""
    if isinstance(value, Sequence):
        return {"sequence": [_uncopied(item) for item in value.items]}
    if isinstance(value, Tensor) and value.array.nbytes >= FILE_FROM and value.dtype not in {STRING, *BITS}:
        return {"dtype": value.dtype, "shape": list(value.array.shape), "data": array_bytes(value.array)}
    return to_wire(value)
