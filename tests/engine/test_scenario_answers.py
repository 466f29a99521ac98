"""Scenarios in the pipeline: what the CPU provider is asked, and what its answers mean. No process runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.records.cell import Cell
from harness.core.records.verdict import Phase, Verdict
from harness.core.text.errors import UsageError
from harness.core.values.value import Tensor, tensor
from harness.corpus.beside import value_file
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.case import Case
from harness.corpus.derived.external_copy import SMALLEST
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.protos import TooLargeError
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.messages import ProtocolError, RunResult
from harness.engine.tasks.outcome import ExpectedResult, Outcome, Raised, Ran, Unsupported, from_result
from harness.engine.tasks.task import CellTask, QuestionTask, Task
from tests.engine.pipelines import WaitingPipeline
from tests.kit import placement_of, write_model

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[batch, width] x) => (float[batch, width] y) { y = Relu(x) }"""
PLACEMENT = placement_of({"Relu": 1})


class PipelineBench(WaitingPipeline):
    """A pipeline whose questions and cells wait in a list for the test to answer."""

    def __init__(self, folder: Path) -> None:
        write_model(folder / "models" / "one.onnx", MODEL)
        table = {
            "models": {"folders": ["models"], "dimensions": {"batch": 1, "width": 4}},
            "axes": {"scenario": ["plain", "dynamic_shapes", "from_bytes", "external_data"]},
            "target": [{"name": "ep", "provider": "CUDAExecutionProvider"}],
        }
        super().__init__(folder, table)

    def submit(self, scenario: str) -> Task:
        cell = next(cell for cell in self.plan.cells if cell.axis("scenario") == scenario)
        self.pipeline.open += 1
        return task_of(cell)

    def question(self) -> QuestionTask:
        (task,) = self.queue
        self.queue.clear()
        assert isinstance(task, QuestionTask)
        return task

    def case(self, task: Task) -> Case:
        case = self.pipeline.case(task)
        assert isinstance(case, Case), case
        return case

    def ran(self, task: Task, **fields: Any) -> Ran:
        """What a provider makes of a task that computes it."""
        outputs = []
        for data_set in self.case(task).data_sets:
            value = dict(data_set.inputs)["x"]
            assert isinstance(value, Tensor)
            outputs.append((("y", tensor(np.maximum(value.array, 0))),))
        return Ran(outputs=tuple(outputs), placement=PLACEMENT, timings_ms={}, **fields)


def task_of(cell: Cell) -> Task:
    return CellTask(cell=cell)


def raised(data_set: int | None = None, phase: Phase = Phase.RUN) -> Raised:
    return Raised(phase=phase, kind="Fail", message="no", data_set=data_set)


@pytest.fixture
def bench(tmp_path: Path) -> PipelineBench:
    return PipelineBench(tmp_path)


@pytest.fixture
def fed(bench: PipelineBench) -> PipelineBench:
    """A bench that knows that the model runs with the inputs that were generated first."""
    task = bench.submit("plain")
    assert bench.pipeline.questions.awaits(task)
    golden = bench.question()
    bench.pipeline.conclude(golden, bench.ran(golden))
    bench.pipeline.conclude(task, bench.ran(task))
    bench.records.clear()
    return bench


@pytest.fixture
def new_bench(tmp_path: Path) -> Callable[[], PipelineBench]:
    return lambda: PipelineBench(tmp_path)


def names(case: Case) -> list[str]:
    return [data_set.name for data_set in case.data_sets]


