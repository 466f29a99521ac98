"""Values for which ONNX leaves a result undefined, and the outputs that depend on it."""

from typing import Any

import numpy as np
import onnx.parser
import pytest

from harness.core.values.value import DTYPES, Array, Value, tensor
from harness.corpus.model.undefined import hidden_from, partials_of, undefined_outputs

HEADER = '<ir_version: 9, opset_import: ["" : 18]>'


def undefined(graph: str, **values: Any) -> dict[str, str]:
    known: dict[str, Value] = {name: tensor(np.asarray(value)) for name, value in values.items()}
    return undefined_outputs(partials_of(onnx.parser.parse_model(f"{HEADER} {graph}")), known)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


FLOATS, WHOLE = floats(1.5, 2.0, 3.0), np.array([0, 1, 2])
CAST = "agraph (float[3] x) => (uint8[3] y) { y = Cast<to = 2>(x) }"
TO_FLOAT4 = CAST.replace("uint8", "float4e2m1").replace("= 2", "= 23")
CAST_LIKE = "agraph (float[3] x, uint8[1] p) => (uint8[3] y) { y = CastLike(x, p) }"
NO_FLOAT4 = np.zeros(1, DTYPES["float4e2m1"])
POW = "agraph (float[3] x, float[3] p) => (float[3] y) { y = Pow(x, p) }"
DIV = "agraph (int64[3] x, int64[3] p) => (int64[3] y) { y = Div(x, p) }"
SCATTER = "agraph (float[3] x, int64[3] i, float[3] u) => (float[3] y) { y = ScatterElements(x, i, u) }"
TUPLES = "agraph (float[3] x, int64[3, 1] i, float[3] u) => (float[3] y) { y = ScatterND(x, i, u) }"


@pytest.mark.parametrize(
    ("graph", "values", "why"),
    [
        (CAST, {"x": FLOATS}, ""),
        (CAST, {"x": floats(0, 255.9, -0.9)}, ""),
        (CAST, {"x": floats(0, 256, 1)}, "Cast of 256 to uint8, which holds 0 to 255"),
        (CAST, {"x": floats(0, -2.5, 1)}, "Cast of -2.5 to uint8, which holds 0 to 255"),
        (CAST, {"x": floats(0, np.nan, 1)}, "Cast of NaN or infinity to uint8"),
        (CAST.replace("uint8", "int64").replace("= 2", "= 7"), {"x": -FLOATS}, ""),
        (CAST.replace("uint8", "bool").replace("= 2", "= 9"), {"x": -FLOATS}, ""),
        (TO_FLOAT4, {"x": floats(7, np.inf, -np.inf)}, ""),
        (TO_FLOAT4, {"x": floats(0, np.nan, 1)}, "Cast of NaN to float4e2m1, which has none"),
        (CAST_LIKE, {"x": floats(0, 256, 1), "p": np.zeros(1, np.uint8)}, "Cast of 256 to uint8"),
        (CAST_LIKE, {"x": floats(0, 255, 1), "p": np.zeros(1, np.uint8)}, ""),
        (CAST_LIKE, {"x": floats(0, np.nan, 1), "p": np.zeros(1, np.float16)}, ""),
        (CAST_LIKE, {"x": floats(0, np.nan, 1), "p": NO_FLOAT4}, "Cast of NaN to float4e2m1, which has none"),
        (POW, {"x": -FLOATS, "p": floats(2, 3, 0)}, ""),
        (POW, {"x": FLOATS, "p": FLOATS}, ""),
        (POW, {"x": -FLOATS, "p": FLOATS}, "Pow of a negative base with a fraction as exponent"),
        (DIV, {"x": WHOLE, "p": WHOLE}, "Div of integers by zero"),
        (DIV, {"x": WHOLE, "p": WHOLE + 1}, ""),
        (DIV.replace("int64", "float"), {"x": FLOATS, "p": floats(0, 1, 2)}, ""),
        (DIV.replace("Div", "Mod"), {"x": WHOLE, "p": WHOLE}, "Mod of integers by zero"),
        (SCATTER, {"x": FLOATS, "i": WHOLE, "u": FLOATS}, ""),
        (
            SCATTER,
            {"x": FLOATS, "i": np.array([0, -3, 1], np.int64), "u": FLOATS},
            "to the same element twice",
        ),
        (SCATTER.replace("Elements(", 'Elements<reduction = "add">('), {"x": FLOATS, "i": WHOLE * 0}, ""),
        (TUPLES, {"x": FLOATS, "i": WHOLE[:, None], "u": FLOATS}, ""),
        (TUPLES, {"x": FLOATS, "i": WHOLE[:, None] // 2, "u": FLOATS}, "to the same element twice"),
        (
            'agraph (uint8[3] x, uint8[3] p) => (uint8[3] y) { y = BitShift<direction = "LEFT">(x, p) }',
            {"x": np.array([1, 1, 1], np.uint8), "p": np.array([7, 8, 1], np.uint8)},
            "BitShift by the width of the type or more",
        ),
        (
            "agraph (float[3] x, float s, uint8 z) => (uint8[3] y) { y = QuantizeLinear(x, s, z) }",
            {"x": floats(1, np.nan, 1), "s": np.float32(1), "z": np.uint8(0)},
            "QuantizeLinear of NaN to an integer",
        ),
    ],
)
def test_values_without_a_defined_result(graph: str, values: dict[str, Any], why: str) -> None:
    found = undefined(graph, **values)
    assert (why in found["y"]) if why else not found


@pytest.mark.parametrize(("opset", "defined"), [(11, False), (26, False), (28, True)])
def test_from_opset_28_on_wide_shifts_are_defined(opset: int, defined: bool) -> None:  # noqa: FBT001
    graph = 'agraph (uint8[2] x, uint8[2] p) => (uint8[2] y) { y = BitShift<direction = "LEFT">(x, p) }'
    model = onnx.parser.parse_model(f"{HEADER.replace('18', str(opset))} {graph}")
    values: dict[str, Value] = {"p": tensor(np.array([8, 255], np.uint8))}
    assert bool(undefined_outputs(partials_of(model), values)) is not defined


def test_only_outputs_that_depend_on_it_are_undefined() -> None:
    graph = """agraph (float[3] x, bool c) => (uint8[3] y, float[3] z, uint8[3] w) {
        y = Cast<to = 2>(x) z = Neg(x)
        w = If (c) <then_branch = t () => (uint8[3] a) { a = Identity(y) },
            else_branch = e () => (uint8[3] b) { b = Identity(y) }> }"""
    assert undefined(graph, x=-FLOATS).keys() == {"y", "w"}


def test_a_value_that_is_not_known_excuses_nothing() -> None:
    assert undefined(CAST) == {}
    assert undefined(POW, x=-FLOATS) == {}
    model = onnx.parser.parse_model(
        f"{HEADER} agraph (float[3] x) => (uint8[3] y) {{ a = Neg(x) y = Cast<to = 2>(a) }}"
    )
    assert hidden_from(partials_of(model), ["x", "y"]) == ("a",)
