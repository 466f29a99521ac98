"""An onnxruntime that misbehaves on demand: pure Python, seen by a target's process through PYTHONPATH.

It computes one model, ``y = Relu(x), k = Cast<int32>(x), z = Neg(x)``. How it misbehaves stands in the
model's file name, ``<number>_<fault>.onnx``, or, for what happens before any model, in the variable
``FAKE_FAULT``. A fault ``<action>_in_<phase>`` does something drastic there; the others bend the answer.
"""

from __future__ import annotations

import ctypes
import enum
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

EP, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
FAULT = os.environ.get("FAKE_FAULT", "")
LIBRARY_MISSING = (
    "Failed to load library libonnxruntime_providers_cuda.so with error: "
    "libcublasLt.so.13: cannot open shared object file: No such file or directory"
)
FLOOD_BYTES = 20 << 20

__version__ = os.environ.get("FAKE_VERSION", "1.31.1")


class Fail(Exception):  # noqa: N818 - onnxruntime's own name
    """What onnxruntime raises for most errors."""


class NotImplemented(Exception):  # noqa: A001, N818 - onnxruntime's own name
    """What onnxruntime raises where a kernel is missing."""


class UnreadableError(Exception):
    """An error whose message is not UTF-8, as pybind11 makes it."""

    def __str__(self) -> str:
        return b"\xff\xfe".decode("utf-8")


def segfault() -> None:
    ctypes.string_at(0)


def hang() -> None:
    time.sleep(1000)


def hang_with_gil() -> None:
    ctypes.PyDLL(None).sleep(1000)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_once() -> None:
    marker = Path(os.environ["FAKE_MARKER"])
    if not marker.exists():
        marker.touch()
        kill()


def wait_once() -> None:
    """Leave the process id in the marker and wait to be killed; the next attempt goes on."""
    marker = Path(os.environ["FAKE_MARKER"])
    if not marker.exists():
        marker.with_suffix(".new").write_text(str(os.getpid()), encoding="utf-8")
        marker.with_suffix(".new").rename(marker)
        hang()


def only_one() -> None:
    """Let the first process pass and no other."""
    try:
        Path(os.environ["FAKE_MARKER"]).touch(exist_ok=False)
    except FileExistsError:
        raise Fail("the device is busy") from None


def leave_child() -> None:
    """Die while a child of ours lives on."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    Path(os.environ["FAKE_MARKER"]).with_suffix(".child").write_text(str(child.pid), encoding="utf-8")
    os.abort()


def fork() -> None:
    """Die while a copy of this process lives on, with all its descriptors."""
    if os.fork():
        os.abort()
    hang()


def flood() -> None:
    line = b"noise " * 170 + b"\n"
    for _ in range(FLOOD_BYTES // len(line)):
        os.write(1, line)


def say() -> None:
    os.write(1, b"stdout of the provider\n")
    os.write(2, b"stderr of the provider \xff\x1b[31m\n")
    ctypes.CDLL(None).puts(b"buffered in C")


def throw(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


ACTIONS: dict[str, Callable[[], None]] = {
    "segv": segfault,
    "abort": os.abort,
    "exit3": lambda: os._exit(3),
    "exit0": lambda: os._exit(0),
    "hang": hang,
    "hanggil": hang_with_gil,
    "kill": kill,
    "killonce": kill_once,
    "orphan": leave_child,
    "waitonce": wait_once,
    "single": only_one,
    "fork": fork,
    "flood": flood,
    "say": say,
    "memory": throw(MemoryError()),
    "alloc": throw(Fail("Failed to allocate memory for requested buffer of size 137438953472")),
    "error": throw(Fail("[ONNXRuntimeError] : 1 : FAIL : something is wrong")),
    "notimpl": throw(NotImplemented("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : no kernel for Relu")),
    "ansi": throw(Fail("\x1b[31mred\x1b[0m \x00\udcff <script>alert(1)</script>")),
    "long": throw(Fail("x" * (1 << 20))),
    "unreadable": throw(UnreadableError()),
}


def act(fault: str, phase: str) -> None:
    action, _, where = fault.partition("_in_")
    if where == phase:
        ACTIONS[action]()


def bent(fault: str, outputs: dict[str, Any], runs: int) -> dict[str, Any]:
    """The outputs, made wrong in the way that the fault names."""
    y, k, z = outputs["y"], outputs["k"], outputs["z"]
    step = np.float32(0.5 if fault == "jitter" else 1e-7)
    changes: dict[str, Callable[[], dict[str, Any]]] = {
        "wrong_dtype": lambda: {"y": y.astype(np.float64)},
        "wrong_shape": lambda: {"y": y.reshape(2, 2)},
        "missing_output": lambda: {"z": None},
        "extra_output": lambda: {"w": y},
        "nan": lambda: {"z": np.array([np.nan, *z[1:]], np.float32)},
        "off_by_one": lambda: {"k": k + np.array([0, 1, 0, 0], np.int32)},
        "reordered": lambda: {"z": z[::-1].copy()},
        "zeros": lambda: {"z": np.zeros_like(z)},
        "jitter": lambda: {"z": z + runs * step},
        "small_jitter": lambda: {"z": z + runs * step},
    }
    changed = {**outputs, **changes.get(fault, dict)()}
    present = {name: value for name, value in changed.items() if value is not None}
    return dict(reversed(present.items())) if fault == "permuted" else present


class GraphOptimizationLevel(enum.Enum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.Enum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    def __init__(self) -> None:
        self.profile_file_prefix = ""
        self.for_devices: tuple[str, dict[str, str]] | None = None

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Accepted and ignored."""

    def add_provider_for_devices(self, devices: list[Any], options: dict[str, str]) -> None:
        self.for_devices = devices[0].ep_name, options


