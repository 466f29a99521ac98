"""What a run tells of a device: vendor, numbers, architecture, firmware, and the build of its provider."""

from typing import Any

import pytest

from harness.plan.device_identity import NOT_KNOWN, DeviceIdentity, device_identity_of

NPU: dict[str, Any] = {
    "machine": "x86_64",
    "plugin": {"library": "C:\\lib\\npu.dll", "version": "1.8.1"},
    "sha256": {"npu.dll": "9" * 64, "onnxruntime_pybind11_state.pyd": "f" * 64},
    "drivers": {"intel_vpu": "1.2"},
    "devices": [
        {"device": {"type": "CPU", "vendor": "Intel", "vendor_id": "32902", "device_id": "0"}},
        {
            "device": {"type": "NPU", "vendor": "Intel", "vendor_id": "32902", "device_id": "32069"},
            "metadata": {
                "DEVICE_ARCHITECTURE": "4000",
                "firmware_version": "20260101*LNL",
                "version": "1.8.1+95d",
            },
        },
    ],
}


def test_all_that_the_run_tells() -> None:
    found = device_identity_of(NPU, ["OpenVINOExecutionProvider"], {"type": "NPU"})
    assert found == DeviceIdentity(
        vendor="Intel",
        vendor_id="32902",
        device_id="32069",
        architecture="4000",
        firmware="20260101*LNL",
        build="1.8.1+95d 999999999999",
    )
    assert dict(found.in_words())["Vendor"] == "Intel (32902)"


def test_a_built_in_provider_has_the_build_of_its_library() -> None:
    told = {"machine": "arm64", "sha256": {"libonnxruntime_providers_cuda.so": "a" * 64} | NPU["sha256"]}
    assert device_identity_of(told, ["CUDAExecutionProvider"], {}).build == "a" * 12
    cpu = device_identity_of(told, ["CPUExecutionProvider"], {})
    assert (cpu.build, cpu.architecture) == ("f" * 12, "arm64")


def test_several_firmwares_have_their_names_and_a_flood_is_cut() -> None:
    told = {"drivers": {"boot_fw_version": "1", "firmware": "2", "other": "3"}}
    found = device_identity_of(told, ["XExecutionProvider"], {})
    assert found.firmware == "boot_fw_version 1, firmware 2"
    flood = device_identity_of({"drivers": {"firmware": "x\x07" * 5000}}, ["XExecutionProvider"], {})
    assert len(flood.firmware) <= 200
    assert flood.firmware.isprintable()


@pytest.mark.parametrize("odd", [{}, {"devices": 3, "sha256": [], "drivers": "x", "plugin": 1}])
def test_what_is_missing_or_odd_is_not_known(odd: dict[str, Any]) -> None:
    found = device_identity_of(odd, ["XExecutionProvider"], {})
    assert found == DeviceIdentity()
    assert {value for _, value in found.in_words()} == {NOT_KNOWN}
