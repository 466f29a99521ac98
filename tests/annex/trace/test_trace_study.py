"""A trace of a real plugin EP with a fault at one node of a model."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from harness.annex.trace.trace_study import TRACE_NEEDS, TraceStudy
from harness.annex.triage.lab import Lab
from harness.annex.triage.subject import Subject
from harness.core.records.trace import TracedNode, TracedTarget
from harness.core.values.value import tensor
from harness.plan.target import Target

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[8,8] x, float[8,8] w) => (float[8,8] y) {
    [first] a = Mul(x, w)
    [second] b = Add(a, x)
    [third] c = Tanh(b)
    [fourth] d = Add(c, w)
    [fifth] y = MatMul(d, w)
}"""

CANCELS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[8,8] x, float[8,8] w) => (float[8,8] y)
<float big = {300.0}> {
    [first] a = MatMul(x, w)
    [raise] b = Add(a, big)
    [cancel] c = Sub(b, big)
    [last] y = MatMul(c, w)
}"""

AROUND_THE_CPU = """<ir_version: 8, opset_import: ["" : 17]>
g (float[8,8] x, float[8,8] w) => (float[8,8] y) {
    [first] a = MatMul(x, w)
    [second] b = Relu(a)
    [third] c = Add(b, x)
    [on_cpu] d = Erf(c)
    [last] y = MatMul(d, w)
}"""


def subject(text: str = MODEL) -> Subject:
    drawn = np.random.default_rng(7)
    values = {name: tensor(drawn.normal(size=(8, 8)).astype(np.float32)) for name in ("x", "w")}
    model = onnx.parser.parse_model(text)
    return Subject(model=model.SerializeToString(), inputs=tuple(values.items()))


def traced(
    library: Path, folder: Path, options: Mapping[str, str], model: str = MODEL
) -> tuple[TracedTarget, dict[str, TracedNode], Lab]:
    target = Target(
        name="crooked",
        provider=("CrookedExecutionProvider",),
        plugin=str(library),
        options=dict(options),
        unchecked_options=True,
    )
    with Lab([target], folder, lambda _: None, TRACE_NEEDS) as lab:
        result, nodes, _ = TraceStudy(lab, subject(model), "crooked", (), lambda _: None).run()
    return result, {node.node: node for node in nodes}, lab


def test_the_node_that_makes_the_error_is_named_and_those_that_inherit_it_are_not(
    crooked_ep: Path, tmp_path: Path, own_cache: Path
) -> None:
    assert own_cache
    options = {"fault": "add_factor", "only": "second"}
    result, nodes, lab = traced(crooked_ep, tmp_path, options)
    assert result.guilty == ("second",)
    assert result.finding == "made"
    assert result.delivers == "float32"
    second, fourth, fifth = nodes["second"], nodes["fourth"], nodes["fifth"]
    assert second.made is not None
    assert second.made.relative == pytest.approx(0.01, rel=0.1)
    assert second.inherited is not None
    assert second.inherited < 3
    for later in (fourth, fifth):
        assert later.whole is not None
        assert later.whole.is_beyond
        assert later.inherited is not None
        assert later.inherited > 3
        assert not later.guilty
    assert [node.depth for node in nodes.values()] == [0, 1, 2, 3, 4]
    assert {node.placed for node in nodes.values()} == {"ep"}
    assert lab.trials == result.sessions == 3  # the model, its nodes side by side, all tensors watched
    again, _, lab = traced(crooked_ep, tmp_path, options)
    assert lab.trials == 0  # a resumed trace makes no session twice
    assert again.guilty == ("second",)


def test_a_coarser_precision_is_no_fault_of_any_node(
    crooked_ep: Path, tmp_path: Path, own_cache: Path
) -> None:
    assert own_cache
    result, _, _ = traced(crooked_ep, tmp_path, {"fault": "in_bf16"})
    assert (result.finding, result.delivers, result.guilty) == ("everywhere", "bfloat16", ())


@pytest.mark.long
def test_a_cancellation_that_enlarges_a_healthy_error_is_not_called_made(
    crooked_ep: Path, tmp_path: Path, own_cache: Path
) -> None:
    """The provider rounds each result to float16, as it should; Sub then takes the leading digits away."""
    assert own_cache
    result, nodes, _ = traced(crooked_ep, tmp_path, {"precision": "fp16"}, CANCELS)
    assert (result.finding, result.guilty, result.delivers) == ("amplified", (), "float16")
    assert result.sentence.startswith("Amplified at Sub cancel, a cancellation")
    assert result.condition is not None
    assert result.condition > 100
    cancel = nodes["cancel"]
    assert cancel.made is not None
    assert not cancel.made.is_beyond


@pytest.mark.long
def test_a_partition_that_is_wrong_only_as_compiled(
    crooked_ep: Path, tmp_path: Path, own_cache: Path
) -> None:
    """The provider compiles nodes that follow each other as one, and only then computes them wrongly."""
    assert own_cache
    result, nodes, _ = traced(crooked_ep, tmp_path, {"fault": "wrong_as_one"}, AROUND_THE_CPU)
    assert (result.finding, result.guilty, result.guilty_partitions) == ("together", (), (0,))
    assert result.together is not None
    assert result.together.nodes == ("second", "third")
    assert result.together.partition == 0
    assert "The provider compiles them in partition 1 of 2, 3 nodes from first to third." in result.sentence
    assert [node.partition for node in nodes.values()] == [0, 0, 0, None, 1]
    last = nodes["last"]
    assert last.whole is not None
    assert last.whole.is_beyond  # inherited
    assert last.made is not None
    assert not last.made.is_beyond
