"""The partition as the unit: wrong only as compiled, inherited and not made, compiled otherwise alone."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx.parser
import pytest

from harness.annex.trace.trace_study import TraceStudy
from harness.annex.triage.lab import Lab, Seen, Trial
from harness.annex.triage.subject import Subject
from harness.core.records.facts import Placement
from harness.core.records.trace import TracedNode, TracedPartition, TracedTarget
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from tests.annex.trace.test_together import FusingLab, wrong_row
from tests.kit import record

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) {
    [one] a = Exp(x)
    [two] b = Neg(a)
    [three] c = Abs(b)
    [four] d = Sqrt(c)
    [copied] e = Identity(d)
    [five] f = Tanh(e)
    [six] y = Exp(f)
}"""
FIRST, SECOND = {"one", "two", "three", "four"}, {"five", "six"}
"""Two partitions, with a node on the CPU EP between them."""


class CompilingLab(FusingLab):
    """Stands for a lab whose EP compiles partitions whole: the first one wrongly, if none of it is watched.

    Attributes:
        divides: The EP divides the first partition if it is the whole model.
        declines: It then leaves it to the CPU EP.
    """

    def __init__(self, *, divides: bool = False, declines: bool = False) -> None:
        super().__init__()
        self.divides, self.declines = divides, declines
        self.tried: list[frozenset[str]] = []

    def run(self, trials: Sequence[Trial]) -> tuple[Seen, ...]:
        return tuple(map(self._seen, trials))

    def _seen(self, trial: Trial) -> Seen:
        graph = trial.subject.proto().graph
        names = {node.name for node in graph.node}
        self.tried.append(frozenset(names))
        outputs = {port.name for port in graph.output}
        apart = any(name.endswith(".golden") for name in (port.name for port in graph.input))
        compiled = names >= FIRST and outputs.isdisjoint("abc") and not apart
        wrong = set("defy") if compiled else set()
        cut_out = names == FIRST
        on_cpu = 4 if cut_out and self.declines else int("copied" in names)
        placement = Placement(
            ep_nodes=len(names) - on_cpu,
            cpu_nodes=on_cpu,
            ep_ops={"Exp": 1},
            cpu_ops={"Identity": 1} if on_cpu else {},
            partitions=2 if "copied" in names or (cut_out and self.divides) else 1,
            source="assignment",
        )
        verdict = Verdict.FALLBACK if cut_out and self.declines else Verdict.PASS
        rows = tuple(wrong_row(port.name, wrong=port.name in wrong) for port in graph.output)
        return Seen(record=record("m", verdict, outputs=rows, placement=placement))


def traced(
    lab: CompilingLab,
) -> tuple[TracedTarget, tuple[TracedNode, ...], tuple[TracedPartition, ...]]:
    model = onnx.parser.parse_model(MODEL)
    subject = Subject(model=model.SerializeToString(), inputs=(("x", tensor(np.ones(4, np.float32))),))
    return TraceStudy(cast("Lab", lab), subject, "t", (), lambda _: None).run()


def test_a_partition_that_is_wrong_only_as_compiled_is_named_and_the_one_that_inherits_is_not() -> None:
    lab = CompilingLab()
    result, nodes, (first, second) = traced(lab)
    assert (result.finding, result.guilty, result.guilty_partitions) == ("together", (), (0,))
    assert result.together is None  # no part of it is wrong: the partition is the unit
    assert result.sentence.startswith(
        "Made by partition 1 of 2, 4 nodes from one to four: right alone node by node, wrong as compiled, "
        "with 9.38e+03 times its rounding noise in float32, relative error 0.1."
    )
    assert (first.guilty, first.compiled, first.nodes) == (True, "same", 4)
    assert first.made is not None
    assert first.made.is_beyond
    assert (second.guilty, second.compiled, second.nodes) == (False, "same", 2)
    assert second.made is not None
    assert second.made.exact
    assert second.inherited is not None
    assert second.inherited > 3
    assert frozenset(FIRST) in lab.tried
    assert frozenset(SECOND) in lab.tried
    # What leaves the first partition was watched by itself, which leaves what is computed as it is.
    by_name = {node.node: node for node in nodes}
    assert not by_name["four"].disturbed
    assert by_name["four"].whole is not None
    assert by_name["four"].whole.is_beyond
    assert by_name["two"].disturbed
    assert first.disturbed == 3


def test_a_partition_that_is_compiled_otherwise_when_it_is_cut_out_is_told_so() -> None:
    result, _, (first, _) = traced(CompilingLab(divides=True))
    assert (first.guilty, first.compiled) == (True, "otherwise")
    assert (
        "from one to four, which the provider takes otherwise when they are alone: right" in result.sentence
    )


def test_what_the_cpu_ep_computes_when_it_is_cut_out_shows_nothing_about_the_partition() -> None:
    result, _, (first, _) = traced(CompilingLab(declines=True))
    assert (first.made, first.guilty, first.compiled) == (None, False, "otherwise")
    assert first.problem == "as one model: fallback: the CPU EP computes it"
    assert result.finding == "unknown"
    assert "Not located" in result.sentence


@pytest.mark.parametrize("partitions", [1, 3])
def test_partitions_that_the_counts_do_not_show_are_no_unit(partitions: int) -> None:
    class OtherCounts(CompilingLab):
        def _seen(self, trial: Trial) -> Seen:
            seen = super()._seen(trial)
            names = {node.name for node in trial.subject.proto().graph.node}
            if "copied" not in names:
                return seen
            placement = Placement(
                ep_nodes=6, cpu_nodes=1, ep_ops={"Exp": 2}, cpu_ops={"Identity": 1}, partitions=partitions,
                source="assignment",
            )  # fmt: skip
            return Seen(record=record("m", Verdict.PASS, outputs=seen.record.outputs, placement=placement))

    _, _, found = traced(OtherCounts())
    assert found == ()
