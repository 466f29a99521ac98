"""On which device the inputs lie: wrong only if their memory is that of another device."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.input_devices import device_proof
from harness.agent.plugin_library import chosen_device

EP = "AcmeExecutionProvider"
CPU = "CPUExecutionProvider"
NPU, GPU, HOST = ("NPU 1 of Acme", "acme_npu 0"), ("GPU 2 of Acme", "acme_gpu 0"), ("CPU 0 of Acme", "")


def proof(*devices: tuple[str, str], memory: str = "acme_npu", reads: str | None = EP) -> Any:
    """Return the proof of a session of one input for the first of the devices."""
    info = SimpleNamespace(name=memory, device_id=0)
    named = None if reads is None else SimpleNamespace(ep_name=reads)
    session = SimpleNamespace(
        get_input_epdevices=lambda: [named],
        get_input_memory_infos=lambda: [info],
        get_inputs=lambda: [SimpleNamespace(name="x")],
    )
    target: Any = SimpleNamespace(chain=[EP], devices=[object()], memories=list(devices))
    return device_proof(target, session)


def test_a_number_tells_equal_devices_apart() -> None:
    def offered(kind: str) -> Any:
        facts = {"type": kind, "vendor": "Acme", "vendor_id": 1, "device_id": 7, "metadata": {}}
        return SimpleNamespace(ep_name=EP, device=SimpleNamespace(**facts), ep_metadata={})

    cpu, first, second = map(offered, ("CPU", "GPU", "GPU"))
    every = [cpu, first, second]
    assert chosen_device(every, {}) == [cpu]
    assert chosen_device(every, {"type": "gpu"}) == [first]
    assert chosen_device(every, {"type": "GPU", "number": "2"}) == [second]
    assert chosen_device(every, {"type": "GPU", "number": "3"}) == []
    assert chosen_device(every, {"vendor": "Other"}) == []


def test_memory_of_its_own_proves_a_device() -> None:
    assert proof(NPU, GPU, HOST) == {"asked": "NPU 1 of Acme", "judged": 1, "memory": ["acme_npu 0"]}


def test_memory_of_another_device_is_wrong() -> None:
    found = proof(NPU, GPU, memory="acme_gpu")
    assert found["wrong"] == "input 'x' lies in the memory acme_gpu 0 of GPU 2 of Acme"
    assert "not_proven" not in found


def test_a_single_device_needs_no_memory_of_its_own() -> None:
    assert proof(HOST, memory="Cpu") == {"asked": "CPU 0 of Acme", "judged": 1, "memory": ["Cpu 0"]}


@pytest.mark.parametrize(
    ("devices", "memory", "reads", "why"),
    [
        ((NPU, GPU), "Cpu", EP, "inputs lie in memory that is of none of the provider's 2 devices"),
        (
            (NPU, ("NPU 2 of Acme", NPU[1])),
            "acme_npu",
            EP,
            "another device of the provider has the same memory",
        ),
        ((NPU, GPU), "acme_gpu", CPU, "no input is read first by a node of the provider"),
        ((NPU, GPU), "acme_gpu", None, "no input is read first by a node of the provider"),
    ],
)
def test_what_tells_nothing_is_not_proven(
    devices: tuple[tuple[str, str], ...], memory: str, reads: str | None, why: str
) -> None:
    found = proof(*devices, memory=memory, reads=reads)
    assert found["not_proven"] == why
    assert "wrong" not in found


def test_an_error_of_onnxruntime_is_no_proof() -> None:
    def fail() -> None:
        raise RuntimeError("no such input")

    target: Any = SimpleNamespace(chain=[EP], devices=[object()], memories=[NPU])
    assert device_proof(target, SimpleNamespace(get_input_epdevices=fail)) == {
        "asked": "NPU 1 of Acme",
        "not_proven": "no such input",
    }


def test_who_is_not_asked() -> None:
    session = SimpleNamespace(get_input_epdevices=list)
    cpu: Any = SimpleNamespace(chain=[CPU], devices=[])
    built_in: Any = SimpleNamespace(chain=[EP], devices=[])
    assert device_proof(cpu, session) is None
    assert device_proof(built_in, SimpleNamespace()) is None  # before 1.24
    assert device_proof(built_in, session) == {"not_proven": "onnxruntime tells the devices of plugins alone"}
