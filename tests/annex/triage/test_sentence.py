"""Sentences about faults, word by word."""

from typing import Any

import msgspec
import pytest

from harness.annex.triage.sentence import CHARS, sentence_of
from harness.annex.triage.showing import Showing
from harness.annex.triage.signature import AT_OTHER_INPUTS
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.fault import (
    Condition,
    Fault,
    Frame,
    GraphNode,
    GraphTensor,
    Location,
    NativeCrash,
    ReducedModel,
    Repetition,
    Signature,
    Usage,
)
from harness.core.records.verdict import Phase, Verdict

RESIZE = GraphNode(
    name="r",
    op_type="Resize",
    inputs=("x", "", "s"),
    outputs=("y",),
    attributes={"mode": "cubic", "antialias": "0"},
    guilty=True,
)
GELU = GraphNode(name="g", op_type="Gelu", domain="com.microsoft", inputs=("y",), outputs=("z",))
MATMUL = GraphNode(name="m", op_type="MatMul", inputs=("z", "w"), outputs=("o",))
X = GraphTensor(name="x", role="input", dtype="float32", shape="1x3x8x8")
ROW = OutputMetrics(
    name="y", dtype="float32", shape=(1, 3, 8, 8), mismatched=6, elements=192, max_abs=0.41234
)
MISMATCH = Signature(verdict=Verdict.MISMATCH, message="first run")


def fault_of(signature: Signature = MISMATCH, *nodes: GraphNode, **more: Any) -> Fault:
    reduced = ReducedModel(
        nodes=nodes or (RESIZE,), tensors=(X,), bytes=200, nodes_before=40, bytes_before=9000
    )
    usual: dict[str, Any] = {
        "id": "",
        "sentence": "",
        "target": "npu",
        "provider": "QNNExecutionProvider",
        "library": "2.7.0",
        "representative": "zoo/m[npu]",
        "cells": ("zoo/m[npu]",),
        "confirmation": Repetition(outcome="always", trials=5, failures=5),
        "reduced": reduced,
    }
    return Fault(signature=signature, **(usual | more))


def ended(verdict: Verdict, phase: Phase | None = None, cause: str = "") -> Signature:
    return Signature(verdict=verdict, phase=phase, cause=cause)


def gone(kind: Any, value: str, name: str = "") -> Condition:
    return Condition(kind=kind, name=name, value=value, fails=False, verdict="pass")


CRASH = NativeCrash(
    signal="SIGSEGV",
    frames=(
        Frame(library="libc.so.6", function="memcpy"),
        Frame(library="libQnnHtp.so", offset=4096),
        Frame(library="libonnxruntime.so.1", function="onnxruntime::Run(int)"),
    ),
    culprit="libQnnHtp.so",
)
WHAT = "Resize(mode=cubic, antialias=0) of float32[1x3x8x8]"

SENTENCES = {
    "wrong values": (
        fault_of(
            conditions=(
                gone("graph_optimization", "disabled"),
                gone("dtype", "float16"),
                gone("attribute", "default", "Resize.antialias"),
                gone("values", "zeros"),
                gone("values", "absolute"),
                Condition(kind="opset", value="18", fails=True),
                Condition(kind="opset", value="19", verdict="invalid_model"),
            )
        ),
        ROW,
        "",
        (
            f"QNN 2.7.0 computes {WHAT} wrongly for float32 (0.031 of the elements, off by up "
            "to 0.41); right at "
            "graph optimization disabled; right in float16; right with the default of "
            "Resize.antialias; right with "
            "values absolute."
        ),
    ),
    "all elements": (
        fault_of(library=""),
        OutputMetrics(name="y", dtype="int8", shape=(2,), mismatched=2, elements=2),
        "",
        f"QNN computes {WHAT} wrongly for int8 (all elements).",
    ),
    "wrong by nobody's word": (
        fault_of(
            unconfirmed="float64 could not be had: it needs 3.1 GiB in float64, more than 2 GiB",
            conditions=(gone("precision", "fp16"),),
        ),
        ROW,
        "",
        (
            f"QNN 2.7.0 differs from the CPU EP in {WHAT} for float32 (0.031 of the elements, off by up "
            "to 0.41); float64 could not be had: it needs 3.1 GiB in float64, more than 2 GiB; "
            "right at precision fp16."
        ),
    ),
    "as far off as the golden": (
        fault_of(
            unconfirmed="float64 does not confirm it: relative error 2e-05 of the EP, 2.4e-05 of the golden"
        ),
        None,
        "",
        (
            f"QNN 2.7.0 differs from the CPU EP in {WHAT}; "
            "float64 does not confirm it: relative error 2e-05 of the EP, 2.4e-05 of the golden."
        ),
    ),
    "stale": (
        fault_of(Signature(verdict=Verdict.MISMATCH, message=AT_OTHER_INPUTS)),
        None,
        "",
        f"QNN 2.7.0 computes {WHAT} wrongly for other inputs in the same session.",
    ),
    "another shape for other inputs": (
        fault_of(Signature(verdict=Verdict.SHAPE_MISMATCH, message=AT_OTHER_INPUTS)),
        None,
        "",
        f"QNN 2.7.0 gives an output of {WHAT} another shape for other inputs in the same session.",
    ),
    "NaN": (
        fault_of(ended(Verdict.NAN_MISMATCH)),
        ROW,
        "",
        f"QNN 2.7.0 computes {WHAT} for float32 with NaN or infinity in other places than the CPU EP.",
    ),
    "unsteady": (
        fault_of(
            ended(Verdict.NONDETERMINISTIC),
            confirmation=Repetition(outcome="sometimes", trials=20, failures=8, repeats=14),
        ),
        ROW,
        "",
        (
            f"QNN 2.7.0 gives different results for {WHAT} for float32 in two runs of one "
            "session; in 8 of 20 "
            "trials."
        ),
    ),
    "shape": (
        fault_of(ended(Verdict.SHAPE_MISMATCH)),
        None,
        "",
        f"QNN 2.7.0 gives an output of {WHAT} another shape.",
    ),
    "type": (
        fault_of(ended(Verdict.DTYPE_MISMATCH)),
        None,
        "",
        f"QNN 2.7.0 gives an output of {WHAT} another element type.",
    ),
    "error": (
        fault_of(ended(Verdict.ERROR, Phase.CREATE), scenario="ort_format"),
        None,
        "no\nkernel",
        (
            f"QNN 2.7.0 fails while it creates a session of {WHAT}, which the CPU EP runs: no "
            "kernel; in scenario "
            "ort_format."
        ),
    ),
    "a kernel's error": (
        fault_of(ended(Verdict.ERROR, Phase.RUN)),
        None,
        "Fail: Non-zero status code returned while running Resize node. Name:'r' Status Message: bad scale",
        f"QNN 2.7.0 fails while it runs {WHAT}, which the CPU EP runs: Fail: bad scale.",
    ),
    "crash": (
        fault_of(ended(Verdict.CRASH, Phase.RUN, "SIGSEGV"), crash=CRASH),
        None,
        "",
        (
            "QNN 2.7.0 dies of SIGSEGV in libQnnHtp.so, called by onnxruntime::Run of "
            "libonnxruntime.so.1, while it "
            f"runs {WHAT}."
        ),
    ),
    "crash without a stack": (
        fault_of(ended(Verdict.CRASH, Phase.TEARDOWN, "exit code 3")),
        None,
        "",
        f"QNN 2.7.0 ends its process with exit code 3 while it closes a session of {WHAT}.",
    ),
    "hang": (
        fault_of(
            ended(Verdict.HANG, Phase.CREATE), preceding=("zoo/a[npu]",), usage=Usage(threads=2, runs=1)
        ),
        None,
        "",
        (
            f"QNN 2.7.0 does not come to an end while it creates a session of {WHAT}; only in 2 threads "
            "at once; after "
            "zoo/a[npu] in the same "
            "process."
        ),
    ),
    "memory": (
        fault_of(ended(Verdict.OUT_OF_MEMORY, Phase.RUN)),
        None,
        "",
        f"QNN 2.7.0 runs out of memory while it runs {WHAT}.",
    ),
    "fused": (
        fault_of(
            MISMATCH,
            RESIZE,
            GELU,
            MATMUL,
            location=Location(
                nodes=("r", "m"),
                op_types=("Resize", "MatMul"),
                exact=False,
                fused=("r", "m"),
                fused_op_types=("Resize", "MatMul"),
                onwards=True,
            ),
        ),
        ROW,
        "",
        (
            f"QNN 2.7.0 computes {WHAT} wrongly for float32 (0.031 of the elements, off by up "
            "to 0.41); only if 2 "
            "nodes are compiled together: Resize, MatMul; the nodes behind it fail as well, "
            "with the right inputs."
        ),
    ),
    "composite": (
        fault_of(
            MISMATCH,
            GELU,
            location=Location(nodes=("g",), op_types=("Gelu",), exact=True, decomposed=("Gelu",)),
        ),
        None,
        "",
        "QNN 2.7.0 computes com.microsoft.Gelu wrongly; right if Gelu is decomposed.",
    ),
    "session": (
        fault_of(
            conditions=(
                gone("optimizer", "disabled", "ConstantFolding"),
                gone("option", "not burst", "htp_performance_mode"),
                gone("shape", "1", "first dimension"),
                gone("runtime", "qnn-1.23"),
                gone("original", "000042-grown"),
                gone("opset", "11"),
                gone("opset", "13"),
            )
        ),
        None,
        "",
        (
            f"QNN 2.7.0 computes {WHAT} wrongly; right without optimizer ConstantFolding; "
            "right without option "
            "htp_performance_mode=burst; right at opset 11, 13; right with first dimension = 1; "
            "right with qnn-1.23; right for the model that this one is a variant of, 000042-grown."
        ),
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_sentence(name: str) -> None:
    fault, row, message, sentence = SENTENCES[name]
    assert sentence_of(fault, Showing(row=row, message=message)) == sentence


def test_many_nodes_are_counted_and_no_guilty_one_means_all() -> None:
    nodes = [GraphNode(name=f"n{n}", op_type=op) for n, op in enumerate(("Add", "Mul", "Sub", "Neg", "Abs"))]
    assert "computes Add + Mul + Sub wrongly" in sentence_of(fault_of(MISMATCH, *nodes[:3]), Showing())
    assert "computes 5 nodes (from Add to Abs) wrongly" in sentence_of(fault_of(MISMATCH, *nodes), Showing())


def test_hostile_names_and_messages_stay_one_line_of_some_length() -> None:
    node = GraphNode(name="x", op_type="A\nB" * 500, attributes={"k\n": "v" * 500}, guilty=True)
    sentence = sentence_of(fault_of(ended(Verdict.ERROR), node), Showing(message="m\r\n" * 1000))
    assert "\n" not in sentence
    assert "\r" not in sentence
    assert len(sentence) <= CHARS + 1


def test_a_search_that_ran_out_of_time_accuses_no_node() -> None:
    nodes = [GraphNode(name=f"n{n}", op_type=op) for n, op in enumerate(("Add", *("Relu",) * 60, "Mul"))]
    location = Location(
        nodes=tuple(node.name for node in nodes),
        op_types=tuple(node.op_type for node in nodes),
        exact=False,
        unfinished=True,
    )
    sentence = sentence_of(fault_of(MISMATCH, *nodes, location=location), Showing(row=ROW))
    assert "not located yet, 62 candidates (from Add to Mul)" in sentence
    assert "differs from the CPU EP in the model of zoo/m[npu]" in sentence
    assert "wrongly" not in sentence


ADD = GraphNode(name="a", op_type="Add", inputs=("x", "v"), outputs=("y",), guilty=True)
V = GraphTensor(name="v", role="input", dtype="float32", shape="8")


def test_which_operands_shape_a_result_has_is_told() -> None:
    fault = fault_of(ended(Verdict.SHAPE_MISMATCH), ADD)
    assert fault.reduced is not None
    fault = msgspec.structs.replace(fault, reduced=msgspec.structs.replace(fault.reduced, tensors=(X, V)))
    row = OutputMetrics(name="y", dtype="float32", shape=(8,), mismatched=8, elements=8)
    assert sentence_of(fault, Showing(row=row, expected="1x3x8x8")) == (
        "QNN 2.7.0 gives an output of Add of float32[1x3x8x8] and float32[8] the shape 8, that of its "
        "second operand, in place of 1x3x8x8."
    )
    flat = msgspec.structs.replace(row, shape=(192,))
    assert "the shape 192 in place of 1x3x8x8" in sentence_of(fault, Showing(row=flat, expected="1x3x8x8"))


@pytest.mark.parametrize(
    ("signature", "showing", "told"),
    [
        (
            ended(Verdict.OPTION_REJECTED, Phase.REGISTER),
            Showing(message="provider option 'mode' is refused: no such mode"),
            "QNN 2.7.0 makes no session: provider option 'mode' is refused: no such mode.",
        ),
        (
            ended(Verdict.CRASH, Phase.RUN),
            Showing(),
            f"QNN 2.7.0 ends its process with exit code 0 while it runs {WHAT}.",
        ),
        (
            ended(Verdict.CRASH, Phase.RUN, "SIGABRT"),
            Showing(message="std::runtime_error: no tiles left"),
            f"QNN 2.7.0 dies of SIGABRT while it runs {WHAT}: std::runtime_error: no tiles left.",
        ),
        (
            ended(Verdict.NONDETERMINISTIC),
            Showing(row=ROW, runs=10, distinct=9),
            f"QNN 2.7.0 gives 9 different results for {WHAT} for float32 in 10 equal runs.",
        ),
    ],
)
def test_how_it_ended_is_told_as_it_was(signature: Signature, showing: Showing, told: str) -> None:
    assert sentence_of(fault_of(signature), showing) == told


def test_wrong_values_that_are_random_are_told_as_such() -> None:
    sentence = sentence_of(fault_of(), Showing(row=ROW, runs=10, distinct=9))
    assert "wrongly" in sentence
    assert sentence.endswith("; 9 different results in 10 equal runs.")
    assert "equal runs" not in sentence_of(fault_of(), Showing(row=ROW, runs=10, distinct=1))


def test_of_many_option_values_the_first_are_named() -> None:
    values = tuple(gone("option", str(number), "streams") for number in range(7))
    sentence = sentence_of(fault_of(conditions=values), Showing())
    assert sentence.endswith("; right with option streams=0, streams=1, streams=2, streams=3 and 3 more.")


def test_an_overwritten_input_is_told() -> None:
    showing = Showing(row=ROW, runs=10, distinct=10, changed=("it wrote into input 'x' (in run)",))
    sentence = sentence_of(fault_of(ended(Verdict.NONDETERMINISTIC)), showing)
    assert sentence.endswith("in 10 equal runs; it wrote into input 'x' (in run).")


def test_options_are_told_with_their_values_and_sizes_by_their_rule() -> None:
    def size(value: int, *, fails: bool) -> Condition:
        return Condition(kind="shape", name="last dimension", value=str(value), fails=fails)

    sizes = [size(value, fails=value % 4 != 0) for value in (1, 2, 3, 4, 5, 16)]
    options = (gone("option", "not a", "fault"), gone("option", "2", "streams"))
    sentence = sentence_of(fault_of(conditions=(*options, *sizes)), Showing())
    assert "right without option fault=a; right with option streams=2" in sentence
    # The model itself has 8, and fails.
    assert "right with last dimension = 4, 16" in sentence
