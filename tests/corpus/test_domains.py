"""Values that graphs demand of their inputs, and the inputs generated for them."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from harness.core.values.value import Array, Tensor
from harness.corpus.inputs.domain_walk import domains_of
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.operators.value_domains import COUNTED, DIVISOR, POSITIVE, SCALE, Domain

HEADER = '<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]>'


def domains(graph: str, functions: str = "") -> dict[str, Domain]:
    return domains_of(onnx.parser.parse_model(f"{HEADER} {graph} {functions}"))


TIMES = Domain(lengths=("time",))


def indexing(rows: int | str) -> Domain:
    return Domain(extents=(rows,))


def test_ids_that_index_a_table_have_its_rows_whatever_their_name() -> None:
    found = domains("""agraph (int64[N] a, int32[N, M] b, float[N] c, int64[N] e, int64[N] none)
    => (float[n] y) <float[30, 4] table, float[4, 7] wide, int64 one> {
        y0 = Gather(table, a) y1 = Gather<axis = -1>(wide, a)
        b1 = Unsqueeze(b, one) b2 = Cast<to = 7>(b1) y2 = Gather(table, b2)
        c1 = Cast<to = 7>(c) y3 = GatherElements<axis = 1>(wide, c1)
        shifted = Add(e, one) y5 = Gather(table, shifted)
        y = Identity(y0) }""")
    # Of several tables the smallest counts; what is computed from an input is no longer that input.
    assert found == {"a": Domain(extents=(30, 7)), "b": indexing(30), "c": indexing(7)}


def test_a_table_whose_size_is_symbolic_has_that_size() -> None:
    found = domains("agraph (float[rows, 4] table, int64[N] a) => (float[N, 4] y) { y = Gather(table, a) }")
    assert found == {"a": indexing("rows")}


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        ("y = Log(x)", POSITIVE),
        ("y = Sqrt(x)", POSITIVE),
        ("y = Div(o, x)", DIVISOR),
        ("y = Div(x, o)", None),
        ("y = Pow(x, o)", POSITIVE),
        ("y = Pow(x, two)", None),
        ("y = Asin(x)", Domain(low=-0.9, high=0.9)),
        ("y = Acosh(x)", Domain(low=1.1, high=4.0)),
        ("y = BatchNormalization(o, s, s, s, x)", POSITIVE),
        ("t = Transpose(x) u = Identity(t) y = Log(u)", POSITIVE),
        ("t = Exp(x) y = Log(t)", None),
        ("c = Concat<axis = 0>(o, x) y = Sqrt(c)", POSITIVE),
        ("z = Cast<to = 2>(x) y = Cast<to = 1>(z)", Domain(low=0.0, high=100.0)),
    ],
)
def test_what_operators_demand(node: str, wanted: Domain | None) -> None:
    head = "agraph (float[3, 3] x, float[3, 3] o, float[3] s) => (float[3, 3] y) <float two = {2.0}>"
    found = domains(f"{head} {{ {node} }}")
    assert found.get("x") == wanted


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ("n = Gather(s, one) r = Range(zero, n, one) m = Less(r, u)", TIMES),
        ("n = Slice(s, ones, twos) o = Squeeze(n) r = Range(zero, o, one) m = Greater(u, r)", TIMES),
        ("n = Gather(s, one) r = Range(zero, n, one) m = Equal(r, u)", indexing("time")),
        ("n = Gather(s, one) r = Range(one, n, one) m = Less(r, u)", None),
        ("n = Gather(s, one) r = Range(zero, n, one) v = Div(u, ones) m = Less(r, v)", None),
        ("n = Gather(s, one) r = Range(zero, one, n) m = Less(r, u)", None),
    ],
)
def test_what_is_compared_with_positions_are_lengths(nodes: str, wanted: Domain | None) -> None:
    weights = "<int64 zero = {0}, int64 one = {1}, int64[1] ones = {1}, int64[1] twos = {2}>"
    found = domains(
        f"agraph (float[rows, time] x, int64[rows] many) => (bool[rows, time] m) {weights} {{"
        f" s = Shape(x) u = Unsqueeze(many, ones) {nodes} }}"
    )
    assert found.get("many") == wanted


def test_the_positions_of_a_function_are_those_of_its_caller() -> None:
    header = HEADER.replace('"com.microsoft"', '"own"')
    model = onnx.parser.parse_model(
        f"{header} agraph (float[rows, time] x, int64[rows] many) => (bool[rows, time] m)"
        " <int64 zero = {0}, int64 one = {1}, int64[1] ones = {1}>"
        " { s = Shape(x) n = Gather(s, one) u = Unsqueeze(many, ones) m = own.mask(n, u, zero, one) }"
        ' <domain: "own", opset_import: ["" : 17]> mask (n, u, zero, one) => (m)'
        " { r = Range(zero, n, one) m = Less(r, u) }"
    )
    assert domains_of(model) == {"many": TIMES}
    # An earlier call differs in that alone.
    size = onnx.helper.make_node("Size", ["x"], ["size"])
    call = onnx.helper.make_node("mask", ["size", "u", "zero", "one"], ["other"], domain="own")
    at = len(model.graph.node) - 1
    for node in (call, size):
        model.graph.node.insert(at, node)
    assert domains_of(model) == {"many": TIMES}


def test_bodies_and_functions_are_entered() -> None:
    body = "then_graph () => (float[4] t) { t = Log(x) }"
    other = "else_graph () => (float[4] e) { e = Identity(x) }"
    found = domains(
        f"agraph (bool c, float[4] x) => (float[4] y) {{"
        f" y = If (c) <then_branch = {body}, else_branch = {other}> }}"
    )
    assert found == {"x": POSITIVE}
    header = HEADER.replace('"com.microsoft"', '"own"')
    model = onnx.parser.parse_model(
        f"{header} agraph (float[4] x) => (float[4] y) {{ y = own.f(x) }}"
        ' <domain: "own", opset_import: ["" : 17]> f (a) => (b) { c = Identity(a) b = Sqrt(c) }'
    )
    assert domains_of(model) == {"x": POSITIVE}


def test_a_call_names_domain_and_overload_of_its_function() -> None:
    header = HEADER.replace('"com.microsoft"', '"own"')
    model = onnx.parser.parse_model(
        f"{header} agraph (float[4] x, float[4] z) => (float[4] y, float[4] w)"
        " { y = own.f(x) w = own.f(z) }"
        ' <domain: "own", opset_import: ["" : 17]> f (a) => (b) { b = Sqrt(a) }'
        ' <domain: "own", opset_import: ["" : 17]> f (a) => (b) { b = Neg(a) }'
    )
    model.functions[1].overload = model.graph.node[1].overload = "second"
    assert domains_of(model) == {"x": POSITIVE}
    for named in (*model.functions, *model.graph.node):
        named.domain = ""
    model.graph.node[0].domain = "ai.onnx"
    assert domains_of(model) == {"x": POSITIVE}


def test_several_demands_intersect_and_one_that_cannot_be_met_is_left() -> None:
    found = domains("""agraph (float[4] x) => (float[4] y, float[4] z) {
        a = Log(x) y = Asin(x) z = Add(a, y) }""")
    assert found == {"x": Domain(low=0.05, high=0.9)}
    found = domains("agraph (float[4] x) => (float[4] y, float[4] z) { y = Acosh(x) z = Asin(x) }")
    assert found == {"x": Domain(low=1.1, high=4.0)}


def generated(folder: Path, graph: str, seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    model = onnx.parser.parse_model(f"{HEADER} {graph}")
    onnx.save(model, folder / f"m{seed}.onnx")
    case = load_case(open_folder(folder), f"m{seed}.onnx", {}, seed=seed)
    fed = {name: value.array for name, value in case.data_sets[0].inputs if isinstance(value, Tensor)}
    return model, fed


SOUND = (
    "agraph (float[n, 4] x) => (float[n, 4] y) { a = Sqrt(x) b = Log(x) y = Add(a, b) }",
    "agraph (float[n, 4] x, float[n, 4] p) => (float[n, 4] y) { y = Pow(x, p) }",
    "agraph (float[n, 4] x, float[n, 4] d) => (float[n, 4] y) { y = Div(x, d) }",
    "agraph (float[n, 4] x) => (float[n, 4] y) { a = Acosh(x) b = Reciprocal(x) y = Mul(a, b) }",
    "agraph (float[n, 4] x) => (float[n, 4] y) { a = Asin(x) b = Acos(x) c = Atanh(x) y = Sum(a, b, c) }",
    "agraph (float[rows, 4] t, int64[n, 3] i) => (float[n, 3, 4] y) { y = Gather(t, i) }",
    """agraph (float[rows, 4] t, int64[n, 4] i, float[n, 4] u) => (float[rows, 4] y) {
        y = ScatterElements(t, i, u) }""",
    "agraph (float[n, 4] x, int64[1] k) => (float[n, m] y, int64[n, m] i) { y, i = TopK(x, k) }",
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("graph", SOUND)
def test_what_is_generated_has_a_defined_result(tmp_path: Path, graph: str, seed: int) -> None:
    model, fed = generated(tmp_path, graph, seed)
    for value in ReferenceEvaluator(model).run(None, fed):
        assert np.isfinite(value).all()


def test_indices_of_a_scatter_differ(tmp_path: Path) -> None:
    for seed in range(5):
        _, fed = generated(tmp_path, SOUND[-2].replace("rows, 4", "9, 4").replace("n, 4", "7, 4"), seed)
        assert fed["i"].max() < 9
        assert all(len(set(column)) == 7 for column in fed["i"].T.tolist())


def test_index_tuples_of_a_scatter_differ(tmp_path: Path) -> None:
    graph = """agraph (float[3, 5, 2] t, int64[11, 2] i, float[11, 2] u) => (float[3, 5, 2] y) {
        y = ScatterND(t, i, u) }"""
    for seed in range(5):
        _, fed = generated(tmp_path, graph, seed)
        assert len(set(map(tuple, fed["i"].tolist()))) == 11
        assert (fed["i"] < [3, 5]).all()


def test_scales_of_a_quantization_are_small_and_positive(tmp_path: Path) -> None:
    graph = "agraph (float[9] x, float s, uint8 z) => (uint8[9] y) { y = QuantizeLinear(x, s, z) }"
    assert domains(graph)["s"] == SCALE
    _, fed = generated(tmp_path, graph, 0)
    assert 0.01 <= fed["s"] <= 0.2


def test_axes_count_up() -> None:
    graph = "agraph (float[2, 3] x, int64[2] axes) => (float[1, 1] y) { y = ReduceSum(x, axes) }"
    assert domains(graph) == {"axes": COUNTED}
