"""The search for the fastest configuration: its order, its judgement, and the code for the winner."""

import platform
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from harness.annex.advise.candidates import Candidate, base_of, changes_of
from harness.annex.advise.course import CandidateQueue, Course
from harness.annex.advise.fastest import advise
from harness.annex.advise.search_result import Advice, TriedCandidate
from harness.annex.advise.session_code import session_code
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.facts import OptionEffect
from harness.core.records.verdict import Verdict
from harness.core.timing.latency import Latency, latency_of
from harness.corpus.suites.suites import open_model
from harness.engine.workers.job import THREADS
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.target import Runtime, Target
from tests.kit import bare_record, placement_of, told_latency

CPU = Target(name="cpu", provider=("CPUExecutionProvider",))
GPU = Target(
    name="gpu",
    provider=("WebGpuExecutionProvider",),
    plugin="onnxruntime_ep_webgpu",
    axes={"option.deviceId": ("1", "2")},
)


def latency(ms: float, waiting: float | None = None) -> Latency:
    return latency_of(told_latency([int(ms * 1e6)], waiting_threads=waiting))


def tried(
    candidate: Candidate,
    ms: float = 1.0,
    *,
    bits: float | None = None,
    verdict: Verdict = Verdict.PASS,
    seen: bool = True,
    reason: str = "",
    nodes: tuple[int, int] | None = None,
) -> TriedCandidate:
    """Return a result; ``nodes`` are those on the EP and on the CPU, of one that passes in part."""
    if nodes is not None:
        verdict = Verdict.PASS_PARTIAL
    placement = nodes and placement_of({}, ep_nodes=nodes[0], cpu_nodes=nodes[1], partitions=1)
    record = bare_record(
        "m",
        verdict,
        target=candidate.target,
        reason=reason,
        outputs=(OutputMetrics(name="y", dtype="float32", shape=(1,), delivered_bits=bits),),
        placement=placement,
        effect=OptionEffect(options=("ep:x",), seen=seen),
        latency=latency(ms) if verdict in {Verdict.PASS, Verdict.PASS_PARTIAL} else None,
    )
    return TriedCandidate(candidate=candidate, record=record)


def final(
    candidate: Candidate,
    *rounds_ms: float,
    waiting: float | None = None,
    verdict: Verdict = Verdict.PASS,
    nodes: tuple[int, int] | None = None,
) -> TriedCandidate:
    """Return the result of a finalist with so many rounds."""
    rounds = tuple(latency(ms, waiting) for ms in rounds_ms)
    return msgspec.structs.replace(tried(candidate, verdict=verdict, nodes=nodes), finals=rounds)


def disturbed(one: TriedCandidate) -> TriedCandidate:
    record = msgspec.structs.replace(one.record, latency=latency(one.p50_ms or 0.0, 0.5))
    return msgspec.structs.replace(one, record=record)


def with_changes(target: str, **changes: str) -> Candidate:
    return Candidate(target=target, changes=tuple(sorted(changes.items())))


def search_of(*targets: Target) -> CandidateQueue:
    return CandidateQueue(targets, [base_of(target, 10.0) for target in targets], {"Conv"})


def test_targets_as_they_are_come_first_then_changes_of_the_fastest() -> None:
    search = search_of(CPU, GPU)
    assert search.next() == Candidate(target="cpu")
    search.learn(tried(Candidate(target="cpu"), 5.0))
    assert search.next() == Candidate(target="gpu")
    search.learn(tried(Candidate(target="gpu"), 2.0))
    following = search.next()
    assert following is not None
    assert (following.target, len(following.changes)) == ("gpu", 1)


def test_what_made_it_faster_is_tried_together() -> None:
    search = search_of(CPU)
    base = search.next()
    assert base is not None
    search.learn(tried(base, 10.0))
    threads = search.next()
    assert threads == with_changes("cpu", **{THREADS: "0"})
    search.learn(tried(threads, 6.0))
    level = search.next()
    assert level == with_changes("cpu", graph_optimization="extended")
    search.learn(tried(level, 8.0))
    assert search.next() == with_changes("cpu", graph_optimization="extended", **{THREADS: "0"})


def test_a_change_that_is_within_noise_is_not_built_upon() -> None:
    search = search_of(CPU)
    candidate = search.next()
    while candidate is not None:
        search.learn(tried(candidate, 10.0 if not candidate.changes else 9.8))
        assert len(candidate.changes) <= 1
        candidate = search.next()


