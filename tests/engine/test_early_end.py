import time
from pathlib import Path

import msgspec
import pytest

from harness.core.comparison.policy import Policy
from harness.core.findings.cause import PRINTED, plain_cause
from harness.core.records.verdict import Phase, Verdict
from harness.core.verdicts.decide import decide
from harness.corpus.model.model_errors import BoundError
from harness.engine.measuring.early_end import clean_error, ended, without_case
from harness.engine.tasks.outcome import Died, Outcome, Raised

SOURCE = "/onnxruntime_src/onnxruntime/core"


def raised(message: str) -> Raised:
    """Return an error of a run."""
    return Raised(phase=Phase.RUN, kind="Fail", message=message)


def test_a_model_beyond_a_bound_says_nothing_about_the_provider() -> None:
    facts = without_case(BoundError(Path("m/one.onnx"), "its functions call each other so often"))
    decision = decide(facts, Policy())
    assert decision.verdict is Verdict.NO_GOLDEN
    assert decision.reason == "m/one.onnx: its functions call each other so often"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            (
                "Fail: [ONNXRuntimeError] : 1 : FAIL : Load model from /c/t/model.onnx failed:"
                f"{SOURCE}/graph/model.cc:256 onnxruntime::Model::Model(onnx::ModelProto&&, const Path&) "
                "Unsupported model IR version: 14\n"
            ),
            "Fail: Load model from model.onnx failed:Unsupported model IR version: 14",
        ),
        (
            f"{SOURCE}/string_normalizer.cc:235 Locale::Locale(const S&)::<lambda()> Failed to make",
            "Failed to make",
        ),
        (
            f"{SOURCE}/rnn.h:48 RNN<T>::RNN(const OpKernelInfo&) [with T = float] layout_ == 0 (was false)",
            "layout_ == 0 (was false)",
        ),
        (
            f"{SOURCE}/conv_integer.cc:52 virtual S ConvInteger::Compute(Context*) const W was false.",
            "W was false.",
        ),
        (
            (
                "/root/build/onnxruntime/onnxruntime/python/onnxruntime_pybind_state.cc:1189 "
                "std::shared_ptr<Factory> onnxruntime::python::Create(const Options&) create EP fail"
            ),
            "create EP fail",
        ),
        ("no kernel for Foo(13)", "no kernel for Foo(13)"),
        (f"{SOURCE}/b.cc:1 cut off (in the", "cut off (in the"),
        (f"{SOURCE}/b.cc:1 no signature", "no signature"),
        ("two\nlines", "two lines"),
        (
            (
                "Exception from src/inference/src/cpp/core.cpp:117:\n"
                "Exception from src/inference/src/dev/plugin.cpp:54:\n"
                "Check '!shape.rank().is_dynamic()' failed at src/plugins/intel_cpu/src/node.cpp:108:\n"
                "Unexpected: no ReduceSum with dynamic rank"
            ),
            "Check '!shape.rank().is_dynamic()' failed: Unexpected: no ReduceSum with dynamic rank",
        ),
        (
            "[OpenVINO-EP] /opt/src/plugin/ov_compute.h:311 - Input names mismatch",
            "[OpenVINO-EP] Input names mismatch",
        ),
        ("Message: shader_helper.cc:416 GenerateSourceCode Program Cast", "Message: Program Cast"),
        ("model.cc:3 Failed to read a.onnx:4", "Failed to read a.onnx:4"),
        (r"Load model from Z:\c\t\model.onnx failed:no", "Load model from model.onnx failed:no"),
        ("Load model from /home/u/model-0/model.onnx failed:no", "Load model from model.onnx failed:no"),
    ],
)
def test_the_cause_is_what_stays(said: str, kept: str) -> None:
    assert clean_error(said, Path("/c/t/model.onnx")) == kept


@pytest.mark.parametrize(
    "unit",
    [
        *("/a", "a.", "a.cc:1", "a.cc:1 ", "Exception from a.cc:1: ", "/onnxruntime_src/a"),
        *("/onnxruntime_src/a:1 (", f"{SOURCE}/" + "a" * 50, "[with T"),
    ],
)
def test_hostile_text_takes_no_time(unit: str) -> None:
    started = time.process_time()
    assert len(clean_error(unit * 10_000)) <= 300
    assert time.process_time() - started < 5  # one pattern for all took 75 s for an eighth of it


