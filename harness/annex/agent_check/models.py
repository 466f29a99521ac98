"""Small models whose answers are known without a runtime."""

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto

PACKED = ("int4", "uint4", "int2", "uint2")

# Opset and IR version in which ONNX introduced an element type; others are older than 13 and 7.
_SINCE = {
    **dict.fromkeys(("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"), (19, 9)),
    **dict.fromkeys(("int4", "uint4"), (21, 10)),
    "float4e2m1": (23, 11),
    "float8e8m0": (24, 12),
    **dict.fromkeys(("int2", "uint2"), (25, 13)),
}
_SPELLED = {"float32": "float", "float64": "double"}
"""Element type -> its name in ONNX's text format, if that differs."""

_WITH_MAPS = '<ir_version: 7, opset_import: ["" : 13, "ai.onnx.ml" : 3]> g'

MODELS = {
    # Three nodes, none of which can be left out.
    "negated": "(float[] x) => (float[] y) { t = Neg(x)  a = Abs(t)  y = Sqrt(a) }",
    # The order of the outputs is not that of the nodes.
    "two": "(float[N] x) => (float[N] b, float[N] a) { a = Abs(x)  b = Neg(x) }",
    # Inputs that must not be confused.
    "subtracted": "(float[N] p, float[N] q) => (float[N] y) { y = Sub(p, q) }",
    "looped": """(float[] x, int64 ep_harness_iterations) => (float[] y) {
        none = Constant<value = float[0] {}>()
        y = Loop<body = body (int64 n, bool on, float[] before) => (bool go_on, float[] after) {
            go_on = Identity(on)  t = Neg(x)  a = Abs(t)  after = Sqrt(a)
        }>(ep_harness_iterations, , none)
    }""",
    "weighted": "(float[N] x) => (float[N] y) <float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }",
    "constant": "() => (float[N] y) { y = Constant <value = float[2] {1, 2}> () }",
    "unknown": "(float[N] x) => (float[N] y) { y = NoSuchOperatorAnywhere(x) }",
    # It counts to 2^40, for hours.
    "endless": """(float[N] x) => (float[N] y) <int64 count = {1099511627776}, bool true = {1}> {
        y = Loop <body = body (int64 i, bool go, float[N] v) => (bool on, float[N] next) {
            on = Identity(go)  s = Mul(v, v)  next = Sqrt(s)
        }> (count, true, x)
    }""",
    # It takes about a second, or some of them in a browser.
    "slow": """(float[N] x) => (float[N] y) <int64 count = {300000}, bool true = {1}> {
        y = Loop <body = body (int64 i, bool go, float[N] v) => (bool on, float[N] next) {
            on = Identity(go)  s = Mul(v, v)  next = Sqrt(s)
        }> (count, true, x)
    }""",
    "sequence": "(seq(float[]) x) => (int64 y) { y = SequenceLength(x) }",
    "to sequence": "(float[N] x) => (seq(float[]) y) { n = Neg(x)  y = SequenceConstruct(x, n) }",
    "map": _WITH_MAPS
    + """(map(string, float) x) => (float[1, 3] y) {
        y = ai.onnx.ml.DictVectorizer <string_vocabulary = ["a", "b", "c"]> (x)
    }""",
    "to map": _WITH_MAPS
    + """(float[N, 2] x) => (seq(map(int64, float)) y) {
        y = ai.onnx.ml.ZipMap <classlabels_int64s = [10, 20]> (x)
    }""",
    "optional": """<ir_version: 8, opset_import: ["" : 15]> g (optional(float[]) x) => (bool y) {
        y = OptionalHasElement(x)
    }""",
}
"""Name -> model in ONNX's text format; without its versions, it is of opset 13 and IR version 7."""


def model(text: str, version: tuple[int, int] = (13, 7)) -> onnx.ModelProto:
    """Return a model from ONNX's text format; ``version``: opset and IR version if the text has none."""
    opset, ir_version = version
    head = "" if text.startswith("<") else f'<ir_version: {ir_version}, opset_import: ["" : {opset}]> g '
    return onnx.parser.parse_model(head + text)


def identity(dtype: str) -> onnx.ModelProto:
    """Return y = x, for any shape; runtimes have packed integers in quantization only."""
    kind = _SPELLED.get(dtype, dtype)
    computed = "y = Identity(x)"
    weights = ""
    if dtype in PACKED:
        computed = "t = DequantizeLinear(x, one)  y = QuantizeLinear(t, one, zero)"
        weights = f"<float one = {{1}}, {kind} zero = {{0}}>"
    return model(f"({kind}[] x) => ({kind}[] y) {weights} {{ {computed} }}", _SINCE.get(dtype, (13, 7)))


def odd_names(name: str) -> onnx.ModelProto:
    """Return a model whose input and output have an odd name."""
    made = model("(float[N] x) => (float[N] y) { y = Neg(x) }")
    made.graph.input[0].name = made.graph.node[0].input[0] = f"{name}in"
    made.graph.output[0].name = made.graph.node[0].output[0] = f"{name}out"
    return made


def with_external_weights(content: onnx.ModelProto, location: str) -> bytes:
    """Move the weights of a model to a file beside it; return that file's bytes."""
    data = b""
    for weight in content.graph.initializer:
        raw = np.ascontiguousarray(onnx.numpy_helper.to_array(weight)).tobytes()
        weight.ClearField("float_data")
        weight.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", len(data)), ("length", len(raw))):
            weight.external_data.add(key=key, value=str(value))
        data += raw
    return data
