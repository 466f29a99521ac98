"""Models converted inside an agent: what becomes of them, and why there may be none."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from harness.agent.precision.kept import KEPT
from harness.agent.precision.model_conversion import MODULES, attempted
from harness.agent.precision.weights import generated_bytes
from harness.core.records.precision import CONVERSIONS
from harness.core.values.value import Tensor, from_wire, tensor
from tests.kit import write_model

Make = Callable[..., tuple[onnx.ModelProto, onnx.ModelProto | None] | str]

X = np.random.default_rng(3).standard_normal((2, 32)).astype(np.float32)
MLP = "agraph (float[2, 32] x) => (float[2, 4] y) { h = MatMul(x, w) r = Relu(h) y = MatMul(r, v) }"
RELU = "agraph (float[2, 32] x) => (float[2, 32] y) { y = Relu(x) }"


@pytest.fixture(scope="session")
def make(serve: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Convert a model in ONNX's text form, or the reason why that cannot be; weights are random."""

    def of(
        text: str,
        precision: str,
        weights: dict[str, tuple[int, ...]] | None = None,
        opset: int = 17,
        kept: str = "",
    ) -> tuple[onnx.ModelProto, onnx.ModelProto | None] | str:
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>' + text)
        random = np.random.default_rng(5)
        for name, shape in (weights or {}).items():
            values = random.standard_normal(shape).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(values, name))
        if kept:
            model.metadata_props.add(key=KEPT, value=json.dumps([kept]))
        path = tmp_path_factory.mktemp("given") / "model.onnx"
        onnx.save(model, path)
        result = serve(str(path), {"x": tensor(X)}, make=precision)
        assert result["status"] == "ok", result
        if "declined" in result:
            return str(result["declined"])
        return read(result["made"]), read(result["rounded"]) if "rounded" in result else None

    return of


def read(wire: object) -> onnx.ModelProto:
    value = from_wire(wire)
    assert isinstance(value, Tensor)
    return onnx.load_from_string(value.array.tobytes())


def made(found: tuple[onnx.ModelProto, onnx.ModelProto | None] | str) -> onnx.ModelProto:
    assert not isinstance(found, str), found
    return found[0]


def ops(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def io_types(model: onnx.ModelProto) -> list[int]:
    return [port.type.tensor_type.elem_type for port in (*model.graph.input, *model.graph.output)]


def test_every_precision_has_its_module() -> None:
    assert MODULES.keys() == CONVERSIONS.keys()


@pytest.mark.parametrize(("precision", "number"), [("fp16", 10), ("bf16", 16)])
def test_narrow_floats(make: Make, precision: str, number: int) -> None:
    found = make(MLP, precision, {"w": (32, 8), "v": (8, 4)})
    assert not isinstance(found, str)
    narrow, rounded = found
    assert io_types(narrow) == [1, 1]
    assert {weight.data_type for weight in narrow.graph.initializer} == {number}
    assert ops(narrow) == {"Cast": 2, "MatMul": 2, "Relu": 1}
    # For the CPU EP each operator computes in float32, between Casts that it keeps.
    assert rounded is not None
    assert ops(rounded) == {"Cast": 2 + 2 + 1 + 2 + 3, "MatMul": 2, "Relu": 1}


def test_the_cpu_ep_makes_the_roundings_that_are_spelled_out(
    make: Make, outputs_of: Callable[..., dict[str, Any]]
) -> None:
    kinds = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}
    for precision, kind in kinds.items():
        found = make(RELU, precision)
        assert not isinstance(found, str)
        assert found[1] is not None
        answer = outputs_of(found[1].SerializeToString(), {"x": tensor(X)})["y"].array
        assert np.array_equal(answer, np.maximum(X.astype(kind).astype(np.float32), 0))


@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8-static"])
def test_a_node_that_the_model_lists_stays_in_float32(make: Make, precision: str) -> None:
    text = MLP.replace("h = MatMul(x, w)", "[first] h = MatMul(x, w)").replace(
        "y = MatMul", "[last] y = MatMul"
    )
    weights = {"w": (32, 32), "v": (32, 4)}
    whole, partly = (made(make(text, precision, weights, kept=kept)) for kept in ("", "last"))

    def wide(model: onnx.ModelProto) -> list[str]:
        """Return the products whose weight is float32."""
        types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
        return [
            node.name
            for node in model.graph.node
            if node.op_type == "MatMul" and types.get(node.input[1]) == onnx.TensorProto.FLOAT
        ]

    assert wide(whole) == []
    assert wide(partly) == ["last"]


