"""Every ONNX element type and container that the CPU provider takes, in and out of the agent."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from harness.agent.target_errors import UnfeedableError
from harness.agent.wire import to_feed
from harness.core.values.value import DTYPES, STRING, Map, Sequence, Tensor, Value, tensor, to_wire
from tests.kit import parse

Run = Callable[..., dict[str, Value]]

NO_KERNEL = {"float4e2m1", "complex64", "complex128"}
"""Element types for which onnxruntime 1.31's CPU provider has no kernel at all."""
NO_IDENTITY = NO_KERNEL | {"int2", "uint2", "int4", "uint4", "float8e8m0"}
CASTABLE = sorted(DTYPES.keys() - NO_KERNEL)
EXACT = np.array([1.0, 0.0, 1.0, 2.0, 1.0, 4.0, 0.5], np.float32)
"""Seven values, so that packed types end in the middle of a byte."""


def value(dtype: str) -> Tensor:
    """Seven elements that the type can hold."""
    if dtype == STRING:
        return tensor(np.array(["", "ä€😀", "line\nfeed", "x" * 5000, "a", "b", "c"], dtype=object))
    source: np.ndarray[Any, Any]
    if dtype == "bool":
        source = EXACT > 0.5
    elif dtype == "float8e8m0":
        source = np.maximum(EXACT, 0.5)  # powers of two only
    elif dtype == "int2":
        source = np.array([1, 0, -2, -1, 1, 0, 1], np.float32)
    elif dtype == "uint2":
        source = np.array([1, 0, 3, 2, 1, 0, 1], np.float32)
    else:
        source = EXACT if "float" in dtype else np.floor(EXACT)
    return Tensor(dtype=dtype, array=source.astype(DTYPES[dtype]))


def number(dtype: str) -> int:
    found: int = getattr(onnx.TensorProto, dtype.upper() if dtype not in SPELLED else SPELLED[dtype])
    return found


SPELLED = {"float32": "FLOAT", "float64": "DOUBLE"}


def one_node(op: str, source: str, result: str, **attributes: Any) -> bytes:
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", number(source), [None])],
        [helper.make_tensor_value_info("y", number(result), [None])],
    )
    model = helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 25)])
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize("dtype", [*sorted(DTYPES.keys() - NO_IDENTITY), STRING])
def test_an_element_type_passes_through(outputs_of: Run, dtype: str) -> None:
    given = value(dtype)
    (result,) = outputs_of(one_node("Identity", dtype, dtype), {"x": given}).values()
    assert to_wire(result) == to_wire(given)


@pytest.mark.parametrize("dtype", CASTABLE)
def test_an_element_type_as_input(outputs_of: Run, dtype: str) -> None:
    given = value(dtype)
    (result,) = outputs_of(one_node("Cast", dtype, "float32", to=1), {"x": given}).values()
    assert isinstance(result, Tensor)
    np.testing.assert_array_equal(result.array, given.array.astype(np.float32))


@pytest.mark.parametrize("dtype", CASTABLE)
def test_an_element_type_as_output(outputs_of: Run, dtype: str) -> None:
    wanted = value(dtype)
    given = tensor(wanted.array.astype(np.float32))
    (result,) = outputs_of(one_node("Cast", "float32", dtype, to=number(dtype)), {"x": given}).values()
    assert to_wire(result) == to_wire(wanted)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8e5m2", STRING, "bool"])
def test_an_empty_tensor(outputs_of: Run, dtype: str) -> None:
    given = Tensor(dtype=dtype, array=value(dtype).array[:0])
    (result,) = outputs_of(one_node("Identity", dtype, dtype), {"x": given}).values()
    assert to_wire(result) == to_wire(given)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_an_empty_packed_tensor(outputs_of: Run, dtype: str) -> None:
    given = Tensor(dtype=dtype, array=value(dtype).array[:0])
    (result,) = outputs_of(one_node("Cast", dtype, "float32", to=1), {"x": given}).values()
    assert to_wire(result) == to_wire(tensor(np.zeros(0, np.float32)))


@pytest.mark.parametrize("dtype", sorted(NO_KERNEL))
def test_a_type_without_kernel_is_an_error_of_the_runtime(
    serve: Callable[..., dict[str, object]], dtype: str
) -> None:
    result = serve(one_node("Identity", dtype, dtype), {"x": value("float32")})
    assert (result["status"], result["phase"]) == ("error", "create")


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "uint8", "float8e4m3fn"])
def test_quantized_on_the_way(outputs_of: Run, dtype: str) -> None:
    kind = number(dtype)
    model = parse(
        f"g (float[N] x) => ({dtype}[N] q, float[N] y) <float s = {{0.5}}> "
        f"{{ q = QuantizeLinear<output_dtype: int = {kind}>(x, s) y = DequantizeLinear(q, s) }}",
        opset=25,
    )
    given = EXACT[EXACT < 4]  # int4 ends at 7
    result = outputs_of(model, {"x": tensor(given)})
    quantized, back = result["q"], result["y"]
    assert isinstance(quantized, Tensor)
    assert isinstance(back, Tensor)
    np.testing.assert_array_equal(quantized.array.astype(np.float32), given * 2)
    np.testing.assert_array_equal(back.array, given)