class InferenceSession:
    def __init__(
        self,
        model: str | bytes,
        settings: SessionOptions,
        providers: list[Any] | None = None,
        enable_fallback: int = 1,
    ) -> None:
        if enable_fallback:
            raise Fail("the harness must switch the silent retry off")
        self.fault = "" if isinstance(model, bytes) else Path(model).stem.partition("_")[2]
        self.settings = settings
        self.runs = 0
        name, options = settings.for_devices or (providers or [(CPU, {})])[0]
        if isinstance(model, bytes):
            act(FAULT, "register")
            if FAULT == "library_on_stderr":
                os.write(2, LIBRARY_MISSING.encode() + b"\n")
        if options.get("precision") == "wrong":
            raise Fail(f"unknown value for an option of {name}")
        act(self.fault, "create")
        dropped = FAULT in {"dropped", "library_on_stderr"} or self.fault == "dropped_at_create"
        self.providers = [CPU] if dropped else [name, CPU]

    def __del__(self) -> None:
        act(getattr(self, "fault", ""), "teardown")

    def get_providers(self) -> list[str]:
        return [CPU] if self.fault == "providers_change" and self.runs else self.providers

    def get_outputs(self) -> list[Any]:
        if self.fault == "hostile_name":
            return [SimpleNamespace(name="y\udcff\x1b[31m" + "n" * (1 << 20), type="tensor(float)")]
        names = bent(self.fault, {name: np.zeros(4) for name in ("y", "k", "z")}, 0)
        return [SimpleNamespace(name=name, type="tensor(float)") for name in names]

    def run(self, names: list[str], feeds: dict[str, Any]) -> list[Any]:
        act(self.fault, "run")
        x = feeds["x"]
        outputs = {"y": np.maximum(x, 0), "k": x.astype(np.int32), "z": -x}
        outputs = bent(self.fault, outputs, self.runs)
        self.runs += 1
        return [outputs.get(name, outputs["y"]) for name in names]

    def assigned(self) -> list[tuple[str, list[str]]]:
        """``(provider, operators)`` of each partition."""
        mine = self.providers[0]
        return {
            "placed_nowhere": [(CPU, ["Relu", "Cast", "Neg"])],
            "folded": [],
            "placed_partly": [(mine, ["Relu", "Cast"]), (CPU, ["Neg"])],
            "placed_but_shapes": [(mine, ["Relu", "Cast", "Neg"]), (CPU, ["Shape"])],
            "hostile_placement": [(mine, ["Relu\udcff\x1b[31m"])],
        }.get(self.fault, [(mine, ["Relu", "Cast"]), (mine, ["Neg"])])

    def get_provider_graph_assignment_info(self) -> list[Any]:
        # 1.24 is known to leave nodes out.
        said = [] if __version__.startswith("1.24") else self.assigned()
        return [
            SimpleNamespace(
                ep_name=name, get_nodes=lambda ops=ops: [SimpleNamespace(op_type=op) for op in ops]
            )
            for name, ops in said
        ]

    def end_profiling(self) -> str:
        events = [
            {"cat": "Node", "name": f"{index}_{op}", "args": {"provider": name, "op_name": op}}
            for index, (name, ops) in enumerate(self.assigned())
            for op in ops
        ]
        path = Path(self.settings.profile_file_prefix + ".json")
        path.write_text(json.dumps([{"cat": "Session", "name": "model_run"}, *events]), encoding="utf-8")
        return str(path)


def get_available_providers() -> list[str]:
    return [CPU] if FAULT == "unlisted" else [EP, CPU]


def register_execution_provider_library(name: str, path: str) -> None:
    del name, path
    if FAULT == "refuse_registration":
        raise Fail("the library speaks API version 99")
    if FAULT == "library_in_error":
        raise Fail(LIBRARY_MISSING)


def get_ep_devices() -> list[Any]:
    hardware = SimpleNamespace(type="GPU", vendor="Acme\udcff", vendor_id=1, device_id=2, metadata={})
    device = SimpleNamespace(ep_name=EP, device=hardware, ep_metadata={"version": np.float64(2)})
    return [] if FAULT == "no_device" else [device]


act(FAULT, "import")
if FAULT == "not_installed":
    raise ModuleNotFoundError("No module named 'onnxruntime'", name="onnxruntime")
if FAULT == "broken_dependency":
    raise ModuleNotFoundError("No module named 'coloredlogs'", name="coloredlogs")
if FAULT == "library_at_import":
    raise ImportError(LIBRARY_MISSING)
if FAULT == "hollow":
    del InferenceSession
