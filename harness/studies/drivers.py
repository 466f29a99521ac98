"""Devices, drivers and browsers of this machine. Loads no library; of programs it starts Node.js alone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.core.text.errors import one_line
from harness.runtimes.installer import InstallError
from harness.runtimes.javascript import BROWSERS, find_browser, find_node


class _Version(msgspec.Struct, frozen=True):
    """Where to find a version: the first group of the pattern, in the first file that matches."""

    what: str
    files: str
    pattern: str


_ANY = r"(\d+(?:\.\d+)+\S*)"
_NVIDIA = (
    _Version("NVIDIA driver", "proc/driver/nvidia/version", rf"Kernel Module.*?\s{_ANY}"),
    _Version("CUDA toolkit", "usr/local/cuda/version.json", rf'"cuda"[^}}]*"version"\s*:\s*"{_ANY}"'),
)
_AMD = (
    _Version("amdgpu driver", "sys/module/amdgpu/version", _ANY),
    _Version("ROCm", "opt/rocm/.info/version", _ANY),
)
_FACTS: dict[str, tuple[_Version, ...]] = {
    "nvidia-gpu": _NVIDIA,
    "amd-gpu": _AMD,
    "gpu": (*_NVIDIA[:1], *_AMD[:1]),
    "amd-npu": (_Version("amdxdna driver", "sys/module/amdxdna/version", _ANY),),
    "ascend-npu": (
        _Version("Ascend driver", "usr/local/Ascend/driver/version.info", rf"(?m)^Version=\s*{_ANY}"),
        _Version("CANN", "usr/local/Ascend/*/latest/version.cfg", r":(\d[\w.]*)\]"),
    ),
    "intel": (_Version("intel_vpu driver", "sys/module/intel_vpu/version", _ANY),),
}
"""Hardware of the catalogue -> its versions."""

TRY = "ep-harness doctor matrices/web.toml"
"""What tries their execution providers."""


def driver_versions(hardware: str, root: Path = Path("/")) -> dict[str, str]:
    """Return versions of installed drivers and toolkits by name, for a device family of the catalogue."""
    found: dict[str, str] = {}
    for fact in _FACTS.get(hardware, ()):
        for path in sorted(root.glob(fact.files)):
            match = re.search(fact.pattern, _text(path))
            if match:
                found.setdefault(fact.what, one_line(match[1], 60))
    return found


def seen_devices(hardware: str, root: Path = Path("/")) -> tuple[dict[str, Any], ...]:
    """Return the devices that drivers list, in the form of the agent's plugin devices."""
    return tuple(_nvidia_gpus(root)) if hardware == "nvidia-gpu" else ()


def browsers_here() -> Iterator[str]:
    """Yield a remark for each browser here, or one that there is none; then one if Node.js is missing."""
    found = [remark for name in BROWSERS if (remark := _place(name))]
    yield from found or [f"no browser was found; known are {', '.join(BROWSERS)}"]
    try:
        find_node()
    except InstallError as error:
        yield f"browsers are driven from Node.js: {error}"
    else:
        if found:
            yield f"`{TRY}` tries it there"


def _nvidia_gpus(root: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(root.glob("proc/driver/nvidia/gpus/*/information")):
        lines = (line.partition(":") for line in _text(path).splitlines())
        facts = {key.strip(): value.strip() for key, _, value in lines}
        device = {"type": "GPU", "vendor": "NVIDIA", "name": one_line(facts.get("Model", ""), 80)}
        yield {"device": device, "metadata": {"bus": path.parent.name}}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[: 1 << 20]
    except OSError:
        return ""


def _place(name: str) -> str:
    try:
        return f"{name} is {find_browser(name)}"
    except InstallError:
        return ""
