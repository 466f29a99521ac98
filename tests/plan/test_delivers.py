"""Whether a target leaves its precision to the provider."""

import pytest

from harness.core.cell import Cell
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
