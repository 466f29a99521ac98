"""What the scenario ``dynamic_options`` sets: what the catalogue documents of a provider and its device."""

import pytest

from harness.engine.answers.open_session_options import (
    dynamic_options_of,
    graph_capture_of,
    settings_of_capture,
    settings_of_dynamic_options,
)
from harness.plan.target import Target


def target(provider: str, **fields: dict[str, str]) -> Target:
    return Target(name="t", provider=(provider,), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "keys"),
    [
        (target("CPUExecutionProvider"), []),
        (target("OpenVINOExecutionProvider", device={"type": "CPU"}), ["kvcache_rewind"]),
        (
            target("OpenVINOExecutionProvider", options={"device_type": "NPU"}),
            ["ep.dynamic.workload_type", "kvcache_rewind"],
        ),
        (
            target("QNNExecutionProvider"),
            ["ep.dynamic.workload_type", "ep.dynamic.qnn_htp_performance_mode"],
        ),
        (target("SomeExecutionProvider"), ["ep.dynamic.workload_type"]),
    ],
)
def test_options_follow_from_provider_and_device(asked: Target, keys: list[str]) -> None:
    assert [key for key, _ in dynamic_options_of(asked)] == keys


def test_only_what_is_documented_can_be_refused_wrongly() -> None:
    assert settings_of_dynamic_options(target("SomeExecutionProvider"))["documented"] is False
    known = settings_of_dynamic_options(target("QNNExecutionProvider"))
    assert (known["documented"], known["unknown"]) == (True, "refused")
    assert known["options"][0] == ["ep.dynamic.workload_type", ["Default", "Efficient"]]


@pytest.mark.parametrize(
    ("provider", "found"),
    [
        ("CUDAExecutionProvider", ("enable_cuda_graph", "cuda")),
        ("WebGpuExecutionProvider", ("enableGraphCapture", "webgpu")),
        ("CPUExecutionProvider", ()),
        ("SomeExecutionProvider", ()),
    ],
)
def test_the_option_that_captures_graphs(provider: str, found: tuple[str, ...]) -> None:
    assert graph_capture_of(target(provider)) == found
    assert settings_of_capture(target(provider)) == ({"option": [found[0], "1"]} if found else {})
