"""What tells whether two machines are equal beyond versions: the provider's library and the drivers."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
from typing import Any

DRIVERS = "/sys/module/*/version"
ACCELERATORS = (
    "nvidia",
    "amdgpu",
    "amdxdna",
    "i915",
    "xe",
    "intel_vpu",
    "habanalabs",
    "qaic",
    "drv_davinci",
    "rknpu",
    "hailo_pci",
    "apex",
)
"""Kernel modules of accelerators, as their makers name them, that give a version of their own."""

NVIDIA = "/proc/driver/nvidia/version"
MOST_BYTES = 256
BLOCK_BYTES = 1 << 20


def identity(ort: Any, plugin: str) -> dict[str, Any]:
    """Return the SHA-256 of libraries, and versions of drivers.

    Args:
        ort: The module onnxruntime.
        plugin: Path of the plugin library; empty for a provider of the build.
    """
    folder = os.path.join(os.path.dirname(getattr(ort, "__file__", None) or ""), "capi")
    built = [*glob.glob(os.path.join(folder, "*onnxruntime*provider*")), *glob.glob(_of_python(folder))]
    paths = [plugin] if plugin else sorted(built)
    digests = {os.path.basename(path): sha256(path) for path in paths}
    drivers = {
        path.split("/")[-2]: _text(path)
        for path in sorted(glob.glob(DRIVERS))
        if path.split("/")[-2] in ACCELERATORS
    }
    nvidia = _text(NVIDIA)
    if nvidia:
        drivers["nvidia"] = nvidia
    return {"sha256": {name: digest for name, digest in digests.items() if digest}, "drivers": drivers}


def sha256(path: str) -> str:
    """Return the SHA-256 of a file; empty if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while True:
                block = file.read(BLOCK_BYTES)
                if not block:
                    return digest.hexdigest()
                digest.update(block)
    except OSError:
        return ""


def _of_python(folder: str) -> str:
    return os.path.join(folder, "onnxruntime_pybind11_state*")


def _text(path: str) -> str:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(MOST_BYTES).decode("utf-8", "replace").split("\n")[0].strip()
    return ""
