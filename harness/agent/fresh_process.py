"""A second agent on the same target, in its own process, started by the first one.

It is the same program from the same sources and uses the same messages, over its standard input and output.
It ends when the first one ends. If it crashes, the first one ends in the same way. So the harness, which
monitors only the first one, sees the crash and its phase.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from harness.agent.bootstrap import BOOTSTRAP, program
from harness.agent.frame import FrameReader, framed, write_all
from harness.agent.session_target import SessionTarget
from harness.agent.stream import Stream
from harness.agent.system import PARENT, scratch_folder
from harness.agent.target_errors import UnsupportedError
from harness.agent.tensor_files import TensorFiles

_GRACE_S = 5.0  # seconds to end by itself after its job
_OUTPUT_LIMIT = 16384  # bytes of its last output that are passed on
_START = "from harness.agent.fresh_process import serve_pipe; serve_pipe()"


class FreshProcessError(Exception):
    """The fresh process did not serve although it did not crash."""


def serve_afresh(
    target: SessionTarget, job: dict[str, Any], enter: Callable[[str], None], *, dies_with_it: bool = True
) -> dict[str, Any]:
    """Let a fresh process serve a job for a model in a file; ``enter`` reports its phases.

    The result has the data of large outputs.

    Raises:
        FreshProcessError: It gave no result; also if it crashes, unless this process ``dies_with_it``.
        UnsupportedError: This Python cannot start another.
    """
    with scratch_folder() as folder, fresh_python(_START) as fresh:
        try:
            result = _exchange(fresh.pipe, target, job, folder, enter)
        except (OSError, EOFError):
            code = fresh.process.wait()
            os.write(2, fresh.printed())
            if code and not dies_with_it:
                raise FreshProcessError("the process died: %s" % _end_in_words(code)) from None
            if code:
                _die_as(code)
            raise FreshProcessError("the fresh process ended without a message") from None
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                fresh.process.wait(_GRACE_S)
            return result


class FreshPython:
    """Another Python that runs this agent's modules; its standard input and output are for messages."""

    def __init__(self, process: Any, output: Any) -> None:
        self.process = process
        self.output = output
        self.pipe = Pipe(process.stdout, process.stdin)

    def printed(self) -> bytes:
        """Return the last of what it has printed."""
        self.output.seek(max(0, self.output.seek(0, os.SEEK_END) - _OUTPUT_LIMIT))
        printed: bytes = self.output.read()
        return printed


@contextlib.contextmanager
def fresh_python(start: str) -> Iterator[FreshPython]:
    """Start another Python that runs ``start`` with this agent's modules; it is killed in the end.

    Raises:
        UnsupportedError: This Python cannot start another.
    """
    if not sys.executable:
        raise UnsupportedError("this Python does not know its own path, so it cannot start a fresh process")
    with scratch_folder() as folder, open(os.path.join(folder, "output.txt"), "a+b") as output:
        process = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
            [sys.executable, "-u", "-c", BOOTSTRAP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env={**os.environ, PARENT: str(os.getpid())},
        )
        fresh = FreshPython(process, output)
        try:
            with contextlib.suppress(OSError):  # it has died: what is read from it tells
                fresh.pipe.writer.write(program(start))
            yield fresh
        finally:
            process.kill()
            process.wait()
            for end in (fresh.pipe.reader, fresh.pipe.writer):
                with contextlib.suppress(OSError):  # nobody reads the buffered rest
                    end.close()


def _exchange(
    pipe: Pipe, target: SessionTarget, job: dict[str, Any], folder: str, enter: Callable[[str], None]
) -> dict[str, Any]:
    """Send the configuration and the job, and return the result."""
    files = TensorFiles([folder], "in", "the inputs")
    data_sets = [[(name, files.send(wire)) for name, wire in inputs] for inputs in job["data_sets"]]
    pipe.send(("config", {**target.config, "tensor_folders": [folder]}))
    pipe.send(("job", 0, {**job, "data_sets": data_sets}))
    while True:
        kind, *rest = pipe.receive()
        if kind in ("imported", "digests", "ready"):
            enter("create")
        elif kind == "phase":
            enter(rest[1])
        elif kind == "result":
            result: dict[str, Any] = rest[1]
            for outputs in [*result.get("outputs", ()), result.get("second") or ()]:
                for wire in outputs:
                    files.receive(wire)
            enter("teardown")
        elif kind == "done":
            pipe.send(("stop",))
            return result
        else:
            raise FreshProcessError("a fresh process cannot use the target: %s: %s" % tuple(rest[:2]))


def _end_in_words(code: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return "exit code %d" % code


def _die_as(code: int) -> None:
    """End this process in the way another one ended; ``code`` is from ``subprocess``."""
    if code < 0:
        with contextlib.suppress(OSError, ValueError):  # SIGKILL cannot be caught anyway
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code - (1 << 32) if code >> 31 else code)  # a Windows status such as 0xC0000005 fits no C int


class Pipe:
    """Sends and receives messages without a separate thread."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self.reader = reader
        self.writer = writer
        self.frames = FrameReader(reader.read1)

    def send(self, message: Any) -> None:
        """Send a message."""
        self.writer.write(framed(message))
        self.writer.flush()

    def receive(self) -> Any:
        """Return the next message.

        Raises:
            EOFError: The other end is closed.
            FreshProcessError: The message cannot be read.
        """
        try:
            return self.frames.message()
        except ValueError as error:
            raise FreshProcessError("a fresh process sent an unreadable message") from error


def serve_pipe() -> None:
    """Serve as the fresh process, over standard input and output."""
    from harness.agent.agent import main

    messages = os.fdopen(message_descriptor(), "wb", buffering=0)

    # It ends with its pipe at once, whatever it is doing.
    source: Any = sys.stdin.buffer  # a BufferedReader
    stream = Stream(FrameReader(source.read1), functools.partial(write_all, messages.write), grace_s=0.0)
    main(stream)
    stream.finish()


def message_descriptor() -> int:
    """Return a descriptor for messages; what is printed goes to standard error from now on.

    Providers print to descriptor 1, so messages need their own.
    """
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor
