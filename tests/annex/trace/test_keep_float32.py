"""Which nodes to keep in float32: the smallest set among the worst ones, tried and not guessed."""

import json

import msgspec
import numpy as np
import onnx.parser
import pytest

from harness.agent.precision.kept import KEPT, kept_nodes
from harness.annex.trace.keep_float32 import keep_advice, with_kept
from harness.annex.triage.net import load
from harness.annex.triage.subject import Subject
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.record import Record
from harness.core.records.trace import TracedNode, TraceError
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from tests.kit import record

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) {
    [one] a = Exp(x)
    [two] b = Exp(a)
    [three] c = Neg(b)
    [four] y = Abs(c)
}"""


def model_of() -> Subject:
    model = onnx.parser.parse_model(MODEL)
    return Subject(model=model.SerializeToString(), inputs=(("x", tensor(np.zeros(4, np.float32))),))


def nodes() -> list[TracedNode]:
    made = {"one": 1e-3, "two": 5e-2, "three": 2e-2, "four": 0.0}
    return [
        TracedNode(
            target="t",
            number=number,
            depth=number,
            node=name,
            op_type="Exp",
            made=TraceError(noise=1.0, relative=relative, exact=not relative),
        )
        for number, (name, relative) in enumerate(made.items())
    ]


class Device:
    """Restores the accuracy if some nodes are kept."""

    def __init__(self, *needed: str) -> None:
        self.needed = set(needed)
        self.tried: list[list[str]] = []

    def attempt(self, subject: Subject, number: int) -> Record:
        kept = kept_nodes(subject.proto())
        if not number:
            self.tried.append(kept)
        relative = 1e-3 if self.needed <= set(kept) else 0.1
        row = OutputMetrics(
            name="y",
            dtype="float32",
            shape=(4,),
            elements=4,
            max_abs=relative,
            delivered_bits=float(-np.log2(relative)),
        )
        return record("m", Verdict.PASS, outputs=(row,), timings_ms={"first_run": 2.0 + number})


def test_the_worst_node_alone_is_enough() -> None:
    device = Device("two")
    found = keep_advice(load(model_of()), nodes(), "float16", device.attempt, lambda _: None)
    assert found is not None
    assert found.nodes == ("two",)
    assert found.before.relative == pytest.approx(0.1)
    assert found.after.relative == pytest.approx(1e-3)
    assert (found.before_ms, found.after_ms) == (5.0, 5.0)


def test_a_node_that_is_not_needed_is_left_out() -> None:
    device = Device("three")
    found = keep_advice(load(model_of()), nodes(), "float16", device.attempt, lambda _: None)
    assert found is not None
    assert found.nodes == ("three",)
    assert ["two", "three"] in device.tried


def test_the_nodes_that_a_wrong_one_reads_come_behind_it() -> None:
    device = Device("two", "four")  # the range of what "four" writes is too wide for "two"
    read = [msgspec.structs.replace(one, inputs=("four",) if one.node == "two" else ()) for one in nodes()]
    found = keep_advice(load(model_of()), read, "int8", device.attempt, lambda _: None)
    assert found is not None
    assert set(found.nodes) == {"two", "four"}


def test_nothing_helps() -> None:
    device = Device("nobody")
    assert keep_advice(load(model_of()), nodes(), "float16", device.attempt, lambda _: None) is None
    assert device.tried[-1] == ["two", "three", "one"]  # an exact node is never kept


def test_the_model_lists_the_nodes_beside_its_own_metadata() -> None:
    model = onnx.parser.parse_model(MODEL)
    model.metadata_props.add(key="author", value="me")
    subject = Subject(model=model.SerializeToString(), inputs=())
    kept = with_kept(load(with_kept(load(subject), ["one"])), ["two"]).proto()
    assert {entry.key: entry.value for entry in kept.metadata_props} == {
        "author": "me",
        KEPT: json.dumps(["two"]),
    }
    assert kept_nodes(onnx.parser.parse_model(MODEL)) == []
