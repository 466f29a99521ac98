"""Nodes that are each right alone and wrong together: the fewest of them are named."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx.parser
from onnx.reference import ReferenceEvaluator

from harness.annex.trace.trace_study import TraceStudy
from harness.annex.triage.lab import Lab, Seen, Trial
from harness.annex.triage.subject import Subject
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.records.verdict import Verdict
from harness.core.values.value import Tensor, Value, tensor
from tests.kit import record

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) {
    [one] a = Exp(x)
    [two] b = Neg(a)
    [three] c = Abs(b)
    [four] d = Sqrt(c)
    [five] y = Tanh(d)
}"""
WRONG_FROM = {"d": ("two", "three", "four"), "y": ("two", "three", "four")}
"""Output -> the nodes that a kernel fuses, and computes wrongly together."""


class FusingLab:
    """Stands for a lab whose EP fuses Neg, Abs and Sqrt where they follow each other."""

    def __init__(self) -> None:
        self.fingerprints: dict[str, dict[str, object]] = {}

    def values(self, subject: Subject, names: Sequence[str]) -> dict[str, Value]:
        model = subject.proto()
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        fed = {name: value.array for name, value in subject.inputs if isinstance(value, Tensor)}
        found = ReferenceEvaluator(model).run(None, fed)
        return {
            name: tensor(np.asarray(one)) for name, one in zip(names, cast("list[Any]", found), strict=True)
        }

    def run(self, trials: Sequence[Trial]) -> tuple[Seen, ...]:
        return tuple(
            Seen(record=record("m", Verdict.PASS, outputs=self._rows(one.subject))) for one in trials
        )

    def _rows(self, subject: Subject) -> tuple[OutputMetrics, ...]:
        graph = subject.proto().graph
        reads = {node.name: set(node.input) for node in graph.node}
        fused = {"b"} <= reads.get("three", set()) and {"c"} <= reads.get("four", set()) and "two" in reads
        return tuple(wrong_row(port.name, wrong=fused and port.name in WRONG_FROM) for port in graph.output)


def wrong_row(name: str, *, wrong: bool) -> OutputMetrics:
    facts: Mapping[str, Any] = {"max_abs": 0.0}
    if wrong:
        noise = Noise(precision="float32", rms=1e4, max=1e5, each=1e4, like="none")
        facts = {"max_abs": 0.1, "rmse": 0.1, "sqnr_db": 20.0, "delivered_bits": 3.3, "noise": noise}
    return OutputMetrics(name=name, dtype="float32", shape=(4,), elements=4, **facts)


def test_the_fewest_nodes_that_are_wrong_together_are_named() -> None:
    model = onnx.parser.parse_model(MODEL)
    subject = Subject(model=model.SerializeToString(), inputs=(("x", tensor(np.ones(4, np.float32))),))
    study = TraceStudy(cast("Lab", FusingLab()), subject, "t", (), lambda _: None)
    result, nodes, _ = study.run()
    assert result.finding == "together"
    assert result.guilty == ()
    assert result.together is not None
    assert result.together.nodes == ("two", "three", "four")
    assert "Made by 3 nodes together (Neg, Abs, Sqrt; up to two, three, four)" in result.sentence
    assert "The provider compiles them in partition 1 of 1, 5 nodes from one to five." in result.sentence
    assert [node.node for node in nodes if node.whole is not None and node.whole.is_beyond] == [
        "four",
        "five",
    ]
