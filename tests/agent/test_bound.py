"""Where inputs and outputs are bound, whatever memory a session asks for; devices are played."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.agent.scenarios.io_binding import Bound
from harness.agent.session_run import Runner
from harness.agent.target_errors import UnsupportedError

X = np.ones((2, 3), np.float32)


class Value:
    """An OrtValue on some device."""

    def __init__(self, array: Any, device: str) -> None:
        self.array = array
        self.device = device

    def device_name(self) -> str:
        return self.device


class Binding:
    """An IOBinding that remembers what it was given; a run copies ``x`` to ``y``."""

    def __init__(self) -> None:
        self.inputs: dict[str, Value] = {}
        self.outputs: dict[str, Value] = {}
        self.copied = 0

    def bind_cpu_input(self, name: str, array: Any) -> None:
        self.inputs[name] = Value(array, "cpu")

    def bind_ortvalue_input(self, name: str, value: Value) -> None:
        self.inputs[name] = value

    def bind_output(self, name: str, device: str, number: int) -> None:
        assert number == 0
        if device == "gpu":
            raise RuntimeError("Unsupported device type: gpu")
        self.outputs[name] = Value(None, device)

    def synchronize_outputs(self) -> None:
        pass

    def get_outputs(self) -> list[Value]:
        return list(self.outputs.values())

    def copy_outputs_to_cpu(self) -> list[Any]:
        self.copied += 1
        return [value.array for value in self.outputs.values()]


class Session:
    """A session with an input and an output; ``memory`` are the names of the memory that it reports."""

    def __init__(self, *memory: str, kind: str = "tensor(float)") -> None:
        self.kind = kind
        if memory:
            infos = [SimpleNamespace(name=name) for name in memory]
            self.get_input_memory_infos = lambda: infos[:1]
            self.get_output_memory_infos = lambda: infos[1:]

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="x", type="tensor(float)")]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name="y", type=self.kind)]

    def io_binding(self) -> Binding:
        return Binding()

    def run_with_iobinding(self, binding: Binding) -> None:
        binding.outputs["y"].array = binding.inputs["x"].array


def ort(*devices: str) -> Any:
    """An onnxruntime whose build has these devices."""

    def ortvalue_from_numpy(array: Any, device: str, number: int) -> Value:
        assert number == 0
        if device not in devices:
            raise RuntimeError(f"Can't allocate memory on the {device} device using this package")
        return Value(array, device)

    return SimpleNamespace(OrtValue=SimpleNamespace(ortvalue_from_numpy=ortvalue_from_numpy))


def facts(bound: Bound) -> dict[str, Any]:
    bound.bind({"x": X})
    bound.run()
    (wire,) = bound.fetch()
    assert wire["data"] == X.tobytes()
    return bound.facts()


@pytest.mark.parametrize(
    ("memory", "device"),
    [
        ("WebGPU_Buf", "webgpu"),
        ("WebGPU_Buffer", "webgpu"),
        ("Cuda", "cuda"),
        ("DML", "dml"),
        ("Cann", "cann"),
    ],
)
def test_values_lie_where_the_session_wants_them(memory: str, device: str) -> None:
    found = facts(Bound(ort(device), Runner(Session(memory, memory)), device))
    assert found == {
        "on_device": True,
        "inputs_on": [f"x: {device}"],
        "outputs_on": [f"y: {device}"],
        "copies_to_device": 1,
        "bytes_to_device": X.nbytes,
        "copies_from_device": 1,
        "bytes_from_device": X.nbytes,
    }


@pytest.mark.parametrize(
    ("memory", "device", "copies"), [("WebGPU_Buf", "webgpu", 1), ("Cuda", "cuda", 0), ("Cpu", "webgpu", 0)]
)
def test_a_run_ends_when_the_device_has(memory: str, device: str, copies: int) -> None:
    """Synchronizing does not wait for WebGPU, whose runs would otherwise seem to take no time."""
    bound = Bound(ort("webgpu", "cuda"), Runner(Session(memory, memory)), device)
    bound.bind({"x": X})
    bound.run()
    assert bound.binding.copied == copies


@pytest.mark.parametrize("memory", ["Cpu", "CudaPinned", "DML CPU", "CUDA_CPU"])
def test_memory_of_the_host_is_the_host_s(memory: str) -> None:
    found = facts(Bound(ort("cuda", "dml"), Runner(Session(memory, memory)), "cuda"))
    assert (found["on_device"], found["inputs_on"], found["outputs_on"]) == (False, ["x: cpu"], ["y: cpu"])
    assert found["reason"] == "the session wants its inputs and outputs in the CPU's memory"


def test_each_value_has_a_place_of_its_own() -> None:
    found = facts(Bound(ort("cuda"), Runner(Session("Cpu", "Cuda")), "cuda"))
    assert (found["inputs_on"], found["outputs_on"]) == (["x: cpu"], ["y: cuda"])
    assert (found["copies_to_device"], found["copies_from_device"]) == (0, 1)
    assert "reason" not in found


def test_memory_of_a_provider_without_a_device_name_is_reported() -> None:
    found = facts(Bound(ort(), Runner(Session("HIP", "HIP")), "cpu"))
    assert found["on_device"] is False
    assert found["reason"] == "onnxruntime's Python API has no name for the memory 'HIP'"


def test_a_build_that_cannot_fill_the_memory_binds_on_the_cpu_with_a_reason() -> None:
    found = facts(Bound(ort(), Runner(Session("Cuda", "Cpu")), "cuda"))
    assert (found["on_device"], found["copies_to_device"]) == (False, 0)
    assert found["reason"] == "Can't allocate memory on the cuda device using this package"


def test_a_device_that_this_onnxruntime_does_not_name_is_replaced_by_the_cpu() -> None:
    """``gpu`` is a device name from onnxruntime 1.23 on; ``bind_output`` raises before."""
    found = facts(Bound(ort(), Runner(Session("Hip", "Hip")), "gpu"))
    assert (found["inputs_on"], found["outputs_on"]) == (["x: cpu"], ["y: cpu"])
    assert found["reason"] == "Unsupported device type: gpu"


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_session_that_does_not_report_its_memory_uses_the_provider_s_device(device: str) -> None:
    found = facts(Bound(ort("cuda"), Runner(Session()), device))
    assert found["inputs_on"] == [f"x: {device}"]
    assert ("reason" in found) is (device == "cpu")


@pytest.mark.parametrize("kind", ["seq(tensor(float))", "map(int64,tensor(float))", "tensor(string)"])
def test_outputs_that_cannot_be_bound_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedError, match=r"binds no .* \(output y\)"):
        Bound(ort(), Runner(Session(kind=kind)), "cpu")
