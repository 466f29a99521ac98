"""What a judgement asks for before it falls: noise, references, converted models."""

import importlib
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.parser
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from harness.core.values.value import Tensor, tensor
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.case import Case
from harness.engine.measuring import measure
from harness.engine.questions import next_step
from harness.engine.tasks.outcome import Died, Ending, Hung, Made, Raised, Ran
from harness.engine.tasks.task import CellTask, Question, QuestionKind
from harness.golden.provenance import SESSION
from tests.engine.pipelines import WaitingPipeline
from tests.kit import of_folder, placement_of

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (float[4, 8] y) <float[64, 8] w> { p = MatMul(x, w) y = Softmax(p) }"""
ON_THE_EP = placement_of({"MatMul": 1, "Softmax": 1})
onnxruntime: Any = importlib.import_module("onnxruntime")  # its types leave out what is used here
Level = onnxruntime.GraphOptimizationLevel


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goldens, noises and converted models of each test lie apart."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))


UNDEFINED_CAST = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (uint8[4, 64] y) {
    low = Constant<value_float = LOW>() a = Tanh(x) b = Add(a, low) y = Cast<to = 2>(b) }"""


UNSELECTED_CAST = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (float[4, 64] y) {
    none = Constant<value_float = 0.0>() positive = Greater(x, none) p = Abs(x) r = Relu(x) l = Log(r)
    w = Cast<to = 7>(l) c = Cast<to = 1>(w) b = Where(positive, c, p) y = Add(CHOSEN, p) }"""


INSENSITIVE = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (float[4, 64] y) {
    tiny = Constant<value_float = 1e-12>() s = Softmax(x) m = Mul(s, tiny) y = Add(x, m) }"""


def write(path: Path, text: str = MODEL) -> None:
    model = onnx.parser.parse_model(text)
    if text == MODEL:
        weight = np.random.default_rng(3).standard_normal((64, 8)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


class Court(WaitingPipeline):
    """A pipeline whose questions the CPU EP of this process answers.

    Attributes:
        asked: Kinds of the questions so far.
        answers: Kind of a question -> what is answered instead.
    """

    def __init__(
        self, folder: Path, model: str = MODEL, provider: str = "XnnpackExecutionProvider", **table: Any
    ) -> None:
        write(folder / "models" / "one.onnx", model)
        super().__init__(folder, of_folder({"name": "ep", "provider": provider}, **table))
        self.cells = self.plan.cells
        self.asked: list[str] = []
        self.answers: dict[str, Callable[[Case], Ending]] = {}

    def judge(self, result: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]], at: int = 0) -> Record:
        """The record of a cell whose EP gives what ``result`` makes of the CPU EP's answer."""
        cell: Cell = self.cells[at]
        task = CellTask(cell=cell)
        self.pipeline.open += 1
        while self.pipeline.questions.awaits(task):
            self.settle()
        case = self.pipeline.case(task)
        if not isinstance(case, Case):
            self.pipeline.conclude(task, case)
        else:
            ((name, right),) = computed(case).outputs[0]
            assert isinstance(right, Tensor)
            outputs = (((name, tensor(result(right.array).astype(right.array.dtype))),),)
            self.pipeline.conclude(task, Ran(outputs=outputs, placement=ON_THE_EP, timings_ms={}))
            self.settle()
        assert self.pipeline.open == 0
        return self.records[-1]

    def settle(self) -> None:
        """Answer every question, and those that come of the answers."""
        while self.queue:
            task = self.queue.pop(0)
            if isinstance(task, CellTask):  # with other generated inputs, which are not tried here
                self.pipeline.abandon(task, "")
                continue
            question = task.about
            self.asked.append(question.kind)
            case = self.pipeline.case(task)
            assert isinstance(case, Case), case
            answer = self.answers.get(question.kind, lambda case, question=question: answered(question, case))
            self.pipeline.conclude(task, answer(case))


def answered(question: Question, case: Case) -> Ending:
    return computed(
        case,
        optimized=question.kind is not QuestionKind.UNOPTIMIZED,
        by_reference=question.kind.without_session,
    )


