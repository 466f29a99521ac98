"""What explains an error beside rounding, and what is left of the answer: cells judged from end to end."""

from collections.abc import Callable, Mapping
from pathlib import Path

import ml_dtypes
import msgspec
import numpy as np
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.values.value import Array, Tensor
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.case import Case
from harness.engine.answers.evidence import CellRule, Wider, with_placement
from harness.engine.tasks.task import Question, QuestionKind
from tests.engine.test_next_step import Court
from tests.kit import placement_of

OPENVINO, WEBGPU = "OpenVINOExecutionProvider", "WebGpuExecutionProvider"

# A product of two rows that all but cancel: one rounding to bfloat16 takes most of the difference.
AMPLIFYING = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (float[4, 64] y) {
    c = Constant<value_float = 1.0005>() a = Tanh(x) b = Mul(a, c) y = Sub(b, a) }"""

# Logits that are all but equal, where one unit in the last place is 1,024: their softmax is anything.
LEVEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (float[4, 64] y) {
    big = Constant<value_float = 1e10>() s = Constant<value_float = 1e3>()
    m = Mul(x, s) a = Add(m, big) l = Sqrt(a) q = Mul(l, l) y = Softmax(q) }"""

WAVES = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (float[4, 64] y) { s = Constant<value_float = 20.0>() a = Mul(x, s) y = Sin(a) }"""


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))


def bfloat16(values: Array) -> Array:
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def amplified(inputs: Mapping[str, Array], of: Callable[[Array], Array]) -> Array:
    """What a provider makes of the amplifying model that rounds the result of every node."""
    tanh = of(np.tanh(of(inputs["x"])))
    return of(of(tanh * of(np.array(1.0005, np.float32))) - tanh)


def inputs_of(court: Court) -> dict[str, Array]:
    cell = court.cells[0]
    case = court.pipeline.next_step.cases.of(Question(suite=cell.suite, model=cell.model))
    assert isinstance(case, Case)
    return {name: value.array for name, value in case.data_sets[0].inputs if isinstance(value, Tensor)}


def test_a_precision_that_ruins_an_answer_is_a_loss_with_its_remedy(tmp_path: Path) -> None:
    court = Court(tmp_path, AMPLIFYING, OPENVINO)
    record = court.judge(lambda _: amplified(inputs_of(court), bfloat16))
    assert record.verdict is Verdict.PRECISION_LOSS
    assert "the EP computes in bfloat16" in record.reason
    assert "INFERENCE_PRECISION_HINT f32 (precision ep:f32)" in record.reason
    assert record.own_precision == ""
    assert record.remedy


def test_what_the_matrix_chooses_must_leave_as_much(tmp_path: Path) -> None:
    court = Court(tmp_path, AMPLIFYING, OPENVINO, axes={"precision": ["ep:bf16"]})
    record = court.judge(lambda _: amplified(inputs_of(court), bfloat16))
    assert record.verdict is Verdict.PRECISION_LOSS
    assert (record.precision, record.own_precision) == ("bfloat16", "float32")
    enough = Court(tmp_path, AMPLIFYING, OPENVINO, tolerance=[{"bits": 0}])
    assert enough.judge(lambda _: amplified(inputs_of(enough), bfloat16)).verdict is not Verdict.MISMATCH


def test_a_wrong_answer_is_not_excused_by_a_coarse_precision(tmp_path: Path) -> None:
    court = Court(tmp_path, provider=OPENVINO)
    record = court.judge(lambda right: right * np.float32(1.2))
    assert record.verdict is Verdict.MISMATCH
    assert "the noise at bfloat16" in record.reason
    assert record.unconfirmed == ""


def test_an_answer_that_rounding_alone_decides_says_nothing(tmp_path: Path) -> None:
    court = Court(tmp_path, LEVEL)
    record = court.judge(lambda right: np.roll(right, 1, axis=-1))
    assert record.verdict is Verdict.ILL_CONDITIONED
    assert "rounding at float32 moves it by" in record.reason


def test_what_a_document_allows_passes_with_a_mark(tmp_path: Path) -> None:
    court = Court(tmp_path, WAVES, WEBGPU)
    rng = np.random.default_rng(5)
    record = court.judge(lambda right: right + rng.uniform(-3e-4, 3e-4, right.shape).astype(np.float32))
    assert record.verdict is Verdict.PASS
    assert record.approximate.endswith("which WGSL allows")
    assert QuestionKind.NOISE in court.asked
    beyond = Court(tmp_path, WAVES, WEBGPU).judge(lambda right: right + np.float32(0.02))
    assert beyond.verdict is Verdict.MISMATCH
    other = Court(tmp_path, WAVES).judge(lambda right: right + np.float32(3e-4))
    assert other.verdict is Verdict.MISMATCH


def by_blocks() -> str:
    """A product by weights of a few bits, which onnxruntime makes MatMulNBits of."""
    steps = np.random.default_rng(3).integers(-7, 8, 64 * 32)
    return f"""<ir_version: 10, opset_import: ["" : 21]>
        agraph (float[4, 64] x) => (float[4, 32] y)
        <int8[64, 32] steps = {{{", ".join(map(str, steps))}}}, float scale = {{0.01}}>
        {{ w = DequantizeLinear(steps, scale) y = MatMul(x, w) }}"""


def in_steps(court: Court, steps: int) -> Callable[[Array], Array]:
    """What a product gives whose first factor was rounded, row by row, to so many steps on either side."""
    x = inputs_of(court)["x"]
    step = np.abs(x).max(axis=-1, keepdims=True) / steps
    lost = (np.rint(x / step) * step - x).astype(np.float32)
    weights = np.random.default_rng(3).integers(-7, 8, 64 * 32).reshape(64, 32).astype(np.float32) * 0.01
    return lambda right: right + lost @ weights


CPU = "CPUExecutionProvider"


def judged_by_blocks(
    folder: Path, axes: dict[str, list[str]] | None = None, *, steps: int = 127, provider: str = CPU
) -> Record:
    court = Court(folder, by_blocks(), provider, axes=axes or {})
    return court.judge(in_steps(court, steps))


def test_a_factor_that_onnxruntime_rounds_to_int8_is_known(tmp_path: Path) -> None:
    record = judged_by_blocks(tmp_path)
    assert record.verdict is Verdict.PASS, record.reason
    assert record.approximate.endswith("which onnxruntime's MatMulNBits (accuracy_level 4: int8) allows")
    record = judged_by_blocks(tmp_path / "coarser", steps=15)
    assert record.verdict is Verdict.MISMATCH
    assert "x the error that onnxruntime's MatMulNBits (accuracy_level 4: int8) allows" in record.reason


def test_it_is_known_of_files_that_the_cpu_ep_has_written_and_of_no_other_ep(tmp_path: Path) -> None:
    written = judged_by_blocks(tmp_path, {"scenario": ["ort_format"]}, provider=WEBGPU)
    assert written.verdict is Verdict.PASS, written.reason
    own = judged_by_blocks(tmp_path / "own", provider=WEBGPU)
    assert own.verdict is Verdict.MISMATCH
    assert "MatMulNBits" not in own.reason


@pytest.mark.parametrize(
    "axes",
    [{"graph_optimization": ["basic"]}, {"precision": ["ep:int-acc-1"]}, {"precision": ["ep:qdq-unfused"]}],
)
def test_it_excuses_nothing_where_onnxruntime_does_not_do_it(
    tmp_path: Path, axes: dict[str, list[str]]
) -> None:
    assert judged_by_blocks(tmp_path, axes).verdict is Verdict.MISMATCH


def test_it_is_known_of_what_is_left_to_the_cpu_ep() -> None:
    rule = CellRule(
        wider=(Wider(noise_at="float16", delivers="float16"), Wider(noise_at="a", on_cpu="MatMul"))
    )
    partly = placement_of({"Add": 1}, {"MatMul": 2}, source="profile")
    assert with_placement(rule, partly) == rule
    none = msgspec.structs.replace(partly, ep_nodes=0, ep_ops={})
    assert [one.on_cpu for one in with_placement(rule, none).wider] == ["MatMul"]
    whole = msgspec.structs.replace(partly, cpu_nodes=0, cpu_ops={})
    assert [one.delivers for one in with_placement(rule, whole).wider] == ["float16"]


# What ends as bytes of a picture: rounding decides beside the edges between two of them.
BYTES = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (uint8[4, 64] y) {
    c = Constant<value_float = 255.0>() g = Sigmoid(x) m = Mul(g, c) r = Round(m) y = Cast<to = 2>(r) }"""

