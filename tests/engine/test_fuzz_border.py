"""An agent may send anything: it breaks the protocol or is judged, and nothing of ours is raised."""

import importlib
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agent import wire as agent_wire
from harness.agent.frame import FrameReader, framed
from harness.agent.message import unpack_message
from harness.core.records.record import decode_record, encode_record
from harness.core.records.verdict import Family, Phase
from harness.core.values.value import BITS, DTYPES, KEY_TYPES, STRING, Tensor, from_wire
from harness.corpus.case import Case
from harness.engine.listener import Listener
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.tasks.configuration import cpu_configuration
from harness.engine.tasks.events import Event, Finished
from harness.engine.tasks.outcome import Ending, ExpectedResult, Raised, Ran
from harness.engine.tasks.task import HOME, CellTask, Question, QuestionKind, QuestionTask, Task
from harness.engine.workers.job import piece
from harness.engine.workers.queues import TaskQueue
from harness.engine.workers.worker import Worker
from harness.places.fleet import Fleet
from harness.plan.file_format import Timeouts
from tests.engine.pipelines import WaitingPipeline
from tests.kit import of_folder, placement_of, write_model
from tests.mutations import each_replaced, mutated

FEW = settings(max_examples=120, derandomize=True, deadline=None, database=None)

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 8] x, float[1, 3, 4] boxes, float[1, 1, 3] scores, string[2] w)
    => (float[4, 8] y, float[4, 2] v, int64[4, 2] k, int64[4] a, uint8[4, 8] q, int64[2, n] z, int64[m, 3] b,
        seq(float[2, 8]) s, string[2] t)
    <int64[1] two = {2}, float scale = {0.1}, uint8 zero = {100}, int64 rows = {2}, int64[1] most = {3}> {
    y = Relu(x)
    v, k = TopK<sorted = 0>(x, two)
    a = ArgMax<axis = 1, keepdims = 0>(x)
    q = QuantizeLinear(x, scale, zero)
    z = NonZero(y)
    b = NonMaxSuppression(boxes, scores, most)
    s = SplitToSequence<axis = 0>(x, rows)
    t = Identity(w)
}"""

FINGERPRINT: dict[str, Any] = {
    "python": "3.11.2",
    "packages": {"onnxruntime": "1.31.1"},
    "owners": ["onnxruntime", "onnxruntime-gpu"],
    "onnxruntime": "1.31.1",
    "processor": {"model": "x", "count": 2},
    "available_providers": ["CPUExecutionProvider"],
    "session": {"intra_op_num_threads": 1},
    "providers": ["CUDAExecutionProvider"],
    "options": {"a": "b"},
    "devices": [{"provider": "x", "device": {"type": "CPU"}, "metadata": {}}],
    "plugin": {"library": "/x.so", "version": "1"},
}

AFTER = {"took_ms": 2.0, "teardown_ms": 0.5, "processor_ms": 2.0, "rss_mib": 40.0, "sick": "CUDA error 700"}


def odd_values() -> list[Any]:
    """Values of any type and shape, in wire form."""
    shapes: tuple[list[int], ...] = (
        [],
        [0],
        [2],
        [4, 8],
        [4, 2],
        [0, 3],
        [3, 0],
        [2, 3],
        [1] * 33 + [2],
        [2] + [1] * 63,
    )
    found: list[Any] = [None, {"sequence": []}, {"sequence": [None]}]
    for dtype in (*DTYPES, STRING):
        for number, shape in enumerate(shapes):
            elements = int(np.prod(shape, dtype=np.int64))
            nbytes = -(-elements * (BITS.get(dtype) or 8 * DTYPES.get(dtype, np.dtype("u1")).itemsize) // 8)
            data: Any = ["a"] * elements if dtype == STRING else bytes([number * 37 % 256]) * nbytes
            found.append({"dtype": dtype, "shape": shape, "data": data})
            if shape == [2] and dtype in KEY_TYPES:
                found.append({"keys": found[-1], "values": found[-1]})
    return found + [{"sequence": [value, value]} for value in found[:40]]


ODD_VALUES = odd_values()


class Border(WaitingPipeline):
    """A listener and a pipeline with one model, whose golden is known."""

    def __init__(self, folder: Path) -> None:
        write_model(folder / "models" / "one.onnx", MODEL)
        super().__init__(folder, of_folder({"name": "ep", "provider": "CUDAExecutionProvider"}))
        spares = SimpleNamespace(keep_for=lambda *_: None)
        fleet = Fleet(self.plan, lambda *_: None, lambda _: None, lambda *_: None)
        pool: Any = SimpleNamespace(workers={}, spares=spares, fleet=fleet, serving=lambda _: ())
        queues: Any = SimpleNamespace(all=[])
        self.listener = Listener(self.plan, queues, pool, self.pipeline, self.announce, lambda _: None)
        self.tensors = Tensors()
        (self.cell,) = self.plan.cells
        case = self.pipeline.case(self.task())
        assert isinstance(case, Case)
        self.case = case
        (self.wires,) = computed(case)
        self.asked: set[str] = set()

    def announce(self, event: Event) -> None:
        if isinstance(event, Finished):
            self.records.append(event.record)

    def task(self) -> Task:
        return CellTask(cell=self.cell)

    def receive(self, message: Any, task: Task, tensors: Tensors | None = None) -> Worker:
        """Have a message come through the pipe, from a worker that is at a task."""
        process = fake_process()
        worker = Worker(1, process, tensors or self.tensors)
        worker.imported = worker.ready = True
        worker.in_flight.append(task)
        self.send(worker, message)
        return worker

    def send(self, worker: Worker, message: Any) -> None:
        try:
            arrived = sent(message)
        except ValueError:  # a number that JSON lacks: the process is killed for what cannot be read
            worker.abort("it sent what cannot be read")
            return
        self.listener.on_message(worker, arrived, 1.0)

    def settle(self) -> None:
        """Have the CPU EP of this process answer every question."""
        while self.queue:
            task = self.queue.pop(0)
            case = self.pipeline.case(task)
            assert isinstance(case, Case)
            self.asked.add(task.about.kind)
            self.pipeline.conclude(task, answered(case))


def fake_process() -> Any:
    """A process that nobody is behind."""
    nothing: Callable[..., None] = lambda *_: None  # noqa: E731
    return SimpleNamespace(pid=7, send=nothing, kill=nothing, abort=nothing)


def sent(message: Any) -> Any:
    """What arrives of a message."""
    stream = io.BytesIO(framed(message))
    return FrameReader(stream.read).message()


PLACEMENT: dict[str, Any] = {
    "ep_nodes": 8,
    "cpu_nodes": 1,
    "ep_ops": {"Relu": 1, "TopK": 7},
    "cpu_ops": {"Identity": 1},
    "partitions": 2,
    "source": "assignment",
    "chain_ops": {"A": {"Relu": 1}},
    "providers": {"A": 8, "CPUExecutionProvider": 1},
}
PLACED = placement_of({"Relu": 9}, source="profile")


def answered(case: Case) -> Ending:
    try:
        found = computed(case)
    except Exception as error:  # noqa: BLE001 - such as that there is no kernel for float64
        return Raised(phase=Phase.CREATE, kind=type(error).__name__, message=str(error))
    outputs = tuple(tuple((name, from_wire(wire)) for name, wire in wires.items()) for wires in found)
    return Ran(outputs=outputs, placement=PLACED, timings_ms={})


def computed(case: Case) -> list[dict[str, Any]]:
    """What the CPU EP makes of the model, in wire form, for each data set."""
    runtime: Any = importlib.import_module("onnxruntime")  # its types leave out what is used here
    session = runtime.InferenceSession(str(case.model_path), providers=["CPUExecutionProvider"])
    names, answers = list(case.outputs), []
    for data_set in case.data_sets:
        feeds = {name: value.array for name, value in data_set.inputs if isinstance(value, Tensor)}
        answers.append(
            dict(zip(names, map(agent_wire.output_to_wire, session.run(names, feeds)), strict=True))
        )
    return answers


@pytest.fixture(scope="module")
def border(tmp_path_factory: pytest.TempPathFactory) -> Border:
    return Border(tmp_path_factory.mktemp("border"))


def results(border: Border) -> list[dict[str, Any]]:
    """Valid results: of a run, of runs with everything that is measured, and of the ways to fail."""
    names = list(border.case.outputs)
    outputs = [border.wires[name] for name in names]
    ran = {
        "status": "ok",
        "phase": "run",
        "output": "printed",
        "names": names,
        "outputs": [outputs],
        "providers": ["A"],
        "providers_after": ["A"],
        "placement": PLACEMENT,
        "timings_ms": {"create": 1.5, "first_run": 0.25},
    }
    latency = {
        "samples_ns": [1000, 2000],
        "warm_up": 1,
        "stopped_by": "repeats",
        "io": "copied",
        "intra_op_threads": 1,
        "inter_op_threads": 1,
        "waiting_threads": None,
        "host_peak_mib": 5.0,
        "device_mib": 0.0,
    }
    repeats = {"runs": 2, "sessions": 2, "distinct": 1, "max_abs": 0.0}
    more = {
        "second": outputs,
        "latency": latency,
        "repeats": repeats,
        "graph": b"onnx",
        "scenario": {"a": [1, "x"]},
    }
    failed = {"status": "error", "phase": "run", "kind": "Fail", "message": "no", "outputs": [], "output": ""}
    refused = {"status": "unsupported", "phase": "create", "message": "no", "scenario": {"refused": True}}
    return [ran, ran, {**ran, **more}, failed, refused, {"status": "unfeedable", "message": "no"}]


@FEW
@given(st.data())
def test_any_result_is_judged_or_breaks_the_protocol(border: Border, data: st.DataObject) -> None:
    task = border.task()
    task.asked = ExpectedResult(data_sets=1, outputs=border.case.outputs)
    message = ["result", id(task), data.draw(st.sampled_from(results(border)))]
    worker = border.receive(data.draw(mutated(message)), task)
    if worker.broken:
        return
    border.send(worker, data.draw(mutated(["done", id(task), AFTER], most=1)))
    if worker.broken:
        return
    border.settle()
    record = border.records.pop()
    assert decode_record(encode_record(record)) == record
    assert not border.records


def test_the_results_that_are_mutated_are_valid(border: Border) -> None:
    for valid in results(border):
        task = border.task()
        task.asked = ExpectedResult(data_sets=1, outputs=border.case.outputs)
        worker = border.receive(["result", id(task), valid], task)
        assert worker.result is not None, valid
        border.send(worker, ["done", id(task), AFTER])
        border.settle()
        assert (border.records.pop().verdict == "pass_partial") is (valid["status"] == "ok"), valid


def test_each_part_of_a_result_may_be_another_thing(border: Border) -> None:
    for valid in results(border)[1:]:
        for body in each_replaced(valid, 29):
            task = border.task()
            task.asked = ExpectedResult(data_sets=1, outputs=border.case.outputs)
            worker = border.receive(["result", id(task), body], task)
            if not worker.broken:
                border.send(worker, ["done", id(task), AFTER])
                border.settle()
                record = border.records.pop()
                assert decode_record(encode_record(record)) == record


@FEW
@given(st.data())
def test_any_values_are_judged(border: Border, data: st.DataObject) -> None:
    task = border.task()
    task.asked = ExpectedResult(data_sets=1, outputs=border.case.outputs)
    body = dict(results(border)[0])
    values, again = ([border.wires[name] for name in border.case.outputs] for _ in range(2))
    for where in (values, again):
        for index in data.draw(st.sets(st.integers(0, len(values) - 1), max_size=3)):
            where[index] = data.draw(st.sampled_from(ODD_VALUES))
    body |= {"outputs": [values], "second": again}
    worker = border.receive(["result", id(task), body], task)
    assert worker.result is not None
    border.send(worker, ["done", id(task), AFTER])
    border.settle()
    record = border.records.pop()
    assert decode_record(encode_record(record)) == record
    wrong = any(one is not border.wires[name] for name, one in zip(border.case.outputs, values, strict=True))
    assert record.family is not Family.PASSED or not wrong


@FEW
@given(st.data())
def test_any_answer_is_kept_or_breaks_the_protocol(border: Border, data: st.DataObject) -> None:
    question = Question(
        suite=border.cell.suite, model=border.cell.model, kind=data.draw(st.sampled_from(KINDS))
    )
    task = QuestionTask(about=question, for_caller=True)
    task.asked = ExpectedResult(data_sets=1, outputs=border.case.outputs, by_reference=True)
    body: Any = results(border)[0]
    if question.kind == QuestionKind.MADE:
        task.for_caller = False
        model = agent_wire.output_to_wire(np.frombuffer(b"a model", np.uint8))
        made = {"status": "ok", "made": model, "rounded": model, "timings_ms": {"make": 1.0}}
        body = data.draw(st.sampled_from([made, {"status": "ok", "declined": "no"}]))
    worker = border.receive(data.draw(mutated(["result", id(task), body])), task)
    if worker.result is not None and question.kind != QuestionKind.MADE:
        border.send(worker, ["done", id(task), AFTER])


KINDS = (QuestionKind.ANSWER, QuestionKind.UNOPTIMIZED, QuestionKind.EVALUATED, QuestionKind.MADE)


@FEW
@given(st.data())
def test_any_description_of_an_environment_is_taken(border: Border, data: st.DataObject) -> None:
    process = fake_process()
    worker = Worker(1, process)
    worker.imported = True
    worker.queue = TaskQueue("ep", cpu_configuration(HOME), Timeouts())
    words = data.draw(
        st.sampled_from(
            [
                ["ready", FINGERPRINT],
                ["unavailable", "no_device", "gone", "printed", FINGERPRINT],
                ["rejected", "option", "no", "printed", FINGERPRINT],
                ["imported"],
            ]
        )
    )
    border.send(worker, data.draw(mutated(words)))


@FEW
@given(st.data())
def test_any_message_may_come_at_any_time(border: Border, data: st.DataObject) -> None:
    task = border.task()
    words = [
        ["phase", id(task), "run"],
        ["need", id(task), "one.onnx", 0],
        ["done", id(task), AFTER],
        ["result", id(task), results(border)[0]],
        ["imported"],
        ["ready", FINGERPRINT],
    ]
    worker = border.receive(data.draw(mutated(data.draw(st.sampled_from(words)))), task)
    border.send(worker, data.draw(mutated(data.draw(st.sampled_from(words)))))
    border.queue.clear()


@FEW
@given(st.data())
def test_values_in_files_are_read_or_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as home:
        Path(home, "out-1").write_bytes(b"\0" * 8)
        if os.name == "posix":
            Path(home, "out-2").symlink_to(__file__)
        wire = {"dtype": "float32", "shape": [2], "file": "out-1"}
        forms = [wire, {"sequence": [wire, {**wire, "file": "out-2"}]}, {"keys": wire, "values": wire}]
        tensors = Tensors((Path(home),))
        try:
            tensors.take(sent(data.draw(mutated(data.draw(st.sampled_from(forms))))))
        except ValueError:
            return


@pytest.mark.parametrize("offset", [0, 1 << 31, (1 << 63) - 1, 1 << 60])
def test_a_piece_from_anywhere_is_bytes_or_nothing(border: Border, offset: int) -> None:
    assert isinstance(piece(border.case, "one.onnx", offset), bytes | None)


def test_bytes_are_given_once() -> None:
    text = b'[{"\\u0000bytes":[0,8]},{"\\u0000bytes":[0,8]}]'
    with pytest.raises(ValueError, match="lacks binary values"):
        unpack_message(text, 8, io.BytesIO(b"12345678").read)
