"""The files of a process beyond versions: digests of its libraries, versions of drivers.

A library rebuilt at the same path with the same version is another one: its digest shows this. A digest is
computed once for each state of a file. The harness keeps the reported digests, and passes them to the next
process.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import os
import re
import sys
import time
from collections.abc import Iterable
from typing import Any

from harness.agent.system import sha256_of

DRIVERS = "/sys/module/*/version"
ACCELERATORS = (
    *("nvidia", "amdgpu", "amdxdna", "i915", "xe", "intel_vpu"),
    *("habanalabs", "qaic", "drv_davinci", "rknpu", "hailo_pci", "apex"),
)
"""Kernel modules of accelerators that have their own version, by their makers' names."""

NVIDIA = "/proc/driver/nvidia/version"
_MOST_BYTES = 256
_LIBRARIES = ("*onnxruntime*provider*", "onnxruntime_pybind11_state*", "libonnxruntime.*", "onnxruntime.dll")
"""Names of onnxruntime's own libraries."""

MOST_HASHED = 2 << 30
"""Largest number of bytes of all libraries of a process that are read; beyond it their size replaces the
digest."""

MOST_LIBRARIES = 500
LIBRARY_SETTLED_NS = 2_000_000_000
"""Age from which the state of a file is trusted: clocks of file systems are coarse."""

_RECORDED = re.compile(r"^(onnxruntime/(?:capi/[^,\n]*|__init__\.py)),sha256=([\w-]+),", re.MULTILINE)


class FileDigests:
    """SHA-256 of files. ``known``: path -> state of the file, and its digest then."""

    def __init__(self, known: dict[str, list[str]]) -> None:
        self.known = known
        self.used: dict[str, list[str]] = {}
        """The digests requested here; no state if it cannot be trusted yet."""
        self._hashed = 0

    def of(self, path: str) -> str:
        """Return the digest of a file, empty if it cannot be read; beyond the limit, its size."""
        if path in self.used:
            return self.used[path][1]
        try:
            status = os.stat(path)
            times = status.st_mtime_ns, status.st_ctime_ns
            state = "%d %d %d %d" % (status.st_size, *times, status.st_ino)
            kept = self.known.get(path, ["", ""])
            digest = kept[1] if kept[0] == state else self._read(path, status.st_size)
        except OSError:
            return ""
        is_settled = max(times) < time.time_ns() - LIBRARY_SETTLED_NS
        self.used[path] = [state if is_settled else "", digest]
        return digest

    def _read(self, path: str, size: int) -> str:
        self._hashed += size
        return sha256_of(path) if self._hashed <= MOST_HASHED else "%d bytes" % size

    def table(self, paths: Iterable[str]) -> dict[str, str]:
        """Return base name -> digest.

        Of several files with one name, all but the first include their folder.
        """
        found: dict[str, str] = {}
        for path in paths:
            name = os.path.basename(path)
            if name in found:
                name = "%s/%s" % (os.path.basename(os.path.dirname(path)), name)
            digest = self.of(path)
            if digest:
                found[name] = digest
        return found


def own_libraries(ort: Any) -> list[str]:
    """Return the paths of onnxruntime's own libraries."""
    folder = os.path.join(os.path.dirname(getattr(ort, "__file__", None) or ""), "capi")
    return sorted({path for name in _LIBRARIES for path in glob.glob(os.path.join(folder, name))})


def altered(ort: Any, digests: FileDigests) -> list[str]:
    """Return the files of onnxruntime that differ from its wheel's RECORD; none if there is no RECORD.

    If several distributions own ``onnxruntime``, any of them may have written a file.
    """
    home = os.path.dirname(os.path.dirname(getattr(ort, "__file__", None) or ""))
    recorded: dict[str, set[str]] = {}
    for path in glob.glob(os.path.join(home, "onnxruntime*.dist-info", "RECORD")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            for name, digest in _RECORDED.findall(file.read().replace("\\", "/")):
                recorded.setdefault(name, set()).add(digest)
    found = []
    for name, written in recorded.items():
        digest = digests.of(os.path.join(home, *name.split("/")))
        if digest and not digest.endswith("bytes") and _as_recorded(digest) not in written:
            found.append(name)
    return sorted(found)


def _as_recorded(digest: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")


def mapped() -> list[str] | None:
    """Return the paths of the libraries in this process, sorted; None if unknown."""
    try:
        if sys.platform == "win32":
            found = _mapped_by_windows()
        elif sys.platform == "darwin":
            found = _mapped_by_macos()
        else:
            found = _mapped_by_linux()
    except (OSError, AttributeError, ValueError):
        return None
    return sorted({path for path in found if os.path.isfile(path) and "lib-dynload" not in path})


def _mapped_by_linux() -> list[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        parts = [line.rstrip("\n").split(None, 5) for line in file]
    return [part[5] for part in parts if len(part) > 5 and "x" in part[1]]  # noqa: PLR2004 - the sixth column


def _mapped_by_macos() -> list[str]:
    import ctypes

    name_of = ctypes.CDLL(None)["_dyld_get_image_name"]
    name_of.restype = ctypes.c_char_p
    names = map(name_of, map(ctypes.c_uint32, range(ctypes.CDLL(None)["_dyld_image_count"]())))
    return [os.fsdecode(name) for name in names if name]


def _mapped_by_windows() -> list[str]:
    import ctypes

    kernel, here = ctypes.WinDLL("kernel32"), ctypes.c_void_p(-1)  # type: ignore[attr-defined, unused-ignore]
    modules, needed = (ctypes.c_void_p * 4096)(), ctypes.c_ulong()
    if not kernel.K32EnumProcessModules(here, modules, ctypes.sizeof(modules), ctypes.byref(needed)):
        return []
    count = min(len(modules), needed.value // ctypes.sizeof(ctypes.c_void_p))
    text = ctypes.create_unicode_buffer(32768)
    read = kernel.GetModuleFileNameW
    return [text.value for module in modules[:count] if read(ctypes.c_void_p(module), text, len(text))]


def describe_build(
    ort: Any, fingerprint: dict[str, Any], before: list[str] | None, digests: FileDigests
) -> None:
    """Add the digests of the plugin library, of onnxruntime, and of libraries loaded since ``before``.

    ``altered`` lists files of onnxruntime that differ from its wheel's.
    """
    plugin = (fingerprint.get("plugin") or {}).get("library", "")
    now = mapped()
    if now is None or before is None:
        fingerprint["mapped"] = "not known here"
    came = [path for path in now or () if path not in (before or ())]
    paths: dict[str, str] = {}
    for path in [*([plugin] if plugin else []), *own_libraries(ort), *came]:
        paths.setdefault(os.path.realpath(path), path)
    fingerprint["sha256"] = digests.table(list(paths.values())[:MOST_LIBRARIES])
    changed = altered(ort, digests)
    if changed:
        fingerprint["altered"] = changed


def drivers() -> dict[str, str]:
    """Return the versions of drivers of accelerators, by the name of their kernel module."""
    found = {
        path.split("/")[-2]: _text(path)
        for path in sorted(glob.glob(DRIVERS))
        if path.split("/")[-2] in ACCELERATORS
    }
    nvidia = _text(NVIDIA)
    if nvidia:
        found["nvidia"] = nvidia
    return found


def _text(path: str) -> str:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(_MOST_BYTES).decode("utf-8", "replace").split("\n")[0].strip()
    return ""