@pytest.mark.parametrize(
    ("verdict", "hope"),
    [
        (Verdict.MISMATCH, True),
        (Verdict.FALLBACK, True),
        (Verdict.CRASH, True),
        (Verdict.HANG, False),
        (Verdict.UNAVAILABLE, False),
        (Verdict.INVALID_MODEL, False),
    ],
)
def test_a_target_that_fails_as_it_is_gets_changes_after_all_others(verdict: Verdict, *, hope: bool) -> None:
    search = search_of(GPU, CPU)
    for candidate in (search.next(), search.next()):
        assert candidate is not None
        search.learn(tried(candidate, verdict=verdict if candidate.target == "gpu" else Verdict.PASS))
    order = [candidate.target for candidate in search.waiting()]
    assert order[0] == "cpu"
    assert ("gpu" in order) is hope
    assert order == sorted(order)


def test_changes_are_those_that_the_catalogue_and_the_matrix_know() -> None:
    changes = [change for ((change),) in changes_of(GPU, base_of(GPU, 10.0), {"Conv"})]
    assert ("option.preferredLayout", "NCHW") in changes
    assert ("option.deviceId", "2") in changes
    assert ("option.deviceId", "1") not in changes  # that is where it begins
    assert (THREADS, "0") not in changes
    assert changes[-1] == ("graph_optimization", "disabled")
    assert len(changes) == len(set(changes))


def test_a_precision_for_other_models_is_not_tried() -> None:
    def precisions(*operators: str) -> set[str]:
        changes = changes_of(CPU, base_of(CPU, 10.0), operators)
        return {value for ((axis, value),) in changes if axis == "precision"}

    assert "ep:int-acc-4" not in precisions("Conv", "MatMul")
    assert "ep:int-acc-4" in precisions("DequantizeLinear", "MatMul")
    assert ("ep:bf16-fastmath" in precisions("MatMul")) is (
        platform.machine().lower() in {"arm64", "aarch64"}
    )


def course_of(*results: TriedCandidate, search_until: float = 0.0) -> Course:
    course = Course(search_of(CPU), search_until)
    for one in results:
        course.take(one)
    return course


def rest(course: Course, *results: TriedCandidate) -> list[Candidate]:
    """What a course asks for until its end, where each candidate gives its next result in turn."""
    left = {one.candidate: [each for each in results if each.candidate == one.candidate] for one in results}
    asked = []
    while (candidate := course.next()) is not None:
        asked.append(candidate)
        course.take(left[candidate].pop(0))
    return asked


def test_those_near_the_fastest_are_tried_in_turns_forth_and_back() -> None:
    fast, near, far = (Candidate(target="cpu"), with_changes("cpu", a="1"), with_changes("cpu", a="2"))
    course = course_of(tried(fast, 2.0), tried(near, 2.9), tried(far, 9.0))
    finals = (tried(fast, 2.5), tried(near, 2.1), tried(near, 2.2), tried(fast, 2.6))
    assert rest(course, *finals) == [fast, near, near, fast]
    # The rounds of the final count alone: the machine may have been another one before.
    assert [(one.candidate, one.p50_ms) for one in course.ranked()] == [(near, 2.1), (fast, 2.5), (far, 9.0)]
    assert [one.p50_ms for one in course.results[near].rounds] == [2.1, 2.2]


def test_a_disturbed_time_of_another_target_is_taken_in_turns_with_the_fastest() -> None:
    cpu, gpu, worse = Candidate(target="cpu"), Candidate(target="gpu"), with_changes("gpu", a="1")
    found = Course(search_of(CPU, GPU), 0.0)
    for one in (tried(cpu, 2.0), disturbed(tried(gpu, 16.0)), disturbed(tried(worse, 18.0))):
        found.take(one)
    again = (tried(gpu, 17.0), tried(gpu, 18.0), tried(cpu, 3.0), tried(cpu, 3.1))
    assert rest(found, *again) == [cpu, gpu, gpu, cpu]
    calm = Course(search_of(CPU, GPU), 0.0)
    for one in (disturbed(tried(cpu, 2.0)), tried(gpu, 16.0)):
        calm.take(one)
    assert calm.next() is None


def test_what_fails_in_the_final_is_out() -> None:
    first, second = Candidate(target="cpu"), with_changes("cpu", a="1")
    course = course_of(tried(first, 2.0), tried(second, 1.5))
    wrong = tried(second, verdict=Verdict.MISMATCH, reason="off")
    asked = rest(course, wrong, tried(first, 2.2), tried(first, 2.1), tried(second, 1.0))
    assert asked == [second, first, first, second]
    assert [one.candidate for one in course.ranked()] == [first]
    assert course.results[second].fell_out == "mismatch: off"


def test_a_search_that_is_not_over_goes_first_and_one_alone_needs_no_final() -> None:
    course = course_of(search_until=time.monotonic() + 1000)
    assert course.next() == Candidate(target="cpu")
    assert course_of(tried(Candidate(target="cpu"))).next() is None


