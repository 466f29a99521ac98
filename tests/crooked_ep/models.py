"""The smallest models that show the faults of the crooked EP, with the values that each needs."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.parser
from numpy.typing import NDArray
from onnx import numpy_helper

Array = NDArray[Any]


class Small(NamedTuple):
    """One model in ONNX's text form: its inputs, result and nodes; and the values of its inputs."""

    inputs: str
    result: str
    nodes: str
    values: tuple[Array, ...]
    constants: str = ""
    opset: int = 17


def small_models() -> dict[str, Small]:
    """Return the models by name. Values are drawn with fixed seeds."""
    generator = np.random.default_rng(4)

    def draw(*shape: int) -> Array:
        return generator.normal(size=shape).astype(np.float32)

    pair = draw(4, 4), draw(4, 4)
    two = "float[4,4] a, float[4,4] b", "float[4,4] y"
    one = "float[4,6] a", "float[4,6] y"
    row = "float[4] a", "float[4] y", "y = Add(a, b)"
    nan, steps = draw(4, 6), draw(4, 6)
    nan[0, 1] = np.nan
    halves = (np.arange(24, dtype=np.float32).reshape(4, 6) - 11.5) / 2 + np.float32(0.1)
    return {
        "add": Small(*two, "y = Add(a, b)", pair),
        "add_odd": Small(
            "float[3,5] a, float[3,5] b", "float[3,5] y", "y = Add(a, b)", (draw(3, 5), draw(3, 5))
        ),
        "add_broadcast": Small(
            "float[4,4] a, float[4] b", "float[4,4] y", "y = Add(a, b)", (draw(4, 4), draw(4))
        ),
        "add_constant": Small(*row, (draw(4),), constants="float[4] b = {1.5, -2.25, 3.125, 0.5}"),
        "add_constant_again": Small(*row, (draw(4),), constants="float[4] b = {-4.5, 7.25, 0.125, 2.5}"),
        "add_denormal": Small(
            *two, "y = Add(a, b)", (pair[0] * np.float32(1e-39), pair[1] * np.float32(1e-39))
        ),
        "add_integers": Small(
            "int64[4] a, int64[4] b",
            "int64[4] y",
            "y = Add(a, b)",
            (np.array([2**40 + 1, -(2**30) - 1, 3, 2**25 + 1]), np.array([2, 4, 6, 8])),
        ),
        "chain": Small(*two, "c = Add(a, b)\nd = Mul(c, b)\ny = Relu(d)", pair),
        "sub": Small(*two, "y = Sub(a, b)", pair),
        "div": Small(*two, "y = Div(a, b)", pair),
        "mul_odd": Small(
            "float[3,5] a, float[3,5] b", "float[3,5] y", "y = Mul(a, b)", (draw(3, 5), draw(3, 5))
        ),
        "matmul": Small(
            "float[4,7] a, float[7,5] b", "float[4,5] y", "y = MatMul(a, b)", (draw(4, 7), draw(7, 5))
        ),
        "matmul_batch": Small(
            "float[3,2,4] a, float[3,4,2] b",
            "float[3,2,2] y",
            "y = MatMul(a, b)",
            (draw(3, 2, 4), draw(3, 4, 2)),
        ),
        "gemm": Small(
            "float[4,4] a, float[4,4] b, float[4] c",
            "float[4,4] y",
            "y = Gemm<transB=1, beta=0.5>(a, b, c)",
            (*pair, draw(4)),
        ),
        "matmul_constant": Small(
            "float[4,4] a", "float[4,4] y", "y = MatMul(a, w)", pair[:1], constants=_weights("w", draw(4, 4))
        ),
        "matmul_weights": Small(  # enough bytes to lie in a file beside the model
            "float[4,16] a", "float[4,16] y", "y = MatMul(a, w)", (draw(4, 16),), _weights("w", draw(16, 16))
        ),
        "lora": Small(
            "float[4,4] a",
            "float[4,4] y",
            "b = MatMul(a, v)\ny = MatMul(b, w)",
            pair[1:],
            constants=f"{_weights('v', draw(4, 4))}, {_weights('w', draw(4, 4))}",
        ),
        "batch": Small("float[N,6] a", "float[N,6] y", "y = Add(a, a)", (draw(1, 6),)),
        "relu": Small(*one, "y = Relu(a)", (steps,)),
        "relu_nan": Small(*one, "y = Relu(a)", (nan,)),
        "softmax_axis": Small(*one, "y = Softmax<axis=0>(a)", (steps,)),
        "softmax_old": Small(
            "float[2,3,4] a", "float[2,3,4] y", "y = Softmax<axis=1>(a)", (draw(2, 3, 4),), opset=11
        ),
        "softmax_large": Small(*one, "y = Softmax(a)", (steps * np.float32(400),)),
        "conv_pads": Small(
            "float[1,2,5,5] a, float[3,2,3,3] b",
            "float[1,3,5,5] y",
            "y = Conv<pads=[2,2,0,0]>(a, b)",
            (draw(1, 2, 5, 5), draw(3, 2, 3, 3)),
        ),
        "conv_group": Small(
            "float[1,4,5] a, float[4,2,3] b",
            "float[1,4,3] y",
            "y = Conv<group=2>(a, b)",
            (draw(1, 4, 5), draw(4, 2, 3)),
        ),
        "conv_dilation": Small(
            "float[1,2,7] a, float[3,2,3] b",
            "float[1,3,3] y",
            "y = Conv<dilations=[2]>(a, b)",
            (draw(1, 2, 7), draw(3, 2, 3)),
        ),
        "maxpool": Small(
            "float[1,2,4,4] a",
            "float[1,2,4,4] y",
            "y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(a)",
            (-np.abs(draw(1, 2, 4, 4)),),
        ),
        "cast_half": Small("float[4,6] a", "float16[4,6] y", "y = Cast<to=10>(a)", (draw(4, 6),)),
        "cast_integer": Small("float[4,6] a", "int32[4,6] y", "y = Cast<to=6>(a)", (halves,)),
        "cast_bool": Small("float[4,6] a", "bool[4,6] y", "y = Cast<to=9>(a)", (np.trunc(steps * 3) / 4,)),
        "gather": Small(
            "float[5,3] a, int64[4] b",
            "float[4,3] y",
            "y = Gather(a, b)",
            (draw(5, 3), np.array([-1, 2, -3, 1])),
        ),
        "concat": Small(
            "float[2,3] a, float[2,3] b",
            "float[2,6] y",
            "y = Concat<axis=1>(a, b)",
            (draw(2, 3), draw(2, 3)),
        ),
        "reduce": Small(
            "float[4,9] a, int64[1] b", "float[4,1] y", "y = ReduceSum(a, b)", (draw(4, 9), np.array([1]))
        ),
        "reduce_integers": Small(
            "int32[2,3] a, int64[1] b",
            "int32[2,1] y",
            "y = ReduceSum(a, b)",
            (np.array([[2**24 + 1, 2, 4], [2**24, 1, 1]], np.int32), np.array([1])),
        ),
        "transpose": Small("float[4,6] a", "float[6,4] y", "y = Transpose<perm=[1,0]>(a)", (steps,)),
        "reshape": Small(
            "float[4,6] a, int64[2] b", "float[M,N] y", "y = Reshape(a, b)", (steps, np.array([3, 8]))
        ),
        "sigmoid": Small(*one, "y = Sigmoid(a)", (steps,)),
        "tanh": Small(*one, "y = Tanh(a)", (steps * 2,)),
        "exp": Small(*one, "y = Exp(a)", (steps * 60,)),
    }


def _weights(name: str, values: Array) -> str:
    """Return the declaration of weights in ONNX's text form."""
    shape = ",".join(map(str, values.shape))
    return f"float[{shape}] {name} = {{{', '.join(map(str, values.ravel().tolist()))}}}"


def write_model(folder: Path, small: Small, graph: str) -> None:
    """Write a model into a folder of its own, with a data set of inputs and a name of its graph."""
    head = f'<ir_version: 8, opset_import: ["" : {small.opset}]>'
    constants = f"<{small.constants}>" if small.constants else ""
    text = f"{head} {graph} ({small.inputs}) => ({small.result}) {constants} {{ {small.nodes} }}"
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")
    for number, array in enumerate(small.values):
        (data / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