def test_a_scenario_inside_the_agent_has_the_golden_of_plain(bench: PipelineBench) -> None:
    plain, bytes_ = bench.submit("plain"), bench.submit("from_bytes")
    assert bench.pipeline.questions.foresee(plain)
    assert bench.pipeline.questions.foresee(bytes_)
    question = bench.question()  # one for both
    assert question.about.scenario == "plain"
    bench.pipeline.conclude(question, bench.ran(question))
    bench.pipeline.conclude(plain, bench.ran(plain))
    bench.pipeline.conclude(bytes_, bench.ran(bytes_, scenario={"bytes": 7}))
    assert not bench.queue
    assert [record.verdict for record in bench.records] == [Verdict.PASS, Verdict.PASS]
    assert [record.scenario for record in bench.records] == [{}, {"bytes": 7}]
    assert bench.pipeline.open == 0


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (raised(), Verdict.NO_GOLDEN),
        (Unsupported(phase=Phase.CREATE, message="not here"), Verdict.ERROR),
        (None, Verdict.ERROR),
    ],
)
def test_an_error_is_excused_by_the_cpu_provider_in_the_same_scenario(
    bench: PipelineBench, answer: Outcome | None, verdict: Verdict
) -> None:
    task = bench.submit("from_bytes")
    bench.pipeline.questions.foresee(task)
    golden = bench.question()
    bench.pipeline.conclude(golden, bench.ran(golden))
    bench.pipeline.conclude(task, raised())
    assert not bench.records
    question = bench.question()
    assert question.about.scenario == "from_bytes"
    bench.pipeline.conclude(question, answer or bench.ran(question, scenario={"bytes": 7}))
    while bench.queue:  # a failure is tried with other generated inputs, too
        bench.pipeline.conclude(bench.queue.pop(), raised())
    assert [record.verdict for record in bench.records] == [verdict]
    assert bench.pipeline.open == 0


def test_what_is_refused_plainly_is_not_asked_again(bench: PipelineBench) -> None:
    task = bench.submit("from_bytes")
    bench.pipeline.questions.foresee(task)
    bench.pipeline.conclude(bench.question(), raised(phase=Phase.CREATE))
    bench.pipeline.conclude(task, raised(phase=Phase.CREATE))
    assert not bench.queue
    assert [record.verdict for record in bench.records] == [Verdict.NO_GOLDEN]


def test_an_opinion_in_a_scenario_is_no_golden(bench: PipelineBench) -> None:
    task = bench.submit("from_bytes")
    bench.pipeline.questions.foresee(task)
    golden = bench.question()
    bench.pipeline.conclude(golden, bench.ran(golden))
    bench.pipeline.conclude(task, raised())
    bench.pipeline.conclude(bench.question(), raised())
    plain = bench.submit("plain")
    assert not bench.pipeline.questions.foresee(plain)
    bench.pipeline.conclude(plain, bench.ran(plain))
    assert bench.records[-1].verdict is Verdict.PASS


def test_shapes_wait_for_the_cpu_provider_and_lose_those_that_it_refuses(
    fed: PipelineBench, new_bench: Callable[[], PipelineBench]
) -> None:
    task = fed.submit("dynamic_shapes")
    assert fed.pipeline.questions.awaits(task)
    assert not fed.pipeline.questions.awaits(fed.submit("plain"))
    assert fed.pipeline.questions.foresee(task)
    first = fed.question()
    assert names(fed.case(first)) == ["given", "batch=2", "width=2", "given"]
    fed.pipeline.conclude(first, raised(data_set=2))
    assert fed.pipeline.questions.foresee(task)
    second = fed.question()
    assert names(fed.case(second)) == ["given", "batch=2", "given"]
    fed.pipeline.conclude(second, fed.ran(second))
    assert not fed.pipeline.questions.foresee(task)
    fed.pipeline.conclude(task, fed.ran(task, scenario={"run_ms": (1.0, 2.0, 1.0)}))
    (record,) = fed.records
    assert record.verdict is Verdict.PASS
    assert [output.name for output in record.outputs] == ["y", "1/y", "2/y"]
    assert record.scenario == {
        "shapes": ("given", "batch=2", "given"),
        "refused": ("with width=2: Fail: no",),
        "run_ms": (1.0, 2.0, 1.0),
    }
    later = new_bench()  # the goldens are kept, so nothing is asked
    again = later.submit("dynamic_shapes")
    assert not later.pipeline.questions.foresee(again)
    assert names(later.case(again)) == ["given", "batch=2", "given"]


