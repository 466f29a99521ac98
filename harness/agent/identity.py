"""What tells whether two machines are equal beyond versions: the provider's library and the drivers."""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
from typing import Any

from harness.agent.system import sha256_of

DRIVERS = "/sys/module/*/version"
ACCELERATORS = (
    *("nvidia", "amdgpu", "amdxdna", "i915", "xe", "intel_vpu"),
    *("habanalabs", "qaic", "drv_davinci", "rknpu", "hailo_pci", "apex"),
)
"""Kernel modules of accelerators, as their makers name them, that give a version of their own."""

NVIDIA = "/proc/driver/nvidia/version"
MOST_BYTES = 256
LIBRARIES = ("*onnxruntime*provider*", "onnxruntime_pybind11_state*")


def identity(ort: Any, plugin: str) -> dict[str, Any]:
    """Return the SHA-256 of the plugin library or, without one, of the build, and versions of drivers."""
    folder = os.path.join(os.path.dirname(getattr(ort, "__file__", None) or ""), "capi")
    built = [glob.glob(os.path.join(folder, name)) for name in LIBRARIES]
    digests = {}
    for path in [plugin] if plugin else sorted(itertools.chain(*built)):
        with contextlib.suppress(OSError):
            digests[os.path.basename(path)] = sha256_of(path)
    return {"sha256": digests, "drivers": drivers()}


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
        return file.read(MOST_BYTES).decode("utf-8", "replace").split("\n")[0].strip()
    return ""
