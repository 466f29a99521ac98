"""What options and precision modes really do to OpenVINO and QNN's simulator, on products of matrices."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from tests.kit import of_folder, records_of, run_matrix

pytestmark = pytest.mark.real_ep

OPENVINO = {
    "provider": "OpenVINOExecutionProvider",
    "plugin": "onnxruntime_ep_openvino",
    "device": {"type": "CPU"},
}
QNN = {"provider": "QNNExecutionProvider", "plugin": "onnxruntime_qnn", "options": {"backend_type": "htp"}}
CPUINFO = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").is_file() else ""
HAS_BFLOAT16 = "amx_bf16" in CPUINFO or "avx512_bf16" in CPUINFO
FLOAT32 = {"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'}
TARGETS: list[dict[str, Any]] = [
    {
        "name": "modes",
        **OPENVINO,
        "options": FLOAT32,
        "axes": {"precision": ["ep:f32", "ep:bf16", "ep:fp16"]},
    },
    {"name": "plain", **OPENVINO, "options": {"INFERENCE_PRECISION_HINT": "f32"}, "unchecked_options": True},
    {"name": "qnn", **QNN, "axes": {"precision": ["fp32", "ep:fp16", "ep:int8"]}},
]


def write_matmul(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = (rng.standard_normal((64, 32)) / 8).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [8, 64])],
        [helper.make_tensor_value_info("y", 1, [8, 32])],
        [numpy_helper.from_array(weight, "w")],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Record]]:
    home = tmp_path_factory.mktemp("effects")
    for seed in range(3):
        write_matmul(home / "models" / f"{seed}.onnx", seed)
    table: dict[str, Any] = of_folder(*TARGETS)
    found: dict[tuple[str, str], list[Record]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT, str(tmp_path_factory.mktemp("cache")))
        for record in records_of(run_matrix(home, table, None)):
            found.setdefault((record.target, record.axes["precision"]), []).append(record)
    return found


def bits(record: Record) -> float:
    """Delivered bits; an exact result has as many as float32 itself."""
    (output,) = record.outputs
    return 24.0 if output.delivered_bits is None else output.delivered_bits


@pytest.fixture
def openvino(elsewhere: dict[str, str]) -> None:
    """Skips where OpenVINO has no device."""
    if reason := elsewhere.get("OpenVINOExecutionProvider"):
        pytest.skip(reason)


@pytest.mark.usefixtures("openvino")
def test_openvino_computes_in_the_precision_of_the_mode(records: dict[Any, list[Record]]) -> None:
    """The mode f32 is what a processor without AMX and AVX512_BF16 does; bf16 is real on others alone."""
    assert min(map(bits, records["modes", "ep:f32"])) > 20
    if HAS_BFLOAT16:
        assert all(8 < bits(record) < 10 for record in records["modes", "ep:bf16"])
        assert all(record.effect and record.effect.seen for record in records["modes", "ep:bf16"])


def test_qnn_computes_in_the_precision_of_the_mode(records: dict[Any, list[Record]]) -> None:
    assert min(map(bits, records["qnn", "fp32"])) > 20
    for record in records["qnn", "ep:fp16"]:
        assert 10 < bits(record) < 13
        assert record.effect is not None
        assert (record.effect.options, record.effect.seen) == (("ep:fp16",), True)


@pytest.mark.usefixtures("openvino")
def test_a_plain_hint_has_no_effect_on_openvino(records: dict[Any, list[Record]]) -> None:
    for record in records["plain", "fp32"]:
        assert record.effect is not None
        assert (record.effect.options, record.effect.seen) == (("INFERENCE_PRECISION_HINT",), False)
        assert "no effect seen" in record.reason


def test_what_a_provider_lacks_is_declared(records: dict[Any, list[Record]]) -> None:
    for record in [*records["modes", "ep:fp16"], *records["qnn", "ep:int8"]]:
        assert record.verdict is Verdict.DECLARED
        assert record.reason
