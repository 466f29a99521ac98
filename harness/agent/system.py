"""Services of the operating system: limits, memory, processors, folders and time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any

from harness.agent.posix import read_at, user_id

PARENT = "EP_HARNESS_PARENT"  # variable with the harness's process id, if it is on the same machine
_PR_SET_PDEATHSIG = 1
try:
    STATM: int | None = os.open("/proc/self/statm", os.O_RDONLY)  # kept open: read after each session
except OSError:  # no Linux
    STATM = None
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

CPU_FEATURES = (
    *("amx_tile", "amx_bf16", "amx_fp16", "amx_int8", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx512f"),
    *("avx_vnni", "avx_ne_convert", "avx2", "fma", "f16c"),
    *("asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2", "svebf16", "sme"),
)
"""Features of processors for which a library chooses another arithmetic, by their names in Linux."""

_MACOS_FEATURES = {
    "asimd": (b"hw.optional.AdvSIMD", b"hw.optional.neon"),
    "asimdhp": (b"hw.optional.arm.FEAT_FP16",),
    "asimddp": (b"hw.optional.arm.FEAT_DotProd",),
    "bf16": (b"hw.optional.arm.FEAT_BF16",),
    "i8mm": (b"hw.optional.arm.FEAT_I8MM",),
    "sme": (b"hw.optional.arm.FEAT_SME",),
    "avx2": (b"hw.optional.avx2_0",),
    "avx512f": (b"hw.optional.avx512f",),
    "fma": (b"hw.optional.fma",),
    "f16c": (b"hw.optional.f16c",),
}
"""Feature -> its name on macOS."""


def die_with(parent: str) -> None:
    """Have Linux kill this process when its parent dies, whatever it is doing.

    Otherwise the end of the pipe ends the process only if its interpreter can run: a provider that hangs with
    the GIL held would keep its device. It works only if the harness is the direct parent, not behind a
    wrapper, in a container or on another machine.
    """
    if sys.platform == "linux" and parent == str(os.getppid()):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        if parent != str(os.getppid()):  # the parent has already died
            os._exit(1)


def limit_memory(limit_mb: int | None) -> None:
    """Limit the address space, if the system can, so that a runaway allocation fails only here."""
    if limit_mb and sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit_mb << 20, limit_mb << 20))


def resident_mib() -> float | None:
    """Return this process's resident memory in MiB (on macOS its peak); None if it is unknown."""
    try:
        if sys.platform == "win32":
            import struct

            # PROCESS_MEMORY_COUNTERS: two DWORDs (its size, page faults), then SIZE_Ts: the greatest working
            # set, the working set now, and six others.
            counters = ctypes.create_string_buffer(struct.calcsize("II8N"))
            ask = ctypes.WinDLL("kernel32").K32GetProcessMemoryInfo
            this_process = ctypes.c_void_p(-1)
            if not ask(this_process, counters, len(counters)):
                return None
            resident = int(struct.unpack("II8N", counters.raw)[3])
        elif sys.platform == "darwin":
            import resource

            resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes here
        else:
            if STATM is None:
                return None
            resident = int(read_at(STATM, 64).split()[1]) * _PAGE_BYTES
    except OSError:  # such as a system without /proc
        return None
    return round(resident / (1 << 20), 2)


def is_closed_to_others(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder belongs to this user, is no link, and cannot be changed or read by other users.

    Windows keeps temporary folders and caches of users apart, and has no such bits.

    Raises:
        OSError: There is none.
    """
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode):
        return False
    return os.name != "posix" or (about.st_uid == user_id() and not about.st_mode & 0o077)


def new_folder(prefix: str) -> str:
    """Create a folder in this process's own, and return its path."""
    # tempfile would do, but its import takes 4 ms of the 120 that a start takes.
    folder = os.path.join(os.getcwd(), prefix + os.urandom(8).hex())
    os.mkdir(folder, 0o700)
    return folder


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """Make a temporary folder in this process's own; files still in use are deleted with the process."""
    import shutil

    folder = new_folder("scratch-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def processor(cpuinfo: str = "/proc/cpuinfo") -> dict[str, Any]:
    """Return the processor's model, if known, and how many processors this process may use."""
    model = ""
    if sys.platform == "win32":
        model = os.environ.get("PROCESSOR_IDENTIFIER", "")
    elif sys.platform == "darwin":
        text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
        with contextlib.suppress(OSError, AttributeError):
            ask = ctypes.CDLL(None).sysctlbyname
            if ask(b"machdep.cpu.brand_string", text, ctypes.byref(size), None, ctypes.c_size_t(0)) == 0:
                model = text.value.decode("utf-8", "replace")
    else:
        # Linux has no model names of Arm processors.
        with contextlib.suppress(OSError), open(cpuinfo, encoding="utf-8", errors="replace") as file:
            model = next((line.partition(":")[2] for line in file if line.startswith("model name")), "")
    known = features(cpuinfo)
    found: dict[str, Any] = {"model": model.strip(), "count": usable_processors()}
    return found if known is None else {**found, "features": known}


def features(cpuinfo: str = "/proc/cpuinfo") -> list[str] | None:
    """Return the features of the processor that change numerics, by their names in Linux; None if unknown.

    Windows has no list of them.
    """
    if sys.platform == "win32":
        return None
    if sys.platform == "darwin":
        return _features_of_macos()
    with contextlib.suppress(OSError), open(cpuinfo, encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, listed = line.partition(":")
            if key.strip() in ("flags", "Features"):
                has = frozenset(listed.split())
                return [name for name in CPU_FEATURES if name in has]
    return None


def _features_of_macos() -> list[str] | None:
    """Ask macOS for the features that it knows; None if it answers none."""
    found, answered = [], False
    for name, keys in _MACOS_FEATURES.items():
        for key in keys:
            value, size = ctypes.c_int64(0), ctypes.c_size_t(8)
            with contextlib.suppress(OSError, AttributeError):
                ask = ctypes.CDLL(None).sysctlbyname
                if ask(key, ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)) == 0:
                    answered = True
                    if value.value and name not in found:
                        found.append(name)
    return found if answered else None


def usable_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file; ``hashlib.file_digest`` is newer than Python 3.9."""
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def elapsed_ms(started: float) -> float:
    """Return the milliseconds since ``started`` on the performance counter."""
    return round((time.perf_counter() - started) * 1000, 4)
