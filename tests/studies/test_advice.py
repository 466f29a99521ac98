"""What to do next, for each cause that a target can be unusable for."""

from typing import Any

import pytest

from harness.core.records.verdict import Cause, Verdict
from harness.plan.places import Place, Places
from harness.plan.target import Runtime, Target
from harness.studies.repair_advice import install_advice, next_step
from harness.studies.trial import ProviderWay, TrialResult
from tests.kit import bare_record

RAN: dict[str, Any] = {"python": "3.11.7", "packages": {"numpy": "2.4.6"}}
IMPORTED: dict[str, Any] = {**RAN, "onnxruntime": "1.31.1"}
WHEEL = Runtime(packages=("onnxruntime-gpu",))


def step(
    cause: str,
    reason: str = "why",
    *,
    provider: str = "CUDAExecutionProvider",
    runtime: Runtime = WHEEL,
    fingerprint: dict[str, Any] | None = None,
    printed: str = "",
    **settings: Any,
) -> str:
    target = Target(name="t", provider=(provider,), runtime=runtime, **settings)
    verdict = cause if isinstance(cause, Verdict) else Verdict.UNAVAILABLE
    record = bare_record(
        "m",
        verdict,
        target="t",
        provider=provider,
        cause="" if isinstance(cause, Verdict) else cause,
        reason=reason,
    )
    environment = IMPORTED if fingerprint is None else fingerprint
    return next_step(
        TrialResult(way=ProviderWay(target=target), record=record, printed=printed, fingerprint=environment)
    )


@pytest.mark.parametrize(
    ("provider", "library", "brings"),
    [
        ("CUDAExecutionProvider", "libcublasLt.so.13", "onnxruntime-gpu[cuda]"),
        ("CUDAExecutionProvider", "libcudnn.so.9", "onnxruntime-gpu[cudnn]"),
        ("CUDAExecutionProvider", "libcuda.so.1", "NVIDIA's driver"),
        ("TensorrtExecutionProvider", "libnvinfer.so.10", "TensorRT 10"),
        ("MIGraphXExecutionProvider", "libmigraphx_c.so.3", "ROCm"),
        ("CANNExecutionProvider", "libascendcl.so", "set_env.sh"),
        ("CANNExecutionProvider", "libother.so", "loader's path"),
        ("NobodysExecutionProvider", "libother.so", "loader's path"),
    ],
)
def test_a_missing_library_is_named_with_what_brings_it(provider: str, library: str, brings: str) -> None:
    found = step(Cause.LIBRARY_MISSING, f"{library} is missing: no such file", provider=provider)
    assert found.startswith(f"install what provides {library}")
    assert brings in found


@pytest.mark.parametrize(
    "expected",
    [
        {"reason": "it is built for numpy<2 and finds numpy 2.4.6: import onnxruntime: failed"},
        {"printed": "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.4"},
        {"reason": "import onnxruntime: numpy.core.multiarray failed to import"},
    ],
)
def test_a_wheel_for_numpy_1_gets_it(expected: dict[str, str]) -> None:
    assert step(Cause.IMPORT_FAILED, **expected) == 'add "numpy<2" to the packages of its runtime'  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("runtime", "how"),
    [
        (Runtime(), "pip install 'x<2'"),
        (Runtime(packages=("a",)), 'add "x<2" to the packages of its runtime'),
        (Runtime(python="/opt/py"), "/opt/py -m pip install 'x<2'"),
        (Runtime(ssh="me@board"), "pip install 'x<2', on the machine or in the container of the target"),
    ],
)
def test_packages_get_there_by_the_way_of_the_runtime(runtime: Runtime, how: str) -> None:
    assert install_advice(Target(name="t", provider=("X",), runtime=runtime), "x<2") == how


def test_a_missing_module_is_what_to_install() -> None:
    found = step(
        Cause.IMPORT_FAILED, "import onnxruntime: No module named 'coloredlogs.x'", runtime=Runtime()
    )
    assert found == "pip install 'coloredlogs'"


def test_a_hollow_module_takes_a_fresh_start() -> None:
    assert "uninstall every distribution" in step(Cause.IMPORT_FAILED, "'onnxruntime' in /x is hollow: ...")


def test_owners_of_one_module_are_named() -> None:
    both = {**RAN, "owners": ["onnxruntime", "onnxruntime-gpu"]}
    found = step(Cause.VERSION_CONFLICT, fingerprint=both)
    assert "pip uninstall onnxruntime onnxruntime-gpu" in found
    assert step(Cause.VERSION_CONFLICT, runtime=Runtime()) == "pip install 'onnxruntime>=1.23'"


def test_what_is_not_installed_depends_on_how_far_it_came() -> None:
    cause = Cause.NOT_INSTALLED
    home = Runtime()
    assert step(cause, fingerprint=RAN, runtime=home) == "pip install 'onnxruntime-gpu'"
    assert step(cause, fingerprint=RAN, runtime=home, plugin="acme_ep") == "pip install 'onnxruntime'"
    assert step(cause, plugin="acme_ep", runtime=home) == "pip install 'acme-ep'"
    assert "existing library" in step(cause, plugin="/opt/libacme.so")
    assert "package index" in step(cause, fingerprint={})
    assert "does not start" in step(cause, fingerprint={}, runtime=Runtime(python="/gone"))


def test_a_device_filter_is_looked_at_before_the_driver() -> None:
    offers = {**IMPORTED, "devices": [{"device": {"type": "GPU"}}]}
    assert "filter" in step(Cause.NO_DEVICE, device={"type": "NPU"}, fingerprint=offers)
    assert "nvidia-smi" in step(Cause.NO_DEVICE, fingerprint=offers)
    assert "Vulkan" in step(Cause.NO_DEVICE, provider="WebGpuExecutionProvider")
    assert "driver" in step(Cause.NO_DEVICE, provider="NobodysExecutionProvider")


def test_a_machine_that_never_answered_is_no_question_of_its_device() -> None:
    there = Runtime(ssh="board")
    qnn: dict[str, Any] = {"provider": "QNNExecutionProvider"}
    assert "connection" in step(Cause.NO_DEVICE, runtime=there, fingerprint={}, **qnn)
    places = Places(each=(Place(name="board-1", ssh="board-1"),))
    assert "connection" in step(Cause.NO_DEVICE, fingerprint={}, places=places, **qnn)
    assert "connection" not in step(Cause.NO_DEVICE, runtime=there, **qnn)


def test_the_catalogue_has_where_to_get_a_provider() -> None:
    assert "onnxruntime-gpu" in step(Cause.NOT_IN_BUILD)
    assert "a build" in step(Cause.NOT_IN_BUILD, provider="NobodysExecutionProvider")


def test_other_troubles_send_to_the_evidence() -> None:
    assert "newer onnxruntime" in step(Cause.REGISTRATION_FAILED, "The requested API version [99] is not")
    for cause in (Cause.REGISTRATION_FAILED, Verdict.CRASH, Verdict.MISMATCH):
        assert "`ep-harness check CUDAExecutionProvider`" in step(cause)
    assert "providers.md" in step(Verdict.OPTION_REJECTED)
