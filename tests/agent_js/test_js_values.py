"""Values in wire form, as the JavaScript agent takes, gives and reverses them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.agent.other_inputs import reversed_inputs

# A stand-in of onnxruntime's class: the real one is tried in tests/real_ep/test_javascript.py.
TENSOR = """
import { difference, distance, fromHalf, sameBits } from 'agent:difference.mjs';
import { otherInputs, toFeed, toWire } from 'agent:values.mjs';
class Tensor {
  constructor(type, data, dims) { Object.assign(this, { type, data, dims, location: 'cpu' }); }
}
const ort = { Tensor };
const bytes = (hex) => new Uint8Array(Buffer.from(hex, 'hex'));
const wire = ({ dtype, shape, hex, data }) => ({ dtype, shape, data: data ?? bytes(hex) });
const hex = (data) => (data instanceof Uint8Array ? Buffer.from(data).toString('hex') : data);
const shown = ({ dtype, shape, data }) => ({ dtype, shape, hex: hex(data) });
"""

DTYPES = ["bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64"]
DTYPES += ["uint8", "uint16", "uint32", "uint64"]


def hexed(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype.kind == "O":
        return {"dtype": "string", "shape": list(array.shape), "data": array.ravel().tolist()}
    return {"dtype": array.dtype.name, "shape": list(array.shape), "hex": array.tobytes().hex()}


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "float16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    ],
)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4)])
def test_bits_survive_both_ways(evaluate: Callable[..., Any], dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape)), dtype=np.uint8).astype(dtype).reshape(shape)
    given = hexed(array)
    assert evaluate(f"{TENSOR} give(shown(await toWire(toFeed(ort, wire(value)))));", given) == given


@pytest.mark.parametrize(
    "value",
    [
        "null",
        "{ sequence: [] }",
        "{ keys: {}, values: {} }",
        "{ dtype: 'bfloat16', shape: [], data: bytes('0000') }",
    ],
)
def test_what_the_api_lacks_is_unfeedable(evaluate: Callable[..., Any], value: str) -> None:
    script = f"""{TENSOR}
    import {{ Unfeedable }} from 'agent:errors.mjs';
    try {{ toFeed(ort, {value}); give('taken'); }} catch (error) {{ give(error instanceof Unfeedable); }}
    """
    assert evaluate(script) is True


CASES: list[dict[str, np.ndarray[Any, Any]]] = [
    {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "k": np.array([1, 2])},
    {"x": np.ones((2, 3), np.float32), "k": np.arange(4).reshape(2, 2)},
    {"x": np.array([[0.0, -0.0]], np.float32), "k": np.array([1.0, 2.0])},
    {"x": np.array([[np.nan, np.nan]], np.float16)},
    {"x": np.array([[0.0, -0.0], [-0.0, 0.0]], np.float16), "s": np.array(["a", "b"], object)},
    {"s": np.array([True, False])},
    {"t": np.arange(8).reshape(2, 4), "m": np.array([[1, 1, 1, 1], [1, 1, 1, 0]])},
    {"t": np.arange(8).reshape(2, 4), "m": np.array([[1, 0, 1, 1], [1, 1, 1, 0]])},
    {"t": np.ones((2, 2), "f"), "m": np.array([[1, 1], [1, 0]], np.float16)},
    {"t": np.arange(4, dtype=np.float16).reshape(2, 2), "m": np.array([[1, 1], [1, 0]], np.float16)},
    {"s": np.array(3.0)},
]


@pytest.mark.parametrize("feeds", CASES)
def test_other_inputs_are_those_that_the_golden_was_made_of(
    evaluate: Callable[..., Any], feeds: dict[str, np.ndarray[Any, Any]]
) -> None:
    script = f"""{TENSOR}
    const other = otherInputs(value.map(([name, each]) => [name, wire(each)]));
    give(other && other.map(([name, each]) => [name, shown(each)]));
    """
    expected = reversed_inputs(feeds)
    found = evaluate(script, [[name, hexed(array)] for name, array in feeds.items()])
    wanted = [(name, hexed(np.ascontiguousarray(array))) for name, array in (expected or {}).items()]
    for _, each in wanted:
        each["hex"] = each.pop("data", each.get("hex"))
    assert [(name, each) for name, each in found or ()] == wanted


def test_the_largest_difference_is_found(evaluate: Callable[..., Any]) -> None:
    script = f"""{TENSOR}
    const [one, other, broken] = value.map(wire);
    const far = String(distance([one], [broken]));
    give([distance([one], [other]), distance([one], [one]), far, sameBits(one, other)]);
    """
    arrays = (np.array([1, 2, 5], "f"), np.array([1, 2.5, 5], "f"), np.array([1, np.nan, 5], "f"))
    assert evaluate(script, [hexed(array) for array in arrays]) == [0.5, 0, "Infinity", False]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (np.array([1, -4], "f"), np.array([1, -3], "f"), 0.25),
        (np.array([1, np.nan], "f"), np.array([1, np.nan], "f"), 0),
        (np.array([1, np.inf], "f"), np.array([1, np.nan], "f"), "inf"),
        (np.array([0.0], "f"), np.array([-0.0], "f"), 0),
        (np.array([[1.0]], "f"), np.array([1.0], "f"), "inf"),
        (np.array([1.5, -65504], np.float16), np.array([1.5, -65472], np.float16), 32 / 65504),
        (np.array([10, 2**40]), np.array([10, 2**40 + 2**30]), 2**-10),
        (np.array(["a"], object), np.array(["b"], object), "inf"),
    ],
)
def test_differences_are_relative_to_the_largest_value(
    evaluate: Callable[..., Any], one: Any, other: Any, expected: float | str
) -> None:
    script = f"""{TENSOR}
    const [one, other] = value.map(wire);
    const found = difference([one], [other]);
    give(Number.isFinite(found) ? found : 'inf');
    """
    assert evaluate(script, [hexed(one), hexed(other)]) == expected


def test_every_float16_is_decoded(evaluate: Callable[..., Any]) -> None:
    found = evaluate(f"{TENSOR} give(Array.from({{ length: 65536 }}, (_, bits) => String(fromHalf(bits))));")
    expected = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float64)
    assert np.array_equal(
        np.array([float(text.replace("Infinity", "inf")) for text in found]), expected, equal_nan=True
    )
