"""What the profiles are for; their cases are in ``selection.json``."""

import msgspec

from harness.core.noise import DEFAULT_LIMITS
from harness.core.policy import DEFAULT_STEPS
from harness.core.tolerance import DEFAULTS
from harness.profiles.profile import Feature, Rules

RULES = Rules(
    tolerances={name: (one.rtol, one.atol) for name, one in DEFAULTS.items() if name != "float64"},
    noise_rms=DEFAULT_LIMITS.rms,
    noise_max=DEFAULT_LIMITS.max,
    steps=DEFAULT_STEPS,
)
"""The harness's own limits, of the day on which a profile is frozen."""

FEATURES = (
    Feature(name="float16", meaning="models whose tensors are float16"),
    Feature(name="bfloat16", meaning="models whose tensors are bfloat16"),
    Feature(name="float64", meaning="models whose tensors are float64"),
    Feature(name="int8", meaning="quantized models of 8 bits"),
    Feature(name="int16", meaning="quantized models of 16 bits"),
    Feature(name="int4", meaning="weights of 4 bits"),
    Feature(name="float8", meaning="tensors of 8-bit floats"),
    Feature(name="integers", meaning="arithmetic of integers"),
    Feature(name="strings", meaning="tensors of strings"),
    Feature(name="sequences", meaning="sequences, optionals and maps"),
    Feature(name="control_flow", meaning="If, Loop and Scan"),
    Feature(name="special_values", meaning="NaN, infinity and the largest numbers"),
    Feature(name="contrib_ops", meaning="operators of onnxruntime's own domain"),
    Feature(name="dynamic_shapes", meaning="one session runs several shapes"),
    Feature(name="zero_size", meaning="a batch of no elements"),
    Feature(name="io_binding", meaning="inputs and outputs are bound"),
    Feature(name="concurrent", meaning="several threads run one session"),
    Feature(name="ep_context", meaning="a compiled model is written and loaded again"),
)


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile is for; fields as in ``Profile``."""

    title: str
    about: str


DEFINITIONS = {
    "core-opset21@1": Definition(
        title="Core operators, up to opset 21",
        about="Operators of ONNX and small graphs of them, in float32 and the integer types they need.",
    ),
    "cnn@1": Definition(
        title="Convolutional networks",
        about="Convolutions, pooling, normalization and resizing, as image models use them.",
    ),
    "transformer@1": Definition(
        title="Transformers",
        about="Matrix products, attention, normalization and activations, as encoders use them.",
    ),
    "qdq@1": Definition(
        title="Quantized models",
        about="Models with QuantizeLinear and DequantizeLinear, and the quantized operators.",
    ),
    "llm-ops@1": Definition(
        title="Operators of language models",
        about="Attention with a cache, rotary embeddings, normalization and gathering, as decoders use them.",
    ),
    "web@1": Definition(
        title="Models in browsers",
        about="Small models and operators that run in onnxruntime-web, without files beside them.",
    ),
}
"""Label -> definition."""
