"""Peak memory of the processes below a command, by what they have loaded. Linux only."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_EVERY_S = 0.2
_ONNX = "onnx_cpp2py"
_LIBRARIES = {
    "Qnn": "QNN",
    "webgpu": "WebGPU",
    "openvino": "OpenVINO",
    _ONNX: "converters and references",
    "onnxruntime": "CPU EP",
}
"""Part of a library's file name -> the kind of process; the first that is mapped decides."""


@contextmanager
def watched(parent: int) -> Iterator[Mapping[str, float]]:
    """Yield a table that fills meanwhile: kind of process -> the largest peak of resident memory in MB.

    Resident memory includes the pages of mapped files. Processes that end within a fifth of a second may be
    missed.
    """
    over = threading.Event()
    peaks: dict[int, float] = {}
    kinds: dict[int, str] = {}
    found: dict[str, float] = {}

    def look() -> None:
        while not over.wait(_EVERY_S):
            for process in _below(parent):
                with suppress(OSError):
                    kind, peak_mb = _kind(process), _peak_mb(process)
                    if peak_mb:  # it has not ended meanwhile
                        kinds[process], peaks[process] = kind, peak_mb
            found.clear()
            for process, kind in kinds.items():
                found[kind] = max(found.get(kind, 0.0), peaks[process])

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _below(parent: int) -> set[int]:
    """Return the processes below another one."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            _, above, *_ = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(above)
    below, size = {parent}, 0
    while len(below) > size:
        size = len(below)
        below |= {process for process, above in parents.items() if above in below}
    return below - {parent}


def _peak_mb(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def _kind(process: int) -> str:
    command = Path(f"/proc/{process}/cmdline").read_bytes()
    if b"harness\0run" in command:
        return "harness"
    own = command.partition(b"bare_loop.py")[1]  # it reads test data with onnx
    maps = Path(f"/proc/{process}/maps").read_text(encoding="utf-8", errors="replace")
    return next(
        (kind for part, kind in _LIBRARIES.items() if part in maps and not (own and part == _ONNX)), "others"
    )