def test_a_model_whose_weights_fix_every_shape_is_not_tried(fed: PipelineBench) -> None:
    task = fed.submit("dynamic_shapes")
    for _ in range(2):
        assert fed.pipeline.questions.foresee(task)
        fed.pipeline.conclude(fed.question(), raised(data_set=1))
    assert not fed.pipeline.questions.foresee(task)
    case = fed.pipeline.case(task)
    assert isinstance(case, Inapplicable)
    fed.pipeline.conclude(task, case)
    (record,) = fed.records
    assert record.verdict is Verdict.DECLARED
    assert record.reason == (
        "the CPU EP runs no other shape than the given one: with batch=2: Fail: no; with width=2: Fail: no"
    )


def test_a_model_that_fails_in_its_given_shape_keeps_all(fed: PipelineBench) -> None:
    task = fed.submit("dynamic_shapes")
    fed.pipeline.questions.foresee(task)
    fed.pipeline.conclude(fed.question(), raised(data_set=0))
    assert not fed.pipeline.questions.foresee(task)
    fed.pipeline.conclude(task, raised(data_set=0))
    (record,) = fed.records
    assert record.verdict is Verdict.NO_GOLDEN
    assert record.reason.endswith("with given: Fail: no")


def test_an_error_says_at_which_shape(fed: PipelineBench) -> None:
    task = fed.submit("dynamic_shapes")
    fed.pipeline.questions.foresee(task)
    question = fed.question()
    fed.pipeline.conclude(question, fed.ran(question))
    fed.pipeline.conclude(task, raised(data_set=1))
    (record,) = fed.records
    assert (record.verdict, record.reason) == (Verdict.ERROR, "with batch=2: Fail: no")


def test_a_scenario_that_cannot_be_played_starts_nothing(fed: PipelineBench) -> None:
    task = fed.submit("external_data")
    case = fed.pipeline.case(task)
    assert isinstance(case, Inapplicable)
    assert not fed.pipeline.questions.foresee(task)
    fed.pipeline.conclude(task, case)
    assert fed.records[0].verdict is Verdict.DECLARED
    assert fed.records[0].expected


