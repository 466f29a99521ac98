"""Composite operators taken apart."""

from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import pytest

from harness.annex.triage.decompose import composite_operators, decomposed
from harness.annex.triage.subject import Subject
from harness.core.values.value import tensor

ort: Any = pytest.importorskip("onnxruntime")

X = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)


def subject_of(body: str, opsets: str = '"" : 20', more: str = "") -> Subject:
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: [{opsets}]>
        agraph (float[2,4] x) => (float[2,4] y) {{ {body} }} {more}""")
    return Subject(model=model.SerializeToString(), inputs=(("x", tensor(X)),))


def run(subject: Subject) -> Any:
    session = ort.InferenceSession(subject.model, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


def operators(subject: Subject) -> list[str]:
    return [node.op_type for node in subject.proto().graph.node]


@pytest.mark.parametrize(
    ("body", "operator"),
    [
        ("y = Gelu (x)", "Gelu"),
        ("y = Softmax <axis = -1> (x)", "Softmax"),
        ("y = HardSwish (x)", "HardSwish"),
        ("y = Mish (x)", "Mish"),
        ("y = LeakyRelu <alpha = 0.2> (x)", "LeakyRelu"),
    ],
)
def test_an_operator_with_a_body_becomes_its_body(body: str, operator: str) -> None:
    subject = subject_of(f"a = Neg (x) {body.replace('(x)', '(a)')}")
    assert ("", operator) in composite_operators(subject)
    apart = decomposed(subject, ("", operator))
    assert apart is not None
    onnx.checker.check_model(apart.proto())
    assert operator not in operators(apart)
    assert operators(apart)[0] == "Neg"
    np.testing.assert_allclose(run(apart), run(subject), rtol=1e-5, atol=1e-6)


def test_all_nodes_of_one_operator_go_and_others_stay() -> None:
    subject = subject_of("a = Gelu (x) b = Mish (a) y = Gelu (b)")
    assert set(composite_operators(subject)) == {("", "Gelu"), ("", "Mish")}
    apart = decomposed(subject, ("", "Gelu"))
    assert apart is not None
    assert "Gelu" not in operators(apart)
    assert operators(apart).count("Mish") == 1


def test_functions_of_the_model_are_composite() -> None:
    more = """<domain: "own", opset_import: ["" : 20]> twice (p) => (q) { q = Add (p, p) }"""
    subject = subject_of("y = own.twice (x)", '"" : 20, "own" : 1', more)
    assert composite_operators(subject) == (("own", "twice"),)
    apart = decomposed(subject, ("own", "twice"))
    assert apart is not None
    assert operators(apart) == ["Add"]
    np.testing.assert_array_equal(run(apart), 2 * X)


def test_plain_and_unknown_operators_are_not() -> None:
    subject = subject_of("a = Neg (x) b = nobody.Knows (a) y = Add (a, b)", '"" : 20, "nobody" : 1')
    assert composite_operators(subject) == ()
    assert decomposed(subject, ("", "Neg")) is None
    assert decomposed(subject, ("nobody", "Knows")) is None


def test_the_opset_of_the_model_counts() -> None:
    """Gelu is an operator of ONNX from opset 20 on."""
    assert composite_operators(subject_of("y = Gelu (x)", '"" : 17')) == ()