def computed(case: Case, *, optimized: bool = True, by_reference: bool = False) -> Ran:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = Level.ORT_ENABLE_ALL if optimized else Level.ORT_DISABLE_ALL
    for key, value in SESSION.items():
        options.add_session_config_entry(key, value)
    session: Any
    if by_reference:
        session = ReferenceEvaluator(str(case.model_path))
    else:
        session = onnxruntime.InferenceSession(
            str(case.model_path), options, providers=["CPUExecutionProvider"]
        )
    outputs = []
    for data_set in case.data_sets:
        feed = {name: value.array for name, value in data_set.inputs if isinstance(value, Tensor)}
        found = session.run(list(case.outputs), feed)
        outputs.append(
            tuple((name, tensor(np.asarray(one))) for name, one in zip(case.outputs, found, strict=True))
        )
    return Ran(outputs=tuple(outputs), placement=ON_THE_EP, timings_ms={})


def off_by(relative: float) -> Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """Errors of both signs."""
    return lambda right: (
        right * (1 + relative * np.where(np.arange(right.size) % 2, 1, -1).reshape(right.shape))
    )


def test_an_exact_result_asks_for_nothing_but_the_golden(tmp_path: Path) -> None:
    court = Court(tmp_path)
    record = court.judge(lambda right: right)
    assert record.verdict is Verdict.PASS
    assert court.asked == ["answer", QuestionKind.ZEROED]
    assert record.outputs[0].noise is None


def test_an_inexact_result_is_given_in_units_of_the_models_noise(tmp_path: Path) -> None:
    court = Court(tmp_path)
    record = court.judge(off_by(5e-7))
    assert record.verdict is Verdict.PASS
    assert court.asked == ["answer", QuestionKind.NOISE, QuestionKind.ZEROED]
    noise = record.outputs[0].noise
    assert noise is not None
    assert noise.precision == noise.like == "float32"
    assert 0.2 < noise.rms < 4
    assert noise.rms_limit is not None
    again = Court(tmp_path)  # all is kept beside the golden
    assert again.judge(off_by(5e-7)).outputs == record.outputs
    assert again.asked == []


def test_limits_find_what_the_table_lets_pass(tmp_path: Path) -> None:
    fault = off_by(5e-5)
    assert Court(tmp_path / "table", tolerance=[{"table_only": True}]).judge(fault).verdict is Verdict.PASS
    court = Court(tmp_path / "noise")
    record = court.judge(fault)
    assert record.verdict is Verdict.MISMATCH
    assert "rounding noise" in record.reason
    noise = record.outputs[0].noise
    assert noise is not None
    assert noise.rms_limit is not None
    assert noise.rms > noise.rms_limit
    assert record.outputs[0].headroom is not None
    assert record.outputs[0].headroom > 1
    (row,) = record.adjudication
    assert row.nearer == "golden"
    assert row.golden < 1e-6 < row.ep


def test_what_a_provider_computes_in_by_its_own_default_explains_an_error(tmp_path: Path) -> None:
    court = Court(tmp_path, provider="CUDAExecutionProvider", tolerance=[{"noise": {}}])
    record = court.judge(off_by(5e-5))
    assert record.verdict is Verdict.PASS
    assert record.reason == "the EP delivers tf32 by its own default"


def test_limits_let_pass_what_is_noise(tmp_path: Path) -> None:
    court = Court(tmp_path, tolerance=[{"noise": {}}])
    record = court.judge(off_by(3e-7))
    assert record.verdict is Verdict.PASS
    assert record.outputs[0].noise is not None
    assert record.outputs[0].noise.rms_limit is not None
    assert set(court.asked) == {"answer", QuestionKind.NOISE, QuestionKind.ZEROED}


def test_without_noise_the_table_judges_and_the_record_says_why(tmp_path: Path) -> None:
    court = Court(tmp_path, tolerance=[{"noise": {}}])
    court.answers[QuestionKind.NOISE] = lambda _: Died(phase=Phase.RUN, cause="SIGSEGV")
    record = court.judge(off_by(5e-5))
    assert record.verdict is Verdict.PASS
    assert record.no_spread == "the model does not run with noise: the CPU EP crashed: SIGSEGV"
    assert record.outputs[0].noise is None