FLOATS = tensor(np.array([1.5, -2.0], np.float32))
NAMES = tensor(np.array(["ä", ""], dtype=object))


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("seq(float[N])", Sequence(items=(FLOATS, tensor(np.zeros(3, np.float32))))),
        ("seq(float[N])", Sequence(items=())),
        ("seq(string[N])", Sequence(items=(NAMES, NAMES))),
        ("optional(float[N])", FLOATS),
        ("optional(float[N])", None),
        ("optional(seq(float[N]))", Sequence(items=(FLOATS,))),
    ],
)
def test_containers_pass_through(outputs_of: Run, declared: str, given: Value) -> None:
    model = parse(f"g ({declared} x) => ({declared} y) {{ y = Identity(x) }}", opset=17, ir=9)
    (result,) = outputs_of(model, {"x": given}).values()
    assert to_wire(result) == to_wire(given)


@pytest.mark.parametrize("given", [FLOATS, None], ids=["full", "empty"])
def test_an_optional_input_may_be_empty(outputs_of: Run, given: Value) -> None:
    model = parse("g (optional(float[N]) x) => (bool y) { y = OptionalHasElement(x) }", opset=18, ir=9)
    (result,) = outputs_of(model, {"x": given}).values()
    assert to_wire(result) == to_wire(tensor(np.array(given is not None)))


@pytest.mark.parametrize(
    ("labels", "keys"),
    [
        ("classlabels_int64s = [7, 3]", tensor(np.array([7, 3]))),
        ('classlabels_strings = ["b", "a"]', tensor(np.array(["b", "a"], dtype=object))),
    ],
)
def test_maps_as_outputs(outputs_of: Run, labels: str, keys: Tensor) -> None:
    kind = "int64" if keys.dtype == "int64" else "string"
    model = parse(
        f"g (float[N, 2] x) => (seq(map({kind}, float)) y) {{ y = ai.onnx.ml.ZipMap<{labels}>(x) }}",
        opset=15,
        ir=8,
    )
    (result,) = outputs_of(model, {"x": tensor(np.array([[1, 2], [3, 4]], np.float32))}).values()
    assert isinstance(result, Sequence)
    assert len(result.items) == 2
    for item, row in zip(result.items, ([1.0, 2.0], [3.0, 4.0]), strict=True):
        assert isinstance(item, Map)
        assert item.keys.dtype == kind
        found = dict(zip(item.keys.array.tolist(), item.values.array.tolist(), strict=True))
        assert found == dict(zip(keys.array.tolist(), row, strict=True))


def test_the_values_of_a_map_keep_their_type(outputs_of: Run) -> None:
    model = parse(
        "g (float[N, 1] x) => (seq(map(int64, float)) y) "
        "{ y = ai.onnx.ml.ZipMap<classlabels_int64s = [1]>(x) }",
        opset=15,
        ir=8,
    )
    (result,) = outputs_of(model, {"x": tensor(np.array([[0.1]], np.float32))}).values()
    assert isinstance(result, Sequence)
    (item,) = result.items
    assert isinstance(item, Map)
    assert item.values.dtype == "float32"


@pytest.mark.parametrize(
    ("declared", "vocabulary", "keys"),
    [
        ("map(string, float)", 'string_vocabulary = ["a", "b", "c"]', np.array(["c", "a"], dtype=object)),
        ("map(int64, float)", "int64_vocabulary = [1, 2, 3]", np.array([3, 1])),
    ],
)
def test_maps_as_inputs(
    outputs_of: Run, declared: str, vocabulary: str, keys: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> None:
    model = parse(
        f"g ({declared} x) => (float[1, 3] y) {{ y = ai.onnx.ml.DictVectorizer<{vocabulary}>(x) }}",
        opset=15,
        ir=8,
    )
    given = Map(keys=tensor(keys), values=tensor(np.array([0.5, 2], np.float32)))
    (result,) = outputs_of(model, {"x": given}).values()
    assert to_wire(result) == to_wire(tensor(np.array([[2, 0, 0.5]], np.float32)))


def test_what_numpy_has_no_dimensions_for_is_no_fault_of_a_provider() -> None:
    with pytest.raises(UnfeedableError, match="no arrays of 65 dimensions"):
        to_feed({"dtype": "float32", "shape": [1] * 65, "data": bytes(4)})
