"""The signature of a failure: what stays equal when a model gets smaller, and what tells failures apart."""

from typing import Any

import msgspec
import onnx
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.annex.triage.signature import (
    AT_FIRST_RUN,
    AT_OTHER_INPUTS,
    AT_SECOND_RUN,
    named_operator,
    names_of,
    signature_of,
)
from harness.annex.triage.subject import Subject
from harness.core.comparison.output_metrics import OutputDetails, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.findings.cause import plain_cause
from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import OtherCheck
from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from tests.kit import cpu_record, placement_of

ON_EP = placement_of({"Relu": 1})
GOOD = OutputMetrics(name="y", dtype="float32", shape=(2,), elements=2, max_abs=0.0, frontier=((0.0, 0.0),))
BAD = OutputMetrics(
    name="y",
    dtype="float32",
    shape=(2,),
    elements=2,
    max_abs=0.5,
    mismatched=2,
    delivered_bits=0.5,
    frontier=((0.0, 0.5), (1.0, 0.0)),
    details=OutputDetails(message="output 'y': all differ"),
)


def signature(record: Record, *names: str) -> Any:
    return signature_of(record, Policy(), names)


def ran(**fields: Any) -> Record:
    usual: dict[str, Any] = {"provider": "AnyExecutionProvider", "phase": Phase.COMPARE, "golden": "cpu"}
    return cpu_record("m", **(usual | {"placement": ON_EP, "outputs": (GOOD,)} | fields))


def test_an_error_keeps_its_phase_and_words() -> None:
    record = cpu_record(
        "m", phase=Phase.RUN, ended=CellEnd(how="raised", message="no kernel 'Relu' for node 'a/Relu_7'")
    )
    found = signature(record, "a/Relu_7")
    assert (found.verdict, found.phase, found.message) == (
        Verdict.ERROR,
        Phase.RUN,
        "no kernel 'Relu' for node #",
    )


def test_the_same_error_of_another_node_is_the_same() -> None:
    def error(name: str, number: int) -> Any:
        message = f"node '{name}' at 0x{number:x}: size {number} (in /tmp/x{number}/k.cc:{number})"
        return signature(cpu_record("m", phase=Phase.RUN, ended=CellEnd(how="raised", message=message)), name)

    assert error("first", 17) == error("second", 40961)
    assert error("first", 17) != signature(
        cpu_record("m", phase=Phase.RUN, ended=CellEnd(how="raised", message="size"))
    )


def test_of_a_crash_the_signal_counts_and_no_message() -> None:
    def crash(cause: str, message: str, phase: Phase = Phase.RUN) -> Any:
        return signature(
            cpu_record("m", phase=phase, cause=cause, ended=CellEnd(how="died", message=message))
        )

    assert crash("SIGSEGV", "died") == crash("SIGSEGV", "other words")
    assert crash("SIGSEGV", "died") != crash("SIGABRT", "died")
    assert crash("SIGSEGV", "died") != crash("SIGSEGV", "died", Phase.CREATE)


def test_a_hang_is_no_crash() -> None:
    hang = signature(cpu_record("m", phase=Phase.RUN, ended=CellEnd(how="hung", message="60 s")))
    assert (hang.verdict, hang.message) == (Verdict.HANG, "")


def test_wrong_values_keep_the_run_that_shows_them() -> None:
    assert signature(ran(outputs=(BAD,))).message == AT_FIRST_RUN
    assert signature(ran(again=(BAD,))).message == AT_SECOND_RUN
    other = signature(ran(other=(BAD,)))
    assert (other.verdict, other.message) == (Verdict.MISMATCH, AT_OTHER_INPUTS)
    assert signature(ran()).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("details", "verdict"),
    [
        ({"differs": "shape"}, Verdict.SHAPE_MISMATCH),
        ({"differs": "dtype"}, Verdict.DTYPE_MISMATCH),
        ({"special": 1}, Verdict.NAN_MISMATCH),
    ],
)
def test_of_any_verdict_about_outputs_it_counts_whether_only_other_inputs_show_it(
    details: dict[str, Any], verdict: Verdict
) -> None:
    bad = msgspec.structs.replace(BAD, details=OutputDetails(message="differs", **details))
    other = signature(ran(other=(bad,), other_check=OtherCheck()))
    assert (other.verdict, other.message) == (verdict, AT_OTHER_INPUTS)
    assert signature(ran(outputs=(bad,))) != other


