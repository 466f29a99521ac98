"""Whether a target leaves its precision to the provider."""

from typing import Any

import pytest

from harness.core.records.cell import Cell
from harness.plan.target import Target

HINT = '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'


@pytest.mark.parametrize(
    ("provider", "options", "delivers"),
    [
        ("OpenVINOExecutionProvider", {}, ("bfloat16", "float16")),
        ("OpenVINOExecutionProvider", {"device_type": "CPU"}, ("bfloat16", "float16")),
        (
            "OpenVINOExecutionProvider",
            {"device_type": "CPU", "load_config": '{"CPU": {"NUM_STREAMS": 1}}'},
            ("bfloat16", "float16"),
        ),
        ("OpenVINOExecutionProvider", {"device_type": "CPU", "load_config": HINT}, ()),
        ("OpenVINOExecutionProvider", {"precision": "FP32"}, ()),
        ("QNNExecutionProvider", {"backend_type": "htp", "soc_model": "60"}, ("float16",)),
        ("QNNExecutionProvider", {"enable_htp_fp16_precision": "0"}, ()),
        ("CUDAExecutionProvider", {"device_id": "0"}, ("tf32",)),
        ("CUDAExecutionProvider", {"use_tf32": "0"}, ()),
        ("VendorExecutionProvider", {}, ()),
    ],
)
def test_a_choice_of_a_device_is_none_of_a_precision(
    provider: str, options: dict[str, str], delivers: tuple[str, ...]
) -> None:
    target = Target(name="t", provider=(provider,), options=options)
    cell = Cell(suite="s", model="m", target="t")
    assert target.delivers(cell) == delivers


AVX2 = {"processor": {"features": ["avx2", "fma"]}}
BF16 = {"processor": {"features": ["avx2", "avx512_bf16"]}}
UNLISTED = {"processor": {"model": "any"}}
OF_PLUGIN = {"devices": [{"device": {"type": "CPU"}}]}
GPU = {"devices": [{"device": {"type": "GPU"}}]}


@pytest.mark.parametrize(
    ("target", "fingerprints", "delivers"),
    [
        ({}, [AVX2], ()),
        ({}, [BF16], ("bfloat16",)),
        ({}, [AVX2, BF16], ("bfloat16",)),
        ({}, [UNLISTED], ("bfloat16", "float16")),
        ({"options": {"device_type": "CPU"}}, [AVX2], ()),
        ({"options": {"device_type": "GPU"}}, [AVX2], ("bfloat16", "float16")),
        ({"plugin": "ov", "device": {"type": "CPU"}}, [AVX2 | OF_PLUGIN], ()),
        ({"plugin": "ov", "device": {"type": "GPU"}}, [AVX2 | GPU], ("bfloat16", "float16")),
    ],
)
def test_a_processor_excuses_no_precision_that_it_cannot_compute_in(
    target: dict[str, Any], fingerprints: list[dict[str, Any]], delivers: tuple[str, ...]
) -> None:
    found = Target(name="t", provider=("OpenVINOExecutionProvider",), **target)
    assert found.delivers(Cell(suite="s", model="m", target="t"), fingerprints) == delivers


def test_a_provider_of_other_devices_is_not_asked_for_the_processor() -> None:
    target = Target(name="t", provider=("QNNExecutionProvider",), options={"backend_type": "htp"})
    assert target.delivers(Cell(suite="s", model="m", target="t"), [AVX2]) == ("float16",)