def test_a_cell_is_measured_once_whatever_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outputs are compared again after the noise alone, and its rule is derived once."""
    counts = Counter[str]()

    def counted(module: Any, name: str) -> None:
        real = getattr(module, name)

        def call(*arguments: Any, **settings: Any) -> Any:
            counts[f"{module.__name__.rpartition('.')[2]}.{name}"] += 1
            return real(*arguments, **settings)

        monkeypatch.setattr(module, name, call)

    counted(next_step, "rule_of")
    counted(next_step, "measure")
    counted(next_step, "with_answer")
    counted(measure, "measure")
    counted(measure, "check_references")
    court = Court(tmp_path)
    record = court.judge(off_by(1e-2))
    assert record.answered == ("noise", "repeated", "references")
    assert counts == {
        "next_step.rule_of": 1,
        "next_step.measure": 1,
        "next_step.with_answer": 3,
        "measure.measure": 1,
        "measure.check_references": 1,
    }
    assert not court.pipeline.next_step.trials  # nothing of it is kept


def test_references_are_heard_before_a_golden_fails_anybody(tmp_path: Path) -> None:
    court = Court(tmp_path)
    record = court.judge(off_by(1e-2))
    assert record.verdict is Verdict.MISMATCH
    assert {"unoptimized", "evaluated", "float64-evaluated"} <= set(court.asked)
    assert "float64" not in court.asked  # one answer in float64 is enough
    assert [row.nearer for row in record.adjudication] == ["golden"]
    again = Court(tmp_path)
    assert again.judge(off_by(1e-2)).verdict is Verdict.MISMATCH
    assert again.asked == ["repeated"]  # whether the golden can be repeated is asked in each run


def test_references_are_heard_where_only_a_usual_tolerance_would_fail(tmp_path: Path) -> None:
    court = Court(tmp_path, tolerance=[{"table_only": True}])
    record = court.judge(off_by(5e-5))
    assert (record.verdict, record.adjudication) == (Verdict.PASS, ())
    assert {"unoptimized", "evaluated", "float64-evaluated"} <= set(court.asked)
    assert record.reference_check is not None
    assert [reference.name for reference in record.reference_check.references] == [
        "onnx.reference",
        "the CPU EP without optimizations",
        "float64, node by node",
    ]
    assert [row.nearer for row in record.reference_check.adjudication] == ["golden"]
    assert Court(tmp_path).judge(off_by(1e-7)).reference_check is None


def test_a_golden_that_all_others_contradict_fails_nobody(tmp_path: Path) -> None:
    court = Court(tmp_path)

    def wrong(case: Case) -> Ran:
        ((name, right),) = computed(case).outputs[0]
        assert isinstance(right, Tensor)
        return Ran(
            outputs=(((name, tensor(off_by(1e-2)(right.array).astype(np.float32))),),),
            placement=ON_THE_EP,
            timings_ms={},
        )

    court.answers["answer"] = court.answers["repeated"] = wrong
    record = court.judge(lambda right: right)
    assert record.verdict is Verdict.PASS
    assert record.reason.startswith("right by float64, node by node: the golden is off by")


def test_without_float64_node_by_node_the_cpu_ep_s_counts_and_without_both_the_record_says_why(
    tmp_path: Path,
) -> None:
    court = Court(tmp_path)
    court.answers["float64-evaluated"] = lambda _: Raised(
        phase=Phase.RUN, kind="Error", message="nothing computes Abc"
    )
    record = court.judge(off_by(1e-2))
    assert [row.by for row in record.adjudication] == ["float64 on the CPU EP"]
    assert record.reference_check is not None
    assert record.reference_check.no_float64 == ""
    other = Court(tmp_path / "other")
    other.answers["float64-evaluated"] = court.answers["float64-evaluated"]
    other.answers["float64"] = lambda _: Raised(phase=Phase.CREATE, kind="Error", message="no kernel")
    record = other.judge(off_by(1e-2))
    assert record.adjudication == ()
    assert record.reference_check is not None
    assert "nothing computes Abc" in record.reference_check.no_float64


def test_slow_references_are_not_waited_for_again(tmp_path: Path) -> None:
    court = Court(tmp_path)
    court.answers["evaluated"] = lambda _: Died(phase=Phase.RUN, cause="SIGKILL")
    assert court.judge(off_by(1e-2)).verdict is Verdict.MISMATCH
    again = Court(tmp_path)
    again.judge(off_by(1e-2))
    assert "evaluated" not in again.asked


AT_INT8: dict[str, Any] = {"axes": {"precision": ["int8-dynamic"]}}


def court_at_int8(folder: Path) -> Court:
    """One whose converter rounds the weight."""
    court = Court(folder, **AT_INT8)
    model = onnx.parser.parse_model(MODEL)
    weight = np.random.default_rng(3).standard_normal((64, 8)).round(1).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    content = np.frombuffer(model.SerializeToString(), np.uint8)
    court.answers[QuestionKind.MADE] = lambda _: Made(content=tensor(content))
    return court


def test_a_precision_waits_for_its_model(tmp_path: Path) -> None:
    court = court_at_int8(tmp_path)
    record = court.judge(lambda right: right)
    assert court.asked[:2] == [
        "answer",
        QuestionKind.MADE,
    ]  # a model that the CPU EP refuses is not converted
    assert record.verdict is Verdict.PASS
    error = record.outputs[0].precision_error
    assert error is not None
    assert error.cpu_error
    assert error.ratio == pytest.approx(1.0)
    noise = record.outputs[0].noise
    assert noise is not None, (court.asked, record)
    assert (noise.precision, noise.rms_limit) == ("bfloat16", None)


def test_references_speak_of_the_model_as_it_came(tmp_path: Path) -> None:
    court = court_at_int8(tmp_path)
    record = court.judge(lambda right: right[:, ::-1])
    assert record.verdict is Verdict.MISMATCH
    assert {"evaluated", QuestionKind.UNOPTIMIZED, "float64-evaluated"} <= set(court.asked)
    (told,) = record.adjudication
    assert (told.by, told.nearer) == ("float64, node by node", "golden")
    assert told.golden < 1e-5 < told.ep
    assert record.reference_check is not None


def test_a_golden_that_references_dispute_fails_no_precision(tmp_path: Path) -> None:
    court = court_at_int8(tmp_path)

    def wrong(case: Case) -> Ran:
        ran = computed(case)
        ((name, right),) = ran.outputs[0]
        assert isinstance(right, Tensor)
        return msgspec.structs.replace(ran, outputs=(((name, tensor(right.array[:, ::-1].copy())),),))

    court.answers["answer"] = court.answers[QuestionKind.ROUNDED] = wrong
    record = court.judge(lambda right: right)
    assert record.verdict is Verdict.REFERENCE_DISPUTED
    assert "the CPU EP without optimizations differs" in record.reason


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (Made(reason="no product by a constant"), "int8-dynamic does not apply: no product by a constant"),
        (
            Died(phase=Phase.RUN, cause="SIGSEGV"),
            "int8-dynamic does not apply: the converter crashed: SIGSEGV",
        ),
    ],
)
def test_a_precision_that_does_not_apply_tries_nothing(tmp_path: Path, ending: Ending, reason: str) -> None:
    court = Court(tmp_path, **AT_INT8)
    court.answers[QuestionKind.MADE] = lambda _: ending
    record = court.judge(lambda right: right)
    assert record.verdict is Verdict.DECLARED
    assert record.reason == reason


@pytest.mark.parametrize(
    ("ending", "asked"),
    [
        (Hung(phase=Phase.CREATE, limit_s=300.0), 2),
        (Died(phase=Phase.CREATE, cause="SIGSEGV"), 2),
        (Died(phase=Phase.CREATE, cause="0xC0000005: access violation"), 2),
        # What the machine or somebody else may be to blame for is tried in each run.
        (Died(phase=Phase.CREATE, cause="SIGKILL"), 4),
        (Died(phase=Phase.CREATE, cause="SIGBUS"), 4),
        (Died(phase=Phase.CREATE, cause="SIGABRT", printed="what():  std::bad_alloc"), 4),
        (Died(phase=Phase.CREATE, cause="exit code 1"), 4),
        (Raised(phase=Phase.CREATE, kind="OSError", message="No space left on device"), 4),
    ],
)
def test_a_converter_that_fails_in_two_runs_is_not_asked_again(
    tmp_path: Path, ending: Ending, asked: int
) -> None:
    courts = [Court(tmp_path, **AT_INT8) for _ in range(4)]  # each is a run; they share the cache
    records = []
    for court in courts:
        court.answers[QuestionKind.MADE] = lambda _: ending
        records.append(court.judge(lambda right: right))
    assert {record.verdict for record in records} == {Verdict.DECLARED}
    assert sum(court.asked.count(QuestionKind.MADE) for court in courts) == asked
    assert records[-1].reason.endswith("failed in an earlier run, too") == (asked == 2)


def test_a_golden_that_another_process_does_not_repeat_fails_nobody(tmp_path: Path) -> None:
    court = Court(tmp_path)

    def moved(case: Case) -> Ran:
        ((name, right),) = computed(case).outputs[0]
        assert isinstance(right, Tensor)
        other = tensor(off_by(1e-2)(right.array).astype(np.float32))
        return Ran(outputs=(((name, other),),), placement=ON_THE_EP, timings_ms={})

    court.answers["repeated"] = moved
    record = court.judge(off_by(1e-2))
    assert record.verdict is Verdict.REFERENCE_DISPUTED
    assert "another result each time" in record.reason
    court.answers["repeated"] = lambda _: Hung(phase=Phase.RUN, limit_s=20)
    again = Court(tmp_path / "slow")
    again.answers = court.answers
    assert again.judge(off_by(1e-2)).verdict is Verdict.MISMATCH  # what is too slow says nothing


@pytest.mark.parametrize(("low", "verdict"), [("-3.0", Verdict.UNDEFINED_INPUT), ("3.0", Verdict.MISMATCH)])
def test_a_wrong_answer_to_undefined_values_is_not_the_fault_of_the_ep(
    tmp_path: Path, low: str, verdict: Verdict
) -> None:
    court = Court(tmp_path, UNDEFINED_CAST.replace("LOW", low))
    record = court.judge(lambda right: right + 1)
    assert QuestionKind.UNDEFINED in court.asked
    assert record.verdict is verdict
    told = "to uint8, which holds 0 to 255" in record.reason
    assert told is (verdict is Verdict.UNDEFINED_INPUT)
    asked_before = list(court.asked)
    assert court.judge(lambda right: right).verdict is Verdict.PASS
    assert court.asked == [*asked_before, QuestionKind.ZEROED]  # a right answer needs no excuse


@pytest.mark.parametrize("chosen", ["b", "c"])
def test_an_undefined_value_excuses_only_the_elements_that_hold_it(tmp_path: Path, chosen: str) -> None:
    """No element of ``b`` is undefined; of ``c`` those whose logarithm is that of 0."""
    court = Court(tmp_path, UNSELECTED_CAST.replace("CHOSEN", chosen))
    record = court.judge(lambda right: right + 1)
    assert {QuestionKind.SETTLED_LOW, QuestionKind.SETTLED_HIGH} <= set(court.asked)
    assert record.verdict is Verdict.MISMATCH
    assert record.undefined == {}


def test_a_wrong_answer_where_alone_it_is_undefined_is_right(tmp_path: Path) -> None:
    court = Court(tmp_path, UNSELECTED_CAST.replace("CHOSEN", "c"))
    undefined: list[int] = []

    def saturated(right: NDArray[np.float32]) -> NDArray[np.float32]:
        undefined.append(int((right < -1e18).sum()))  # int64's least number
        return np.where(right < -1e18, np.float32(0), right)

    record = court.judge(saturated)
    (row,) = record.outputs
    assert record.verdict is Verdict.PASS
    assert row.details is not None
    assert row.details.undefined == undefined[0] > 0


def test_an_output_of_which_most_is_undefined_tells_nothing(tmp_path: Path) -> None:
    text = (
        UNSELECTED_CAST.replace("CHOSEN", "c")
        .replace("Relu(x)", "Relu(n)")
        .replace(
            "positive = Greater", "one = Constant<value_float = 1.0>() n = Sub(x, one) positive = Greater"
        )
    )
    record = Court(tmp_path, text).judge(lambda right: right + 1)
    assert record.verdict is Verdict.UNDEFINED_INPUT


@pytest.mark.parametrize("contested", [False, True])
def test_expected_data_define_a_result_unless_onnx_contradicts_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    contested: bool,  # noqa: FBT001
) -> None:
    low = -3.0
    data = tmp_path / "models" / "test_data_set_0"
    data.mkdir(parents=True)
    given = np.zeros((4, 64), np.float32)
    expected = (given + low).astype(np.int8).view(np.uint8)
    for name, value in (("input_0.pb", given), ("output_0.pb", expected)):
        (data / name).write_bytes(onnx.numpy_helper.from_array(value).SerializeToString())
    reason = f"Cast of {low:.6g} to uint8, which holds 0 to 255"
    monkeypatch.setattr("harness.engine.questions.inquiry.CONTESTED", {reason} if contested else set())
    record = Court(tmp_path, UNDEFINED_CAST.replace("LOW", str(low))).judge(lambda right: right + 1)
    assert record.verdict is (Verdict.UNDEFINED_INPUT if contested else Verdict.MISMATCH)


def test_a_right_answer_to_which_a_node_adds_nothing_has_a_weak_golden(tmp_path: Path) -> None:
    court = Court(tmp_path, INSENSITIVE)
    record = court.judge(lambda right: right)
    assert QuestionKind.ZEROED in court.asked
    assert record.verdict is Verdict.PASS
    assert record.weak_golden == "zeros in place of what the EP computes would go unnoticed: Softmax"
    sensitive = Court(tmp_path / "other").judge(lambda right: right)
    assert (sensitive.verdict, sensitive.weak_golden) == (Verdict.PASS, "")


NOISY = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float16[4, 64] x) => (float16[4, 64] y) {
    wide = Constant<value_float = 400.0>() far = Cast<to = 10>(wide) s = Add(x, far) y = Sub(s, far) }"""