def test_names_in_bodies_and_functions_count() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        agraph (bool go, float[2] x) => (float[2] y) {
            [outer] m = own.twice (x)
            y = If (go) <then_branch = t () => (float[2] a) { [inner] a = Relu (m) },
                         else_branch = e () => (float[2] b) { b = Neg (m) }>
        }
        <domain: "own", opset_import: ["" : 17]> twice (p) => (q) { [called] q = Add (p, p) }""")
    names = names_of(Subject(model=model.SerializeToString(), inputs=()))
    assert {"go", "x", "m", "y", "outer", "inner", "a", "b", "called", "p", "q"} <= names
    assert "" not in names


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ("dims 3,4 and 1e-5 at 0xDEADbeef", "dims # and # at #"),
        ("in /home/someone/a b.cc:17", "in # b.cc:#"),
        ("node(conv1): x=conv1;", "node(#): x=#;"),
        ("[conv1] {conv1} <conv1> \"conv1\" 'conv1' `conv1`", "[#] {#} <#> # # #"),
        ("line\nfeed\tand \x1b[31m", "line feed and"),
        ("conv1_extra stays", "conv#_extra stays"),
        ("CUDA failure 700: bad ; GPU=0 ; hostname=gpu-box ;", "CUDA failure #: bad ; GPU=# ; hostname=# ;"),
        ("", ""),
    ],
)
def test_what_varies_is_one_mark(message: str, plain: str) -> None:
    assert plain_cause(message, ["conv1"]).startswith(plain)


@pytest.mark.parametrize(
    ("message", "operator"),
    [
        ("Non-zero status code returned while running Conv node. Name:'{}' Status Message: no", "Conv"),
        ("Node '{}' OpType:Conv with domain:com.ms.internal.nhwc was inserted", "Conv"),
        ("Could not find an implementation for Conv(11) node with name '{}'", "Conv"),
        ("Node ({}) Op (Conv) [TypeInferenceError] output_dtype INT8", "Conv"),
        (
            "returned while running Loop node. Name:'l' Status Message: while running Conv node. Name:'{}'",
            "Conv",
        ),
        ("while running QNNExecutionProvider_QNN_7_0 node. Name:'{}' Status Message: no", ""),
        ("Dynamic shape is not supported yet, for input: {}", ""),
    ],
)
def test_names_that_an_optimizer_made_up_do_not_matter(message: str, operator: str) -> None:
    found = {plain_cause(message.format(name)) for name in ("conv_2_token_1", "down/c1")}
    assert len({one.replace("#", "") for one in found}) == 1
    assert named_operator(message.format("conv_2_token_1")) == operator


@given(st.text(), st.lists(st.text(max_size=8), max_size=5))
def test_any_message_becomes_one_line(message: str, names: list[str]) -> None:
    found = plain_cause(message, names)
    assert "\n" not in found
    assert "\r" not in found
    assert plain_cause(message, names) == found


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_do_not_matter(one: int, other: int) -> None:
    assert plain_cause(f"node {one} of {one}") == plain_cause(f"node {other} of {other}")


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_.+*\\^$|?/-]{0,20}", fullmatch=True))
def test_a_name_is_no_pattern(name: str) -> None:
    """Names come from models: one like ``.*`` must not swallow what is around it."""
    found = plain_cause(f"before '{name}' behind", [name])
    assert found == "before # behind"