def test_a_copy_that_finds_no_room_is_no_fault_of_the_model(
    bench: PipelineBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnx.parser.parse_model(MODEL.replace("y = Relu(x)", "y = Add(x, w)"))
    weight = np.zeros((SMALLEST, 4), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "models" / "one.onnx")
    (tmp_path / "cache").touch()
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    task = bench.submit("external_data")
    with pytest.raises(UsageError, match="the cache cannot be filled"):
        bench.pipeline.case(task)
    assert not bench.records


def test_unsupported_is_a_verdict_with_its_facts(bench: PipelineBench) -> None:
    task = bench.submit("from_bytes")
    told = {"status": "unsupported", "phase": "create", "message": "no such thing", "scenario": {"a": 1}}
    bench.pipeline.conclude(task, from_result(result_of(told), Tensors(), "from_bytes"))
    (record,) = bench.records
    assert (record.verdict, record.phase) == (Verdict.UNSUPPORTED, Phase.CREATE)
    assert (record.reason, record.scenario) == ("no such thing", {"a": 1})
    assert not bench.queue


RESULT: dict[str, Any] = {
    "status": "ok",
    "names": [],
    "outputs": [[]],
    "providers": [],
    "providers_after": [],
    "placement": {
        "ep_nodes": 0,
        "cpu_nodes": 0,
        "ep_ops": {},
        "cpu_ops": {},
        "partitions": 0,
        "source": "profile",
    },
    "timings_ms": {},
}


def result_of(told: dict[str, Any]) -> RunResult:
    result: RunResult = msgspec.convert(told, RunResult)
    return result


def test_a_plain_run_does_not_pass_for_a_scenario() -> None:
    assert isinstance(from_result(result_of(RESULT), Tensors()), Ran)
    nothing: list[dict[str, Any]] = [{}, {"scenario": {}}]
    for told in nothing:
        with pytest.raises(ProtocolError, match="reported nothing about the scenario io_binding"):
            from_result(result_of(RESULT | told), Tensors(), "io_binding")
    ran = from_result(result_of(RESULT | {"scenario": {"device": True}}), Tensors(), "io_binding")
    assert isinstance(ran, Ran)
    assert ran.scenario == {"device": True}


@pytest.mark.parametrize("facts", [{"a": None}, {"a": {}}, [1], {"a": [[1]]}, 3])
def test_facts_of_another_form_are_refused(facts: Any) -> None:
    with pytest.raises(ValueError, match="Expected"):
        result_of(RESULT | {"scenario": facts})


def test_facts_are_kept_within_bounds() -> None:
    facts = {f"fact{index}": index for index in range(100)}
    told = {"many": [0] * 100, "long": "x\n" * 999, "odd": 1e999, **facts}
    ran = from_result(result_of(RESULT | {"scenario": told}), Tensors())
    assert isinstance(ran, Ran)
    assert len(ran.scenario) == 64
    assert ran.scenario["many"] == (0,) * 64
    long = ran.scenario["long"]
    assert isinstance(long, str)
    assert len(long) <= 200
    assert "\n" not in long
    assert ran.scenario["odd"] == "inf"


VALUE = {"dtype": "float32", "shape": [1], "data": b"\0\0\0\0"}
NAMED = {**RESULT, "names": ["y", "k"], "outputs": [[VALUE, VALUE]]}
ASKED = ExpectedResult(data_sets=1, outputs=("y", "k"))


def test_a_result_has_what_was_asked_for() -> None:
    assert isinstance(from_result(result_of(NAMED), Tensors(), asked=ASKED), Ran)
    # What outputs a session has is the provider's affair, and a verdict of its own.
    other = {**NAMED, "names": ["y", "z"]}
    assert isinstance(from_result(result_of(other), Tensors(), asked=ASKED), Ran)
    twice = msgspec.structs.replace(ASKED, outputs=("y", "y"))
    assert isinstance(from_result(result_of({**NAMED, "names": ["y", "y"]}), Tensors(), asked=twice), Ran)


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"outputs": []}, "outputs of 0 data sets, and was asked for 1"),
        ({"outputs": [[VALUE, VALUE]] * 2}, "outputs of 2 data sets, and was asked for 1"),
        ({"outputs": [[VALUE]]}, "1 values for 2 outputs"),
        ({"outputs": [[VALUE] * 3]}, "3 values for 2 outputs"),
        ({"second": [VALUE]}, "1 values for 2 outputs"),
        ({"names": ["y", "y"]}, "an output twice"),
        ({"outputs": [[VALUE, 3]]}, "malformed value"),
        ({"outputs": [[VALUE, {**VALUE, "shape": [2]}]]}, "malformed value"),
        ({"placement": None}, "a result lacks"),
        ({"providers": None}, "a result lacks"),
    ],
)
def test_a_result_of_something_else_breaks_the_protocol(told: dict[str, Any], problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        from_result(result_of({**NAMED, **told}), Tensors(), asked=ASKED)


def test_ways_are_played_if_they_are_asked_for_and_only_then() -> None:
    plays = msgspec.structs.replace(ASKED, plays=True)
    told = {**NAMED, "generated": {"text": [1, 2]}}
    ran = from_result(result_of(told), Tensors(), asked=plays)
    assert isinstance(ran, Ran)
    assert ran.generated is not None
    with pytest.raises(ProtocolError, match="asked to play ways of generating text, and gave a plain result"):
        from_result(result_of(NAMED), Tensors(), asked=plays)
    with pytest.raises(ProtocolError, match="but the job requested none"):
        from_result(result_of(told), Tensors(), asked=ASKED)


def test_an_answer_that_judges_others_has_the_outputs_of_its_model() -> None:
    asked = msgspec.structs.replace(ASKED, by_reference=True)
    with pytest.raises(ProtocolError, match="other names than the model declares"):
        from_result(result_of({**NAMED, "names": ["y", "z"]}), Tensors(), asked=asked)


@pytest.mark.parametrize(
    "told",
    [
        {"names": [None]},
        {"names": [["y"]]},
        {"names": ["y" * 70_000]},
        {"timings_ms": []},
        {"timings_ms": {"create": -1.0}},
        {"timings_ms": {"create": float("inf")}},
        {"placement": {**RESULT["placement"], "ep_nodes": -1}},
        {"placement": {**RESULT["placement"], "ep_ops": {"Relu": 1 << 70}}},
        {"scenario": {"a": 1 << 70}},
        {"repeats": {"runs": 0, "sessions": 1, "distinct": 1, "max_abs": None}},
        {"later": 1},
        {"status": "error", "phase": "run", "kind": "Fail", "message": 7},
        {"status": "error", "phase": "run", "kind": ["Fail"], "message": "no"},
        {"status": "unfeedable", "message": None},
    ],
)
def test_a_result_is_checked_to_its_last_part(told: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        result_of({**NAMED, **told})


def test_an_answer_that_no_file_holds_is_lost_and_not_asked_for_again(
    bench: PipelineBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_file, "encode", too_large)
    plain = bench.submit("plain")
    bench.pipeline.conclude(plain, bench.ran(plain))
    question = bench.question()
    bench.pipeline.conclude(question, bench.ran(question))
    assert not bench.queue
    assert [record.verdict for record in bench.records] == [Verdict.NO_GOLDEN]
    assert "cannot be kept: a protobuf ends" in bench.records[0].reason


def too_large(*_: object, **_more: object) -> bytes:
    raise TooLargeError("a protobuf ends at 2 GiB")


WAYS = RESULT | {"names": ["y"], "outputs": [[{"dtype": "float32", "shape": [0], "data": b""}], []]}


def test_ways_that_an_agent_declines_have_no_outputs() -> None:
    speed = {
        "first_token_ms": [[4, 1.5]],
        "tokens_per_s": [[1, 9.0]],
        "tokens_per_s_at": [[16, 8.0]],
        "cache_mib": 0.5,
    }
    told = {"declined": [[1, "no such\nbuffer"]], "text": [3, 1], "speed": speed}
    ran = from_result(result_of(WAYS | {"generated": told}), Tensors(), "generate")
    assert isinstance(ran, Ran)
    assert [len(outputs) for outputs in ran.outputs] == [1, 0]
    assert ran.generated is not None
    assert (ran.generated.declined, ran.generated.text) == ({1: "no such buffer"}, (3, 1))
    assert ran.generated.speed is not None
    assert ran.generated.speed.first_token_ms == {4: 1.5}
    assert ran.generated.speed.tokens_per_s == {1: 9.0}
    assert ran.generated.speed.tokens_per_s_at == {16: 8.0}
    assert ran.generated.speed.cache_mib == 0.5


@pytest.mark.parametrize("declined", [[[0, "a"], [1, "b"]], [[2, "a"]], []])
def test_an_agent_can_neither_decline_all_ways_nor_leave_one_out(declined: list[list[Any]]) -> None:
    with pytest.raises(ProtocolError):
        from_result(result_of(WAYS | {"generated": {"declined": declined}}), Tensors(), "generate")


@pytest.mark.parametrize(
    "told",
    [{"declined": [[-1, "a"]]}, {"declined": {"1": "a"}}, {"text": [-1]}, {"speed": {"b": 1}}, {"a": 1}],
)
def test_what_an_agent_tells_of_ways_has_one_form(told: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"Expected|unknown field"):
        result_of(WAYS | {"generated": told})