def test_bfloat16_weights_are_rounded_to_nearest(make: Make) -> None:
    weights = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -3.3e38, 1e-40, np.inf, np.nan, -0.0], np.float32)
    text = "agraph (float[2, 32] x) => (float[2, 32, 8] y) { a = Unsqueeze(x, axis) y = Mul(a, w) }"
    text = text.replace("{ ", "{ axis = Constant<value_ints = [2]>() ")
    given = make(text, "bf16", {"w": (8,)})
    (weight,) = made(given).graph.initializer
    wide = np.random.default_rng(5).standard_normal((8,)).astype(np.float32)
    narrow = numpy_helper.to_array(weight).astype(np.float32)
    assert np.array_equal(narrow, wide.astype(ml_dtypes.bfloat16).astype(np.float32))
    from harness.agent.precision.bfloat16 import in_bfloat16

    special = numpy_helper.to_array(in_bfloat16(numpy_helper.from_array(weights, "w"), "w"))
    assert np.array_equal(
        special.astype(np.float32), weights.astype(ml_dtypes.bfloat16).astype(np.float32), equal_nan=True
    )


def test_bfloat16_stays_out_of_what_has_no_bfloat16(make: Make) -> None:
    body = """agraph (float[2, 32] x) => (float[2, 32] y, int64[2] k, float[2, 32] z) {
        a = Relu(x)
        c = Constant<value = bool {1}>()
        y = If(c) <then_branch = yes () => (float[2, 32] t) { t = Neg(a) },
                   else_branch = no () => (float[2, 32] t) { t = Abs(a) }>
        k = ArgMax<axis = 1, keepdims = 0>(a)
        z = Elu(a)
    }"""
    model = made(make(body, "bf16"))
    onnx.checker.check_model(model, full_check=True)
    narrow = {node.op_type for node in model.graph.node if any("/bfloat16" in name for name in node.input)}
    assert narrow == {"Relu", "ArgMax", "Cast"}  # Elu has it from opset 22 on
    outputs: Any = ReferenceEvaluator(onnx.load_from_string(model.SerializeToString())).run(None, {"x": X})
    assert np.allclose(outputs[0], -np.maximum(X, 0), rtol=2**-8)


def test_static_quantization_keeps_activation_functions(make: Make) -> None:
    text = "agraph (float[2, 32] x) => (float[2, 32] y) { a = Mul(x, x) y = Relu(a) }"
    model = made(make(text, "int8-static"))
    assert ops(model) == {"QuantizeLinear": 3, "DequantizeLinear": 3, "Mul": 1, "Relu": 1}
    assert io_types(model) == [1, 1]
    levels = {weight.data_type for weight in model.graph.initializer if not weight.name.endswith("scale")}
    assert levels == {onnx.TensorProto.UINT8}


def test_static_quantization_goes_by_channel_where_there_are_convolutions(make: Make) -> None:
    text = """agraph (float[2, 32] x) => (float[2, 3, 6] y) {
        shape = Constant<value_ints = [2, 4, 8]>() i = Reshape(x, shape) y = Conv(i, w) }"""
    model = made(make(text, "int8-static", {"w": (3, 4, 3)}, opset=12))
    scales = {weight.name: weight.dims for weight in model.graph.initializer if "scale" in weight.name}
    assert list(scales["w_scale"]) == [3]
    assert next(entry.version for entry in model.opset_import if not entry.domain) >= 13
    per_tensor = made(make(MLP, "int8-static", {"w": (32, 8), "v": (8, 4)}))
    assert all(not weight.dims for weight in per_tensor.graph.initializer if "scale" in weight.name)


def test_small_probabilities_are_not_quantized_to_zero(
    make: Make, outputs_of: Callable[..., dict[str, Any]]
) -> None:
    """The quantizer's own range of Softmax is 0 to 1, of which 1/1000 is less than half a step."""
    text = """agraph (float[2, 32] x) => (float[2, 1000] y)
        <float zero = {0}, int64[1] axes = {1}, int64[2] shape = {2, 1000}> {
        z = Mul(x, zero) s = ReduceSum<keepdims = 1>(z, axes) l = Expand(s, shape) y = Softmax(l) }"""
    answer = outputs_of(made(make(text, "int8-static")).SerializeToString(), {"x": tensor(X)})["y"].array
    assert np.allclose(answer, 1e-3, rtol=1e-2, atol=0)


@pytest.mark.parametrize("least", ["-3.4028235e38", "-10000", "-inf"])
@pytest.mark.parametrize("form", ["chosen", "added", "twice"])
def test_masked_scores_leave_a_range_to_the_others(
    make: Make, outputs_of: Callable[..., dict[str, Any]], least: str, form: str
) -> None:
    """In the range of a masked score all others are the same: attention would see each position alike."""
    added = "m = Cast <to = 1> (hidden) f = Sub(one, m) b = Where(hidden, low, zero)"
    body = {
        "chosen": "s = Where(hidden, low, x)",
        "added": f"{added} s = Add(x, b)",
        "twice": f"{added} t = Add(x, b) s = Where(hidden, low, t)",
    }[form]
    text = f"""agraph (float[2, 32] x) => (float[2, 32] y)
        <float low = {{{least}}}, float zero = {{0}}, float one = {{1}}> {{
        first = Constant<value_ints = [3]>() at = Constant<value_ints = [{", ".join(map(str, range(32)))}]>()
        hidden = Less(at, first) {body} y = Softmax(s) }}"""
    answer = outputs_of(made(make(text, "int8-static")).SerializeToString(), {"x": tensor(X)})["y"].array
    visible = np.exp(X[:, 3:].astype(np.float64))
    right = visible / visible.sum(axis=-1, keepdims=True)
    assert np.allclose(answer[:, 3:], right, rtol=0.1, atol=2e-3)
    assert (answer[:, :3] < 2e-3).all()


