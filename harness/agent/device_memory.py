"""Device memory that this process holds, according to the kernel's DRM drivers or NVIDIA's NVML.

onnxruntime's Python API does not report the memory of a provider's allocators.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from typing import Any

# A driver reports an open device as "drm-memory-vram: 1024 KiB" or, newer ones, as "drm-resident-vram:".
_REGION = re.compile(r"drm-(resident|memory)-([\w-]+):\s*(\d+)\s*(KiB|MiB|)")
_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20}
_HOST_REGIONS = re.compile(r"gtt|cpu|system\d*|stolen.*|shared|active|purgeable")
NVML = {"linux": "libnvidia-ml.so.1", "win32": "nvml.dll"}
UNKNOWN_MEMORY = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE, such as under Windows' display driver model
_MOST_PROCESSES = 256


def device_mib() -> float | None:
    """Return the MiB on all devices; None if no driver counts them."""
    counts = of_drm("/proc/self/fdinfo"), of_nvml(load_nvml(), os.getpid())
    found = [count for count in counts if count is not None]
    return round(sum(found) / (1 << 20), 2) if found else None


def of_drm(folder: str) -> int | None:
    """Return the bytes on devices with a DRM driver; None if this process has none open.

    Format: Documentation/gpu/drm-usage-stats.rst of Linux. Host memory mapped by a device counts as host
    memory, not here.
    """
    clients: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    for name in names:
        with contextlib.suppress(OSError):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                text = file.read(65536)
            facts = dict(re.findall(r"^(drm-[\w-]+):\s*(\S+)", text, re.MULTILINE))
            if "drm-client-id" in facts:
                # A duplicated descriptor of a device shows up twice, with one client id.
                client = clients.setdefault((facts.get("drm-pdev", ""), facts["drm-client-id"]), {})
                for kind, region, count, unit in _REGION.findall(text):
                    client.setdefault(kind, {})[region] = int(count) * _BYTES[unit]
    if not clients:
        return None
    regions = (client.get("resident") or client.get("memory") or {} for client in clients.values())
    return sum(
        size for sizes in regions for region, size in sizes.items() if not _HOST_REGIONS.fullmatch(region)
    )


class Process(ctypes.Structure):
    """``nvmlProcessInfo_t`` of NVML's version 3."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def load_nvml() -> Any:
    """Return NVIDIA's library, which comes with the driver; None if there is none."""
    try:
        return ctypes.CDLL(NVML[sys.platform])
    except (OSError, KeyError):
        return None


def of_nvml(nvml: Any, pid: int) -> int | None:
    """Return the bytes on NVIDIA's devices; None if NVML does not list this process, as in a container."""
    if nvml is None:
        return None
    try:
        if nvml.nvmlInit_v2():
            return None
        try:
            return _on_nvidia(nvml, pid)
        finally:
            nvml.nvmlShutdown()
    except AttributeError:  # the driver is too old to have these functions
        return None


def _on_nvidia(nvml: Any, pid: int) -> int | None:
    devices = ctypes.c_uint(0)
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(devices)):
        return None
    total = None
    for index in range(devices.value):
        device = ctypes.c_void_p()
        if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)):
            continue
        count = ctypes.c_uint(_MOST_PROCESSES)
        processes = (Process * _MOST_PROCESSES)()
        if nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), processes):
            continue
        for process in processes[: count.value]:
            if process.pid == pid and process.used != UNKNOWN_MEMORY:
                total = (total or 0) + process.used
    return total