"""Float16 keeps a quarter of a unit of its sum."""


def test_an_answer_that_only_noise_excuses_rests_on_a_weak_golden(tmp_path: Path) -> None:
    def off(right: NDArray[Any]) -> NDArray[Any]:
        return right + np.where(np.arange(right.size).reshape(right.shape) % 2, 0.25, -0.25)

    record = Court(tmp_path, NOISY).judge(off)
    assert record.verdict is Verdict.PASS
    assert re.fullmatch(
        r"output 'y' is off by 2\d%; its rounding noise excuses .* zeros .*", record.weak_golden
    )
    near = Court(tmp_path, NOISY).judge(off_by(1e-3))
    assert (near.verdict, near.weak_golden) == (Verdict.PASS, "")


def test_a_wide_tolerance_makes_a_golden_weak_as_noise_does(tmp_path: Path) -> None:
    wide = {"rtol": 0.0, "atol": 1.0}
    record = Court(tmp_path, NOISY, tolerance=[wide]).judge(lambda right: right * 0.75)
    assert record.verdict is Verdict.PASS
    assert "off by 25%; the tolerance excuses that" in record.weak_golden


def test_what_is_wrong_needs_no_zeros(tmp_path: Path) -> None:
    court = Court(tmp_path, INSENSITIVE)
    assert court.judge(lambda right: right + 1).verdict is Verdict.MISMATCH
    assert QuestionKind.ZEROED not in court.asked