def test_what_says_nothing_about_a_device_is_no_finalist() -> None:
    course = Course(search_of(CPU, GPU), 0.0)
    course.take(tried(Candidate(target="cpu"), 2.0))
    course.take(tried(Candidate(target="gpu"), 2.0))
    course.take(tried(with_changes("cpu", a="1"), 2.0, nodes=(2, 406)))
    course.simulated = {"gpu": "SwiftShader"}
    assert course.next() is None


def test_precisions_of_wrong_numbers_come_first_where_every_target_needs_an_answer() -> None:
    openvino = Target(name="openvino", provider=("OpenVINOExecutionProvider",))
    targets = (CPU, openvino)
    search = CandidateQueue(targets, [base_of(one, 10.0) for one in targets], {"Conv"}, remedies_first=True)
    for verdict in (Verdict.PASS, Verdict.PRECISION_LOSS):
        candidate = search.next()
        assert candidate is not None
        search.learn(tried(candidate, verdict=verdict))
    following = search.next()
    assert following is not None
    assert (following.target, following.changes[0][0]) == ("openvino", "precision")


def advice(*ranked: TriedCandidate, simulated: tuple[str, ...] = ()) -> Advice:
    return Advice(
        ranked=ranked,
        fell_out=(),
        not_tried=(),
        targets={},
        fingerprints={},
        stopped_by="end",
        elapsed_s=0.0,
        simulated=dict.fromkeys(simulated, "SwiftShader"),
    )


def test_what_is_simulated_is_never_the_fastest() -> None:
    real, program = tried(with_changes("cpu"), 9.0), tried(with_changes("webgpu"), 1.0)
    found = advice(real, program, simulated=("webgpu",))
    assert found.winner == real
    assert found.front == {real.candidate}
    assert advice(program, simulated=("webgpu",)).winner is None


def test_the_front_has_what_nothing_beats_in_both() -> None:
    fast, slow = tried(with_changes("a"), 1.0, bits=8.0), tried(with_changes("b"), 2.0, bits=8.0)
    exact, exacter = tried(with_changes("c"), 3.0, bits=20.0), tried(with_changes("d"), 4.0)
    found = advice(fast, slow, exact, exacter)
    assert found.front == {fast.candidate, exact.candidate, exacter.candidate}


def test_the_winner_is_the_simplest_of_those_that_are_equally_fast() -> None:
    changed = final(with_changes("a", graph_optimization="basic"), 1.0, 1.01)
    plain = final(with_changes("a"), 1.04, 1.03)
    slow = final(with_changes("b"), 1.2, 1.21)
    assert advice(changed, plain, slow).winner == plain
    partly = final(with_changes("a"), 1.0, 1.0, verdict=Verdict.PASS_PARTIAL, nodes=(82, 2))
    assert advice(partly, slow).winner == partly
    assert advice().winner is None


def test_of_targets_that_are_equally_fast_none_wins() -> None:
    one, other = final(with_changes("a"), 1.0, 1.1), final(with_changes("b"), 1.04, 1.2)
    found = advice(one, other)
    assert found.winner is None
    assert found.equal == (one, other)


def test_single_tries_differ_by_chance_by_more_than_tries_in_turns() -> None:
    one, other = tried(with_changes("a"), 1.0), tried(with_changes("b"), 1.15)
    assert advice(one, other).winner is None
    in_turns = final(with_changes("a"), 1.0, 1.0), final(with_changes("b"), 1.15, 1.15)
    assert advice(*in_turns).winner == in_turns[0]


def test_a_part_of_the_nodes_below_1_percent_never_wins() -> None:
    cpu, cpus = final(with_changes("cpu"), 1.0, 1.0), final(with_changes("qnn"), 0.5, 0.5, nodes=(2, 406))
    found = advice(cpus, cpu)
    assert found.winner == cpu
    assert found.real == (cpu,)


def test_nobody_wins_while_other_programs_use_the_processors() -> None:
    cpu, gpu = final(with_changes("cpu"), 1.0, 1.0, waiting=0.4), final(with_changes("gpu"), 1.3, 1.3)
    assert advice(cpu, gpu).winner is None
    assert advice(cpu, gpu).equal == ()
    # A rival that is far behind cannot be the fastest, whatever disturbed it; and one alone needs no time.
    far = final(with_changes("gpu"), 9.0, 9.0, waiting=0.4)
    calm = final(with_changes("cpu"), 1.0, 1.0)
    assert advice(calm, far).winner == calm
    assert advice(cpu).winner == cpu
    # One round of two may be disturbed: the other one counts.
    assert advice(msgspec.structs.replace(cpu, finals=(latency(1.0), *cpu.finals)), far).winner is not None


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (tried(with_changes("a"), verdict=Verdict.FALLBACK, reason="no node"), "fallback: no node"),
        (tried(with_changes("a"), verdict=Verdict.HANG, reason="no end"), "too slow: no end"),
        (tried(with_changes("a"), verdict=Verdict.MISMATCH, reason="off by 1"), "mismatch: off by 1"),
        (tried(with_changes("a"), seen=False), "no effect: the outputs are bit-identical without it"),
    ],
)
def test_what_does_not_pass_is_no_candidate(one: TriedCandidate, why: str) -> None:
    assert one.fell_out == why
    assert one.p50_ms is None


