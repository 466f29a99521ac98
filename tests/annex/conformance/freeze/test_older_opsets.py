"""Models mean the same in the opset that they are given."""

import onnx.parser
import pytest

from harness.annex.conformance.restamp import OLDEST_IR, RESTAMP_OPSET, restamp


def restamped(body: str, opset: int) -> int:
    """Return the opset of a model that was made in another one."""
    model = onnx.parser.parse_model(f'<ir_version: 12, opset_import: ["" : {opset}]> g {body}')
    restamp(model)
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version >= OLDEST_IR
    return int(model.opset_import[0].version)


@pytest.mark.parametrize(
    ("body", "opset", "found"),
    [
        # The schema itself is older.
        ("(float[2] x) => (float[2] y) { y = Relu (x) }", 24, RESTAMP_OPSET),
        # A newer schema has more types, and the model has none of these.
        ("(float[1,1,3,3] x, float[1,1,2,2] w) => (float[1,1,2,2] y) { y = Conv (x, w) }", 22, RESTAMP_OPSET),
        ("(bfloat16[1,1,3,3] x, bfloat16[1,1,2,2] w) => (bfloat16[1,1,2,2] y) { y = Conv (x, w) }", 22, 22),
        # Between two nodes counts as well.
        ("(float[2] x) => (float[2] y) { t = Cast <to = 16> (x) u = Cos (t) y = Cast <to = 1> (u) }",
         22, 22),
        # A newer schema has one more attribute.
        ("(float[2] x) => (float16[2] y) { y = Cast <to: int = 10> (x) }", 24, RESTAMP_OPSET),
        ('(float[2] x) => (float16[2] y) { y = Cast <to: int = 10, round_mode: string = "up"> (x) }', 24, 24),
        # There is no older schema.
        ("(float[2,4] x, float[4] s) => (float[2,4] y) { y = RMSNormalization (x, s) }", 24, 23),
    ],
)  # fmt: skip
def test_the_oldest_opset_that_means_the_same(body: str, opset: int, found: int) -> None:
    assert restamped(body, opset) == found


def test_an_older_model_is_left_alone() -> None:
    assert restamped("(float[2] x) => (float[2] y) { y = Relu (x) }", 17) == 17


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("(float[1,1,3,3] x, float[1,1,2,2] w) => (float[1,1,2,2] y) { y = Conv (x, w) }", 7),
        # Before opset 7, an attribute said whether the second of two terms was broadcast.
        ("(float[2] x) => (float[2] y) { y = Add (x, x) }", 6),
    ],
)
def test_a_model_before_opset_7_gets_that_one_if_its_operators_mean_the_same(body: str, found: int) -> None:
    assert restamped(body, 6) == found


def test_operators_of_other_domains_keep_their_opsets() -> None:
    text = '<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]> g (float[2] x) => (float[2] y)'
    model = onnx.parser.parse_model(text + " { y = com.microsoft.Gelu (x) }")
    restamp(model)
    assert [one.version for one in model.opset_import] == [23, 1]
