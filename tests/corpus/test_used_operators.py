"""The operators of a model, in all its parts."""

from onnx import helper, parser

from harness.corpus.model.used_operators import used_operators

MODEL = """<ir_version: 9, opset_import: ["" : 12, "com.microsoft" : 1, "local" : 1]>
agraph (bool c, float[4] x) => (float[4] y)
{
    a = If (c) <
        then_branch = then () => (float[4] b) { b = Relu(x) },
        else_branch = otherwise () => (float[4] d) { d = com.microsoft.FastGelu(x) }
    >
    s = Softmax (a)
    y = local.twice (s)
}
<domain: "local", opset_import: ["" : 17, "local" : 1]>
twice (x) => (y) { s = Softmax(x) y = local.once(s) }
<domain: "local", opset_import: ["" : 17]>
once (x) => (y) { y = Neg(x) }
<domain: "local", opset_import: ["" : 17]>
never (x) => (y) { y = Abs(x) }
"""


def test_branches_bodies_and_called_functions_count() -> None:
    assert used_operators(parser.parse_model(MODEL)) == {
        "If": (11,),
        "Neg": (13,),
        "Relu": (6,),
        "Softmax": (11, 13),
        "com.microsoft.FastGelu": (0,),
    }


def test_a_domain_that_is_not_imported_has_no_version() -> None:
    graph = helper.make_graph([helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml")], "g", [], [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx", 17)])
    assert used_operators(model) == {"ai.onnx.ml.Scaler": (0,)}


def test_the_long_name_of_onnx_s_domain_is_the_short_one() -> None:
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"], domain="ai.onnx")], "g", [], [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx", 17)])
    assert used_operators(model) == {"Abs": (13,)}


def test_a_function_that_calls_itself_ends() -> None:
    function = helper.make_function(
        "f", "f", ["x"], ["y"], [helper.make_node("f", ["x"], ["y"], domain="f")], []
    )
    graph = helper.make_graph([helper.make_node("f", ["x"], ["y"], domain="f")], "g", [], [])
    assert used_operators(helper.make_model(graph, functions=[function])) == {}
