"""Four real execution providers on ONNX's own operator tests, as ``matrices/local.toml`` has them."""

import math
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from harness.data_files import data_root
from harness.engine.tasks.events import Event, TargetReady
from tests.kit import records_of, run_matrix

pytestmark = pytest.mark.real_ep

MODELS = [
    "test_abs",
    "test_add",
    "test_add_bcast",
    "test_averagepool_2d_default",
    "test_batchnorm_epsilon",
    "test_ceil",
    "test_clip",
    "test_concat_2d_axis_0",
    "test_conv_with_strides_no_padding",
    "test_div",
    "test_exp",
    "test_floor",
    "test_gather_0",
    "test_gemm_all_attributes",
    "test_globalaveragepool",
    "test_leakyrelu",
    "test_matmul_2d",
    "test_maxpool_2d_default",
    "test_mul",
    "test_nonzero_example",
    "test_reduce_sum_keepdims_example",
    "test_relu",
    "test_sigmoid",
    "test_softmax_axis_1",
    "test_stft",
    "test_tanh",
    "test_transpose_default",
]
Available = Callable[[str], dict[str, Record]]
TARGETS = ["cpu", "openvino-default", "openvino-f32", "qnn-htp", "webgpu-swiftshader"]
CPUINFO = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").is_file() else ""
HAS_BFLOAT16 = "amx_bf16" in CPUINFO or "avx512_bf16" in CPUINFO


def write_matmul(path: Path) -> None:
    """A product long enough that the precision of the multiplier shows."""
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((256, 64)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [32, 256])],
        [helper.make_tensor_value_info("y", 1, [32, 64])],
        [numpy_helper.from_array(weight, "w")],
    )
    path.parent.mkdir(parents=True)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)


@pytest.fixture(scope="module")
def events(
    tmp_path_factory: pytest.TempPathFactory, with_suites: Callable[[Path], Path]
) -> Iterator[list[Event]]:
    home = tmp_path_factory.mktemp("real")
    write_matmul(home / "own" / "matmul.onnx")
    table: dict[str, Any] = tomllib.loads(
        (data_root() / "matrices" / "local.toml").read_text(encoding="utf-8")
    )
    table = {"schema": 1, "models": {"suites": ["onnx-node"], "folders": ["own"]}, "target": table["target"]}
    for target in table["target"]:
        # Drivers of display servers look there; a runner may have none.
        target["env"] = {"XDG_RUNTIME_DIR": str(home), **target.get("env", {})}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT, str(with_suites(home / "cache")))
        yield run_matrix(home, table, None, {"onnx-node": MODELS, "own": ["matmul.onnx"]})


@pytest.fixture
def available(events: list[Event], require: Callable[[str, str], None]) -> Available:
    """The records of a target by model, where it can be used."""

    def records(target: str) -> dict[str, Record]:
        (ready,) = [event for event in events if isinstance(event, TargetReady) and event.target == target]
        found = {record.model: record for record in records_of(events) if record.target == target}
        require(found["test_abs"].provider, ready.problem)
        return found

    return records


def bits(record: Record) -> float:
    """Delivered bits of the only output; infinite where it equals the golden bit by bit."""
    (output,) = record.outputs
    assert output.elements == 32 * 64
    return math.inf if output.delivered_bits is None else output.delivered_bits


@pytest.mark.parametrize("target", TARGETS)
def test_every_cell_has_a_record_and_no_pass_is_somebody_elses(available: Available, target: str) -> None:
    records = available(target)
    assert records.keys() == {*MODELS, "matmul.onnx"}
    for record in records.values():
        assert record.verdict is not Verdict.UNAVAILABLE
        if record.family is Family.PASSED:
            assert record.placement is not None
            assert record.placement.ep_nodes > 0
        elif record.verdict is Verdict.FALLBACK:
            assert record.placement is not None
            assert record.placement.ep_nodes == 0


@pytest.mark.parametrize(
    ("target", "at_least"),
    [("cpu", 27), ("openvino-f32", 24), ("qnn-htp", 10), ("webgpu-swiftshader", 18)],
)
def test_the_provider_computes_most_of_them(available: Available, target: str, at_least: int) -> None:
    records = available(target)
    passed = [record.model for record in records.values() if record.family is Family.PASSED]
    assert len(passed) >= at_least, {name: record.verdict.value for name, record in records.items()}


def test_a_segmentation_fault_costs_one_cell(available: Available) -> None:
    records = available("qnn-htp")
    stft = records["test_stft"]
    assert (stft.verdict, stft.cause, stft.attempt) == (Verdict.CRASH, "SIGSEGV", 1)
    after = MODELS[MODELS.index("test_stft") + 1 :]
    assert {records[name].verdict for name in after} & {Verdict.PASS, Verdict.FALLBACK}
    assert not {records[name].verdict for name in after} & {Verdict.CRASH, Verdict.NOT_RUN}


def test_openvino_delivers_float32_where_it_is_told_to(available: Available) -> None:
    record = available("openvino-f32")["matmul.onnx"]
    assert record.verdict is Verdict.PASS
    assert bits(record) >= 18


def test_openvino_delivers_what_the_processor_is_fast_at(available: Available) -> None:
    """Depends on AMX or AVX512_BF16; one half is real. The test above plants the other on any processor."""
    delivered = bits(available("openvino-default")["matmul.onnx"])
    if HAS_BFLOAT16:
        assert 6.5 <= delivered <= 9.5
    else:
        assert delivered >= 15
