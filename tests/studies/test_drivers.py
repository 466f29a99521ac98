"""Versions and devices, read from files as drivers leave them."""

from pathlib import Path

import pytest

from harness.studies.drivers import driver_versions, seen_devices

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder)\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("text", "version"), [(OPEN, "560.35.03"), (CLOSED, "535.54.03")])
def test_nvidias_driver(tmp_path: Path, text: str, version: str) -> None:
    write(tmp_path / "proc/driver/nvidia/version", text + "GCC version:  gcc version 12.3.0\n")
    assert driver_versions("nvidia-gpu", tmp_path) == {"NVIDIA driver": version}
    assert driver_versions("gpu", tmp_path) == {"NVIDIA driver": version}


@pytest.mark.parametrize(
    ("hardware", "file", "text", "versions"),
    [
        (
            "nvidia-gpu",
            "usr/local/cuda/version.json",
            '{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, "nvcc": {"version": "9.9"}}',
            {"CUDA toolkit": "12.4.1"},
        ),
        ("amd-gpu", "opt/rocm/.info/version", "6.4.1-83\n", {"ROCm": "6.4.1-83"}),
        ("amd-gpu", "sys/module/amdgpu/version", "6.12.12\n", {"amdgpu driver": "6.12.12"}),
        (
            "ascend-npu",
            "usr/local/Ascend/driver/version.info",
            "Version=24.1.rc3\nascendhal_version=7.35.23\n",
            {"Ascend driver": "24.1.rc3"},
        ),
        (
            "ascend-npu",
            "usr/local/Ascend/ascend-toolkit/latest/version.cfg",
            "# version: 1.0\nruntime_running_version=[7.5.0.1.129:8.0.RC3]\n",
            {"CANN": "8.0.RC3"},
        ),
        ("nvidia-gpu", "proc/driver/nvidia/version", "nothing that we know\n", {}),
        ("cpu", "proc/driver/nvidia/version", OPEN, {}),
    ],
)
def test_what_other_files_say(
    tmp_path: Path, hardware: str, file: str, text: str, versions: dict[str, str]
) -> None:
    write(tmp_path / file, text)
    assert driver_versions(hardware, tmp_path) == versions


def test_gpus_that_the_driver_lists(tmp_path: Path) -> None:
    for bus in ("0000:17:00.0", "0000:65:00.0"):
        text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 16\n"
        write(tmp_path / "proc/driver/nvidia/gpus" / bus.replace(":", "-") / "information", text)
    found = seen_devices("nvidia-gpu", tmp_path)
    assert [each["device"]["name"] for each in found] == ["NVIDIA H200"] * 2
    assert [each["metadata"]["bus"] for each in found] == ["0000-17-00.0", "0000-65-00.0"]
    assert seen_devices("amd-gpu", tmp_path) == ()


def test_a_machine_without_any() -> None:
    assert driver_versions("no such hardware") == {}
    assert driver_versions("nvidia-gpu", Path("gone")) == {}