@pytest.mark.real_ep
def test_an_interruption_ends_it_with_what_is_known_and_its_code_runs_as_pasted(tmp_path: Path) -> None:
    suite = open_model("zoo/mnist-small-op12")
    (model,) = suite.models()
    matrix = Matrix(path="m", schema=1, models=ModelSelection(), targets=(CPU,))
    shown: list[TriedCandidate] = []

    def interrupt_after_two(one: TriedCandidate) -> None:
        shown.append(one)
        if len(shown) == 2:
            raise KeyboardInterrupt

    until = time.monotonic() + 300
    found = advise(suite, matrix, until=until, notify=lambda _: None, show=interrupt_after_two)
    assert found.stopped_by == "interrupt"
    assert [one.candidate for one in shown] == [
        Candidate(target="cpu"),
        with_changes("cpu", **{THREADS: "0"}),
    ]
    assert sorted(one.candidate.name for one in found.ranked) == ["cpu", f"cpu, {THREADS}=0"]
    threads = {one.candidate.name: one.record.latency.intra_op_threads for one in shown if one.record.latency}
    assert threads == {"cpu": 1, f"cpu, {THREADS}=0": 0}
    assert found.ranked[0].p50_ms is not None
    assert found.ranked[0].p50_ms <= (found.ranked[1].p50_ms or 0.0)
    assert found.not_tried
    winner = found.winner or found.real[0]  # on a busy machine none is named
    cell = winner.candidate.cell(suite.name, model)
    script = tmp_path / "pasted.py"
    code = session_code(found.targets["cpu"], cell, suite.model_path(model))
    script.write_text(code + "print(session.get_providers())\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, check=True, encoding="utf-8", timeout=120
    )
    assert "CPUExecutionProvider" in done.stdout


@pytest.mark.real_ep
def test_time_that_is_up_ends_it_with_what_is_known() -> None:
    suite = open_model("zoo/mnist-small-op12")
    matrix = Matrix(path="m", schema=1, models=ModelSelection(), targets=(CPU,))
    found = advise(suite, matrix, until=time.monotonic() + 0.01, notify=lambda _: None, show=lambda _: None)
    assert found.stopped_by == "budget"
    assert Candidate(target="cpu") in found.not_tried
    assert found.ranked == ()


def test_code_has_everything_of_the_session() -> None:
    target = Target(
        name="t",
        provider=("QNNExecutionProvider", "XnnpackExecutionProvider"),
        plugin="onnxruntime_qnn",
        device={"type": "NPU", "soc": "v'73", "number": "2"},
        options={"backend_type": "htp"},
        env={"QNN_LOG": '"1"'},
        runtime=Runtime(packages=("onnxruntime-qnn==2.7.0",)),
    )
    cell = Candidate(
        target="t",
        changes=(
            ("graph_optimization", "disabled"),
            (THREADS, "0"),
            ("option.htp_performance_mode", "burst"),
        ),
    ).cell("s", "m")
    code = session_code(target, cell, Path("it's a model.onnx"))
    compile(code, "pasted", "exec")
    for part in (
        "# In an environment with onnxruntime-qnn==2.7.0.",
        "os.environ['QNN_LOG'] = '\"1\"'",
        "import onnxruntime_qnn\n",
        "ORT_DISABLE_ALL",
        "options.intra_op_num_threads = 0",
        "ort.register_execution_provider_library('QNNExecutionProvider', onnxruntime_qnn.get_library_path())",
        "'htp_performance_mode': 'burst'",
        "== 'npu'",
        "][1]\n",
        "options.add_provider('XnnpackExecutionProvider', {})",
        '"it\'s a model.onnx"',
    ):
        assert part in code
    assert code.index("os.environ") < code.index("import onnxruntime as ort")


def test_code_of_a_library_imports_no_package() -> None:
    target = msgspec.structs.replace(GPU, plugin="/opt/libep.so", axes={})
    code = session_code(target, Candidate(target="gpu").cell("s", "m"), Path("m.onnx"))
    compile(code, "pasted", "exec")
    assert "register_execution_provider_library('WebGpuExecutionProvider', '/opt/libep.so')" in code
    assert code.count("import ") == 1
