"""The changes of a graph, found by its tensors, for each kind of change."""

import onnx
import onnx.parser
import pytest

from harness.core.records.graph_levels import OperatorType
from harness.corpus.graph import Graph, read_graph
from harness.corpus.graph_changes import changes

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g'


def graph(text: str) -> Graph:
    return read_graph(onnx.parser.parse_model(f"{HEAD} {text}").SerializeToString())


def changes_of(before: str, after: str) -> list[tuple[str, str, int]]:
    return [(change.kind, change.text, change.times) for change in changes(graph(before), graph(after))]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            "(float[4] x, float[4] w) => (float[4] y) { a = Mul(x, w) y = Add(a, w) }",
            "(float[4] x, float[4] w) => (float[4] y) { y = com.microsoft.Both(x, w) }",
            ("fused", "Mul + Add → com.microsoft.Both", 1),
            id="fused",
        ),
        pytest.param(
            "(float[4] x) => (float[4] y) { a = Relu(x) y = Neg(a) }",
            "(float[4] x) => (float[4] y) { a = Relu(x) b = Cast<to=1>(a) y = Neg(b) }",
            ("replaced", "Neg → Cast + Neg", 1),
            id="replaced",
        ),
        pytest.param(
            "(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { a = Neg(w) b = Abs(a) y = Add(x, b) }",
            "(float[4] x) => (float[4] y) <float[4] b = {1,2,3,4}> { y = Add(x, b) }",
            ("folded", "Neg + Abs → a constant", 1),
            id="folded",
        ),
        pytest.param(
            "(float[4] x) => (float[4] y) { a = Relu(x) b = Relu(x) y = Add(a, b) }",
            "(float[4] x) => (float[4] y) { a = Relu(x) y = Add(a, a) }",
            ("merged", "2 Relu → one of them", 1),
            id="merged",
        ),
        pytest.param(
            "(float[4] x) => (float[4] y) { a = Identity(x) y = Relu(a) }",
            "(float[4] x) => (float[4] y) { y = Relu(x) }",
            ("removed", "Identity → nothing", 1),
            id="identity",
        ),
        pytest.param(
            "(float[4] x) => (float[4] y) { a = Relu(x) b = Neg(a) y = Abs(x) }",
            "(float[4] x) => (float[4] y) { y = Abs(x) }",
            ("removed", "Relu + Neg → nothing", 1),
            id="dead",
        ),
        pytest.param(
            "(float[4] x) => (float[4] y) { y = Abs(x) }",
            "(float[4] x) => (float[4] y) { a = Neg(x) y = Abs(x) }",
            ("added", "nothing → Neg", 1),
            id="added",
        ),
    ],
)
def test_a_change_of_each_kind(before: str, after: str, expected: tuple[str, str, int]) -> None:
    assert changes_of(before, after) == [expected]


def test_what_stays_is_no_change() -> None:
    text = "(float[4] x) => (float[4] y) { a = Relu(x) y = Neg(a) }"
    assert changes_of(text, text) == []


def test_equal_changes_are_counted_and_come_first() -> None:
    before = """(float[4] x) => (float[4] y) {
        a = Neg(x) b = Abs(a) c = Relu(b) d = Sin(c) e = Relu(d) y = Sin(e) }"""
    after = """(float[4] x) => (float[4] y) {
        b = com.microsoft.A(x) d = com.microsoft.B(b) y = com.microsoft.B(d) }"""
    assert changes_of(before, after) == [
        ("fused", "Relu + Sin → com.microsoft.B", 2),
        ("fused", "Neg + Abs → com.microsoft.A", 1),
    ]


def test_equal_nodes_that_are_both_gone_join_nothing() -> None:
    """Two independent fusions stay two, although both read the same input."""
    before = (
        "(float[4] x) => (float[4] y, float[4] z) { a = Neg(x) y = Abs(a) b = Neg(x) c = Sin(b) z = Cos(c) }"
    )
    after = "(float[4] x) => (float[4] y, float[4] z) { y = com.microsoft.A(x) z = com.microsoft.B(x) }"
    assert changes_of(before, after) == [
        ("fused", "Neg + Abs → com.microsoft.A", 1),
        ("fused", "Neg + Sin + Cos → com.microsoft.B", 1),
    ]


def test_constants_are_no_nodes_and_bodies_count() -> None:
    found = graph("""(bool c, float[4] x) => (float[4] y) {
        k = Constant<value = float[4] {1,2,3,4}>()
        y = If(c) <
            then_branch = t () => (float[4] p) { p = Add(x, k) },
            else_branch = e () => (float[4] q) { r = Neg(x) q = Abs(r) }
        > }""")
    assert found.total == 4
    assert found.nested == 3
    assert found.constants == {"k"}
    assert found.operators[OperatorType("", "Abs")] == 1
    (node,) = found.nodes
    assert set(node.inputs) == {"c", "x", "k"}


@pytest.mark.parametrize(
    ("domain", "origin"),
    [
        ("", "standard"),
        ("ai.onnx.ml", "standard"),
        ("com.microsoft", "onnxruntime"),
        ("com.microsoft.nchwc", "onnxruntime"),
        ("com.ms.internal.nhwc", "onnxruntime"),
        ("com.acme", "custom"),
    ],
)
def test_the_domain_tells_who_defines_an_operator(domain: str, origin: str) -> None:
    assert OperatorType(domain, "Conv").origin == origin


def test_operators_within_functions_are_named_and_not_counted() -> None:
    found = read_graph(
        onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[4] x) => (float[4] y) { y = local.Twice(x) }
        <domain: "local", opset_import: ["" : 17]> Twice (a) => (b) { b = Add(a, a) }""").SerializeToString()
    )
    assert found.op_types == {"Twice", "Add"}
    assert found.operators == {OperatorType("local", "Twice"): 1}


def test_rubbish_is_no_model() -> None:
    with pytest.raises(ValueError, match="corrupt"):
        read_graph(b"\xff\xff\xff")