STORED = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (float[4, 64] y) {
    c = Constant<value_float = 1.5>() h = Cast<to = 16>(c) w = Cast<to = 1>(h) m = Mul(x, w) y = Tanh(m) }"""


def shade(x: Array, of: Callable[[Array], Array] = lambda value: value) -> Array:
    """The bytes by hand."""
    return np.round(of(255 * of(1 / (1 + np.exp(-of(x)))))).astype(np.uint8)


def test_bytes_may_differ_where_rounding_moves_them(tmp_path: Path) -> None:
    court = Court(tmp_path, BYTES)
    record = court.judge(lambda _: shade(inputs_of(court)["x"].astype(np.float64)))
    assert record.verdict is Verdict.PASS
    off = Court(tmp_path / "off", BYTES)
    assert off.judge(lambda right: right + np.uint8(1)).verdict is Verdict.MISMATCH
    one = Court(tmp_path / "one", BYTES)

    def changed(right: Array) -> Array:
        far = np.abs(255 / (1 + np.exp(-inputs_of(one)["x"].astype(np.float64))) % 1 - 0.5)
        found = right.copy()
        found.reshape(-1)[far.argmax()] += 1  # the element that is furthest from any edge
        return found

    record = one.judge(changed)
    assert record.verdict is Verdict.MISMATCH
    assert record.outputs[0].noise is not None
    assert record.outputs[0].noise.unmoved == 1


def test_a_delivered_precision_moves_bytes_further(tmp_path: Path) -> None:
    court = Court(tmp_path, BYTES, OPENVINO)
    record = court.judge(lambda _: shade(inputs_of(court)["x"], bfloat16))
    assert record.verdict is Verdict.PASS
    assert record.approximate.startswith("output 'y': computed in bfloat16 by the EP's own default")


def test_what_a_weight_is_stored_in_excuses_nothing(tmp_path: Path) -> None:
    court = Court(tmp_path, STORED)
    record = court.judge(lambda right: right * np.float32(1.0002))
    assert record.verdict is Verdict.MISMATCH
    assert (record.precision, record.finest) == ("bfloat16", "float32")


def test_a_record_does_not_depend_on_the_cache(tmp_path: Path) -> None:
    court = Court(tmp_path)
    first = court.judge(lambda right: np.nextafter(right, np.float32(2)))
    court.judge(lambda right: right * np.float32(1.001))  # needs the noise, which is kept
    again = court.judge(lambda right: np.nextafter(right, np.float32(2)))
    assert (first.outputs, first.answered) == (again.outputs, again.answered)
    assert first.outputs[0].noise is None