def test_weights_that_a_model_generates_are_weights(
    make: Make, outputs_of: Callable[..., dict[str, Any]]
) -> None:
    text = """agraph (float[2, 32] x) => (float[2, 8] y) <int64[2] shape = {8, 32}, int64[1] bias = {8}> {
        w = ConstantOfShape<value = float[1] {0.5}>(shape) b = ConstantOfShape(bias)
        y = Gemm<transB = 1>(x, w, b) }"""
    given = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 9]>' + text)
    assert generated_bytes(given) == 4 * (8 * 32 + 8)
    model = made(make(text, "int8-dynamic", opset=9))
    assert ops(model)["MatMulInteger"] == 1
    assert not ops(model)["ConstantOfShape"]
    answer = outputs_of(model.SerializeToString(), {"x": tensor(X)})["y"].array
    assert np.allclose(answer, np.repeat(X.sum(1, keepdims=True) / 2, 8, axis=1), atol=0.1)


def test_dynamic_quantization_computes_in_integers(make: Make) -> None:
    model = made(make(MLP, "int8-dynamic", {"w": (32, 8), "v": (8, 4)}))
    assert ops(model)["MatMulInteger"] == 2
    assert {weight.data_type for weight in model.graph.initializer if weight.name.endswith("quantized")} == {
        onnx.TensorProto.UINT8
    }


def test_weights_of_four_bits_in_blocks(make: Make) -> None:
    model = made(make(MLP, "int4-weights", {"w": (32, 8), "v": (8, 4)}))
    assert ops(model) == {"DequantizeLinear": 2, "MatMul": 2, "Relu": 1}
    blocks = [
        next(attribute.i for attribute in node.attribute if attribute.name == "block_size")
        for node in model.graph.node
        if node.op_type == "DequantizeLinear"
    ]
    assert blocks == [32, 32]


@pytest.mark.parametrize(
    ("precision", "reason"),
    [
        ("fp16", "no operator of it would compute in float16"),
        ("bf16", "no operator of it would compute in bfloat16"),
        ("int8-static", "no operator of it would be quantized"),
        ("int8-dynamic", "it has no operator with constant weights"),
        ("int4-weights", "it has no MatMul with a constant weight"),
    ],
)
def test_what_a_precision_has_nothing_to_do_with(make: Make, precision: str, reason: str) -> None:
    text = "agraph (float[2, 32] x) => (int64[2] y) { y = Shape(x) }"
    found = make(text, precision)
    assert isinstance(found, str)
    assert found.startswith(reason)


def test_a_quantized_model_is_not_quantized_again(make: Make) -> None:
    text = """agraph (float[2, 32] x) => (float[2, 32] y) {
        s = Constant<value_float = 0.1>() q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }"""
    assert make(text, "int8-static") == "it is quantized already"


def test_a_failing_converter_gives_a_one_line_reason(make: Make) -> None:
    found = make("agraph (float[2, 32] x) => (float[2, 32] y) { y = Nonsense(x) }", "int8-static")
    assert isinstance(found, str)
    assert "the converter fails: " in found
    assert "\n" not in found


def test_a_converted_model_is_loaded_before_anybody_runs_it(make: Make) -> None:
    found = make("agraph (float[2, 32] x) => (float[2, 32] y) { a = Relu(x) y = Nonsense(a) }", "fp16")
    assert isinstance(found, str)
    assert found.startswith("onnxruntime does not load what the converter makes: ")


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), MemoryError(), RuntimeError("std::bad_alloc")]
)
def test_what_the_machine_is_short_of_is_no_answer(error: Exception) -> None:
    def work() -> None:
        raise error

    with pytest.raises(type(error)):
        attempted(work, "the converter fails")


def test_weights_to_generate_are_too_large_as_others_are(make: Make) -> None:
    text = """agraph (float[2, 32] x) => (float[2, 4194304] y) <int64[2] shape = {128, 4194304}> {
        w = ConstantOfShape(shape) a = Concat<axis = 1>(x, x, x, x) y = MatMul(a, w) }"""
    assert make(text, "int8-dynamic") == "it takes more than the 1024 MiB that are converted"


def test_a_model_that_is_too_large_is_left_alone(
    tmp_path: Path, serve: Callable[..., dict[str, Any]]
) -> None:
    path = tmp_path / "model.onnx"
    write_model(path, f'<ir_version: 8, opset_import: ["" : 17]> {RELU}')
    with path.open("ab") as file:
        file.truncate((1 << 30) + 1)  # sparse
    result = serve(str(path), {"x": tensor(X)}, make="fp16")
    assert result["status"] == "ok"
    assert result["declined"] == "it takes more than the 1024 MiB that are converted"
