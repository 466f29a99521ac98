import onnx
import onnx.parser

from harness.corpus.model.model_facts import model_facts


def parsed(graph: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {graph}')


FLATTEN = """agraph (float[N,C,H] x) => (float[M,K] y)
<int64[1] zero = {0}, int64[1] minus = {-1}> {
    s = Shape(x)
    n = Gather(s, zero)
    t = Concat<axis = 0>(n, minus)
    y = Reshape(x, t)
}"""


def test_counts_versions_and_shape_arithmetic() -> None:
    facts = model_facts(parsed(FLATTEN))
    assert facts.ir_version == 9
    assert facts.opsets == {"ai.onnx": 17}
    assert facts.nodes == 4
    assert facts.op_types == {"Concat": 1, "Gather": 1, "Reshape": 1, "Shape": 1}
    assert facts.shape_only_ops == {"Shape", "Gather", "Concat"}
    assert facts.float_types == {"float32"}


def test_one_node_on_data_takes_its_type_out() -> None:
    facts = model_facts(parsed(FLATTEN.replace("y = Reshape(x, t)", "g = Gather(x, zero) y = Reshape(g, t)")))
    assert facts.shape_only_ops == {"Shape", "Concat"}


def test_constants_alone_are_no_shape_arithmetic_and_large_ones_are_data() -> None:
    folded = """agraph (float[N] x) => (float[N] y) <float[1] a = {1.0}> { b = Mul(a, a) y = Add(x, b) }"""
    assert model_facts(parsed(folded)).shape_only_ops == set()
    table = "{" + ", ".join(["0.5"] * 65) + "}"
    lookup = f"""agraph (float[N] x) => (float[M] y) <float[65] table = {table}> {{
        s = Shape(x) y = Gather(table, s) }}"""
    assert model_facts(parsed(lookup)).shape_only_ops == {"Shape"}


def test_resize_scales_may_be_computed_in_floating_point() -> None:
    facts = model_facts(
        parsed("""agraph (float16[N] x) => (int64[1] y) {
            two = Constant<value = float[1] {2.0}>()
            s = Shape(x)
            f = Cast<to = 1>(s)
            d = Mul(f, two)
            r = Floor(d)
            y = Cast<to = 7>(r)
        }""")
    )
    assert facts.shape_only_ops == {"Shape", "Cast", "Mul", "Floor"}
    assert facts.float_types == {"float16", "float32"}


def test_subgraphs_see_the_names_outside_and_count() -> None:
    facts = model_facts(
        parsed("""agraph (bool c, float[N] x) => (float[M] y) {
            s = Shape(x)
            y = If(c) <
                then_branch = one () => (float[M] p) { q = Add(s, s) p = Cast<to = 1>(q) },
                else_branch = two () => (float[M] r) { d = Cast<to = 11>(x) e = Exp(d) r = Cast<to = 1>(e) }
            >
        }""")
    )
    assert facts.op_types == {"Add": 1, "Cast": 3, "Exp": 1, "If": 1, "Shape": 1}
    assert facts.nodes == 7
    assert facts.shape_only_ops == {"Shape", "Add"}
    assert facts.float_types == {"float32", "float64"}


def test_bodies_of_local_functions_count_and_other_domains_compute_no_shapes() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 17, "local": 1]>
        agraph (float[N] x) => (float[N] y) { y = local.Shape(x) }
        <domain: "local", opset_import: ["": 17]>
        Shape (a) => (b) { b = Relu(a) }
    """)
    facts = model_facts(model)
    assert facts.opsets == {"ai.onnx": 17, "local": 1}
    assert facts.op_types == {"Relu": 1, "Shape": 1}
    assert facts.shape_only_ops == set()