QUANTIZED = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 64] x) => (float[4, 64] y) {
    scale = Constant<value_float = 0.5>() zero = Constant<value = uint8 {3}>()
    q = QuantizeLinear(x, scale, zero) y = DequantizeLinear(q, scale, zero) }"""


@pytest.mark.parametrize(
    ("model", "provider", "verdict"),
    [
        (QUANTIZED, "XnnpackExecutionProvider", Verdict.NO_GOLDEN),
        (QUANTIZED, "CPUExecutionProvider", Verdict.ERROR),
        (MODEL, "XnnpackExecutionProvider", Verdict.ERROR),
    ],
)
def test_no_ep_is_blamed_for_quantized_operators_that_the_cpu_ep_fuses_wrongly(
    tmp_path: Path, model: str, provider: str, verdict: Verdict
) -> None:
    """Goldens are made without that, so the CPU EP is asked again, in a session as the target makes it."""
    court = Court(tmp_path, model, provider)
    refusal = Raised(phase=Phase.CREATE, kind="Fail", message="qlinear_lookup_table.cc: not a scalar")
    court.answers["fused"] = lambda _: refusal
    task = CellTask(cell=court.cells[0])
    court.pipeline.open += 1
    while court.pipeline.questions.awaits(task):
        court.settle()
    court.pipeline.conclude(task, refusal)
    court.settle()
    assert court.records[-1].verdict is verdict
    assert ("fused" in court.asked) is (verdict is Verdict.NO_GOLDEN)


def test_the_session_of_that_question_fuses_as_applications_do() -> None:
    question = Question(suite="m", model="one", kind=QuestionKind.FUSED)
    entries = {"session.disable_quant_qdq": "0", "session.x64quantprecision": "0"}
    assert question.job_fields() == {"entries": entries}