def test_what_was_printed_is_the_cause_where_the_exception_names_none() -> None:
    printed = (
        "[0;93m2026-11-27 07:26:41.42 [W:onnxruntime:, qnn_ep.cc:933 QnnEp] no file mapping[m\n"
        "[1;31m2026-11-27 07:26:41.43 [E:onnxruntime:, qnn_model.cc:710 operator()] "
        "Failed to create tensor: y error code: 7004[m\n"
    ).replace("[", "\x1b[", 1)
    told_little = Raised(
        phase=Phase.CREATE, kind="EPFail", message="Failed to compose Qnn graph.", printed=printed
    )
    reason = decide(ended(told_little), Policy()).reason
    assert reason.startswith(
        "EPFail: Failed to compose Qnn graph; it printed: Failed to create tensor: y error"
    )
    assert plain_cause(reason).startswith("Failed to create tensor: y error code: #")
    why = "Status Message: the tile of the matrix unit has no room for this operand"
    told = ended(msgspec.structs.replace(told_little, message=why))
    assert told.ended is not None
    assert told.ended.message == f"EPFail: {why}"
    again = msgspec.structs.replace(told_little, message="Failed to create tensor: y error code: 7004")
    assert PRINTED not in decide(ended(again), Policy()).reason


def test_head_and_tail_of_a_long_error_stay() -> None:
    said = "while running a node " * 40 + "Status Message: no tiles left"
    message = clean_error(said)
    assert len(message) == 300
    assert message.startswith("while running")
    assert plain_cause(message) == "no tiles left"


@pytest.mark.parametrize(
    ("outcome", "feature"),
    [
        (raised("Program Cast requires f16 but the device does not support it."), "f16"),
        (raised("error: 'subgroups' extension is not allowed in the current environment"), "subgroups"),
        (raised("CUDA error: no kernel image is available for execution"), "an instruction set"),
        (raised("std::bad_alloc"), "memory"),
        (raised("the operator Cast does not support float16"), ""),
        (Died(phase=Phase.RUN, cause="SIGILL"), "an instruction set"),
        (Died(phase=Phase.RUN, cause="SIGSEGV"), ""),
        (Died(phase=Phase.RUN, cause="SIGABRT", printed="what(): std::bad_alloc"), "memory"),
    ],
)
def test_a_feature_that_the_device_lacks_is_named(outcome: Outcome, feature: str) -> None:
    facts = ended(outcome)
    assert facts.ended is not None
    assert facts.ended.lacks == feature


def test_a_lost_device_is_a_cause() -> None:
    lost, other = (
        ended(Raised(phase=Phase.RUN, kind=kind, message="gone")) for kind in ("DeviceLost", "Error")
    )
    assert (lost.cause, other.cause) == ("device_lost", "")


def test_another_process_of_a_scenario_dies_as_its_own_would() -> None:
    told = Raised(
        phase=Phase.TEARDOWN,
        kind="ProcessDied",
        message="SIGABRT: at exit, in rounds",
        scenario={"rounds": 5},
    )
    facts = ended(told)
    assert (facts.cause, facts.scenario) == ("SIGABRT", {"rounds": 5})
    decided = decide(facts, Policy())
    assert decided.verdict == "crash"
    assert decided.reason == "the process of the scenario died at exit, in rounds: SIGABRT"


def test_what_another_model_says_too_is_not_said_twice() -> None:
    said = "no tiles left on any of the matrix units of this device " * 3
    facts = ended(Raised(kind="Fail", message=said, phase=Phase.RUN, sick=f"Fail: {said}"))
    reason = decide(facts, Policy()).reason
    assert reason.count("no tiles left") == 3
    assert reason.endswith("; the process was replaced: another model fails alike")
    facts = ended(Raised(kind="Fail", message=said, phase=Phase.RUN, sick="it computes Relu(1) as 2"))
    assert decide(facts, Policy()).reason.endswith("; the process was replaced: it computes Relu(1) as 2")


def test_the_name_of_a_fused_node_leaves_room_for_what_is_said() -> None:
    said = (
        "Non-zero status code returned while running AnExecutionProvider_1646013025409347552_0 node. "
        "Name:'AnExecutionProvider_AnExecutionProvider_1646013025409347552_0_0' Status Message: no tiles left"
    )
    assert clean_error(said) == (
        "Non-zero status code returned while running AnExecutionProvider_0 node. "
        "Name:'AnExecutionProvider_0' Status Message: no tiles left"
    )


def test_a_function_that_onnxruntime_inlines_with_a_fused_node_is_no_fault_of_the_ep() -> None:
    said = (
        '[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. In Node, ("", Loop, "", -1) : '
        '("_inlfunc_SequenceMap_SequenceMap_input_sequence_seqlen": tensor(int64),) , '
        "Error No opset import for domain 'SomeExecutionProvider'\n\n==> Context: Bad node spec for node."
    )
    facts = ended(Raised(kind="InvalidGraph", message=said, phase=Phase.CREATE))
    reason = decide(facts, Policy()).reason
    assert reason.startswith("InvalidGraph: This is an invalid model.")
    assert "the fault is onnxruntime's: it inlines a function whose body the EP has compiled" in reason
    other = ended(Raised(kind="InvalidGraph", message=said.replace("_inlfunc_", ""), phase=Phase.CREATE))
    assert "the fault is onnxruntime's" not in decide(other, Policy()).reason
