"""What the book may say about an operator: one field for each fact, with its meaning and its source."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec

from harness.operators.value_domains import ValueRule

ONNX_DOMAIN = ""
"""ONNX's own domain, as models spell it for short."""

ML = "ai.onnx.ml"
MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own operators, *contrib*."""

KNOWN_DOMAINS = frozenset({ONNX_DOMAIN, ML, MICROSOFT})
"""Domains of which a rule is found by the name of an operator alone."""

NCHWC = "com.microsoft.nchwc"
"""The domain of onnxruntime's operators on blocked channels, which its optimizer inserts."""

TRAINING = "ai.onnx.preview.training"
PREVIEW = "ai.onnx.preview"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """What a field of a row means, and where its values come from."""

    meaning: str
    source: str


def _fact(meaning: str, source: str) -> Fact:
    return Fact(meaning=meaning, source=source)


_TEXT = "the operator's text in onnx.defs"
_SHAPES = "shape inference in the operator's text; tests/corpus"
_OPENCL = (
    "OpenCL C specification, relative error of single-precision built-in functions, full profile. "
    "Functions get half of the units in the last place that it allows: 3 for exp and log, 4 to 5 for "
    "circular and hyperbolic functions, 2.5 for a quotient; erf and pow, which are allowed 16, a quarter. "
    "One unit in the last place is up to two unit roundoffs. Softmax is an exponential and a quotient. "
    "Resize, GridSample and RoiAlign also round coordinates; recurrent operators use several functions in "
    "each step; transforms multiply by sines of angles of several turns, of which float32 rounds each"
)

Even = Literal["", "all", "rows", "normalized", "channels", "planes"]
Steps = Literal["", "composed", "stepwise"]
ExactWhere = Literal["", "binary", "sum"]
Terms = Literal[
    "", "attended", "positions", "last_axis", "window", "transposed_window", "longest_axis",
    "transformed_axis", "second_input", "third_input", "equation", "gemm", "matmul", "recurrence",
    "block_product", "operands", "kernel", "plane", "channel", "group", "neighbours",
    "axis", "axes",
]  # fmt: skip
Undefined = Literal[
    "", "shift", "cast", "cast_like", "integer_division", "nan", "power", "scatter", "scatter_tuples"
]
TieKind = Literal["", "first_index", "any"]
Layer = Literal["", "weights", "attributes", "classifier"]
Head = Literal["", "softmax", "log_softmax", "sigmoid", "linear", "image"]
PassesScores = Literal["", "moves", "pools"]
Shape = Literal[
    "", "like_first", "broadcast", "arg", "depth_to_space", "expand", "gemm", "matmul",
    "quantized_broadcast", "reshape", "scalar", "slice", "space_to_depth", "recurrence", "split",
    "top_k",
]  # fmt: skip
SizeEstimate = Literal[
    "", "convolution", "quantized_convolution", "transposed_convolution", "pool", "global_pool",
    "matmul", "quantized_matmul", "gemm", "block_product", "transpose", "reshape", "flatten",
    "reduction", "arg", "squeeze", "unsqueeze", "concatenation", "gather", "like_first", "like_second",
    "expand", "filled", "tile", "resize", "pad", "split", "recurrence", "shape",
]  # fmt: skip
FitDemand = Literal[
    "", "convolution", "quantized_convolution", "transposed_convolution", "pool", "stft", "matmul",
    "gemm", "recurrence", "channels", "layer", "concatenation", "reshape", "expand",
    "squeeze", "slice", "gather", "pad", "top_k", "split", "space_to_depth", "trees",
]  # fmt: skip
ColumnsRule = Literal[
    "", "affine", "categories", "imputes", "joins", "keeps", "keys", "reshapes", "rows", "scaler",
    "selects", "support_vectors", "tokens", "trees", "words",
]  # fmt: skip
Products = Literal[
    "", "window", "quantized_window", "transposed_window", "matmul", "quantized_matmul", "gemm",
    "block_product", "recurrence", "attention", "equation", "transform", "kernel",
]  # fmt: skip


class _Named(msgspec.Struct, frozen=True):
    name: str


class BookRow(_Named, frozen=True, kw_only=True):
    """An operator. A field at its default says that there is nothing special.

    Where a fact depends on attributes or shapes, the field names the rule, which is a function of the module
    that uses it.
    """

    domains: tuple[str, ...] = (ONNX_DOMAIN,)
    note: str = ""

    # How it rounds.
    exact: Annotated[
        bool,
        _fact("It copies, chooses or counts: its result is right to the last bit, or wrong.", _TEXT),
    ] = False
    units: Annotated[
        float,
        _fact("Half-width of its own error, in unit roundoffs of the precision that computes.", _OPENCL),
    ] = 1.0
    rounds_inside: Annotated[
        bool,
        _fact(
            "It rounds inside, in ways that depend on the values of its operand. The circular functions "
            "do not: processors reduce an argument of any size to the last bit.",
            "measured with numbers up to 100,000: Sin and Cos of onnxruntime are 1.5 unit roundoffs off at "
            "most, those of OpenVINO 0.5",
        ),
    ] = False
    even: Annotated[
        Even,
        _fact(
            "Its results are differences of larger numbers, or come from a polynomial, so a small element "
            "is about as uncertain as a large one: of all elements, or of a row, of the axes it "
            "normalizes, of a channel, of a plane behind batch and channel.",
            "the formula in its text. BatchNormalization is usually computed as a product and an offset, "
            "both of which may be larger than their sum",
        ),
    ] = ""
    from_one: Annotated[
        bool,
        _fact(
            "Its result comes from a number near 1, and so has its error, however small all results are.",
            "implementations. The CPU EP's sigmoid is 0.5 and a quotient of polynomials; shaders and "
            "vector libraries compute erf(x) as 1 less a polynomial times exp(-x^2), tanh(x) as 1 less 2 "
            "/ (exp(2x) + 1), elu(x) as exp(x) less 1. A logarithm of a number near 1 has the relative "
            "error of that number: inverse hyperbolic functions, Softplus and logarithms of sums end with "
            "one",
        ),
    ] = False
    through_zero: Annotated[
        bool,
        _fact(
            "It is as small as its operand near 0. In float16 and bfloat16 it comes from a number near 1 in "
            "few providers, so its elements are about as uncertain as their mean.",
            "measured for operands of 1e-4 to 1e-3 in float16: the CPU EP is off by one unit roundoff of the "
            "result at most. In onnxruntime's sources CUDA's tanh computes in float32 and rounds once; "
            "WebGPU's is (1 - e) / (1 + e) in float16, too, which shows where all results are far below 0.1",
        ),
    ] = False
    steps: Annotated[
        Steps,
        _fact(
            "Composed: of several products and functions, each of which an implementation may round by "
            "itself. Stepwise: a normalization or activation of several steps, each of which a coarse "
            "implementation may round: what is normalized is rounded before an offset is added, which may "
            "cancel it; HardSwish multiplies by a rounded factor.",
            "the operator's function in onnx.defs, and implementations at float16 and bfloat16",
        ),
    ] = ""
    circular: Annotated[
        bool, _fact("The last bit of a large angle counts more than that of a small one.", "its formula")
    ] = False
    passes_angles: Annotated[bool, _fact("It passes angles on as they are, or negated.", _TEXT)] = False
    transform: Annotated[
        bool,
        _fact(
            "It multiplies sines and cosines by its input: an error of these is in proportion to it.", _TEXT
        ),
    ] = False
    sums_operands: Annotated[
        bool,
        _fact("Each operand is a term: noise on one would not show how large the others are.", _TEXT),
    ] = False
    copied_outputs: Annotated[tuple[int, ...], _fact("Results that are copies of its inputs.", _TEXT)] = ()
    offset: Annotated[
        int | None,
        _fact("The input that is added to its products, with which partial sums may begin.", "its formula"),
    ] = None
    by_blocks: Annotated[
        bool,
        _fact(
            "onnxruntime may make a MatMulNBits of it and a DequantizeLinear before it.",
            "optimizer of onnxruntime: QDQ to MatMulNBits",
        ),
    ] = False
    keeps_whole: Annotated[
        bool,
        _fact("It makes whole numbers of whole numbers, exactly if these are small.", "arithmetic"),
    ] = False
    exact_where: Annotated[
        ExactWhere,
        _fact(
            "Where it rounds nothing can be found while the model runs: from its two operands, or because "
            "all operands of a sum are coarse.",
            "IEEE 754: such a result has a representation, so it is the result",
        ),
    ] = ""
    jumps: Annotated[
        bool,
        _fact("Its result jumps: the least noise in its float inputs may change it altogether.", _TEXT),
    ] = False
    divides_by_scale: Annotated[bool, _fact("It divides by a scale before it rounds to integers.", _TEXT)] = (
        False
    )
    control_inputs: Annotated[
        tuple[int, ...],
        _fact(
            "Inputs that say how large a result is, or where to cut: they and their sources stay exact.",
            _TEXT,
        ),
    ] = ()

    # How many terms it adds up.
    terms: Annotated[
        Terms, _fact("The rule that counts the terms of each element of its result.", "its formula")
    ] = ""
    multiplies: Annotated[bool, _fact("It multiplies, and adds up the products.", "its formula")] = False
    byte_products: Annotated[
        bool,
        _fact(
            "It adds products of 8-bit integers, for which the CPU EP has integer kernels.",
            "kernels of onnxruntime 1.32.0",
        ),
    ] = False
    axes_input: Annotated[int | None, _fact("The input with the axes along which it adds up.", _TEXT)] = None
    flattens_before: Annotated[
        int | None,
        _fact("The opset before which it flattens all axes from the given one on.", _TEXT),
    ] = None

    # Which values it takes, and what it does with them.
    values: Annotated[
        Mapping[int, ValueRule],
        _fact("Input -> the values that it is defined for, or a rule that gives them.", _TEXT),
    ] = {}
    columns: Annotated[
        ColumnsRule,
        _fact(
            "The rule of what it does with the columns of a table, or compares them with.",
            "its text, and what converters of scikit-learn, XGBoost, LightGBM and CatBoost write",
        ),
    ] = ""
    undefined: Annotated[Undefined, _fact("The rule that tells where its result is undefined.", _TEXT)] = ""
    defined_from: Annotated[
        int | None, _fact("The opset from which on its result is defined for all values.", _TEXT)
    ] = None
    keeps_values: Annotated[
        bool,
        _fact("Its results hold only values of its first input, and zeros for Pad and Trilu.", _TEXT),
    ] = False
    mask_inputs: Annotated[
        tuple[int, ...],
        _fact("Its inputs that are scores of attention, a mask of them, or what is added to them.", _TEXT),
    ] = ()
    joins_values: Annotated[bool, _fact("Its result holds values of several inputs.", _TEXT)] = False
    copies: Annotated[
        int | None,
        _fact("It copies or chooses elements: the input whose type its result has.", _TEXT),
    ] = None
    keeps_order: Annotated[
        bool, _fact("Its output has the elements of its first input in the same order.", _TEXT)
    ] = False
    ties: Annotated[
        TieKind,
        _fact(
            "It gives positions: of equal values it chooses the first index (or the last with "
            "select_last_index), or any.",
            _TEXT,
        ),
    ] = ""
    random: Annotated[
        bool,
        _fact(
            "It draws numbers: ONNX leaves the generator open, even with a seed, so they prove no fault.",
            _TEXT,
        ),
    ] = False
    indexed: Annotated[
        bool,
        _fact("Its second input are indices along the attribute axis of the first one.", _TEXT),
    ] = False

    # Precision and types.
    shows_precision: Annotated[
        bool,
        _fact("It sums many products: the precision of the arithmetic shows in its results.", "its formula"),
    ] = False
    differs_in_float16: Annotated[
        bool,
        _fact(
            "Its float32 and float16 results differ for ordinary values.",
            "measured with options of real providers, docs/explanation/real-providers.md",
        ),
    ] = False
    added_by_conversion: Annotated[
        bool,
        _fact(
            "A conversion to another precision adds it around operators that compute.",
            "onnxruntime's converters",
        ),
    ] = False
    float32_inside: Annotated[
        bool,
        _fact(
            "Its results for doubles are 1e-10 to 1e-7 off on the CPU EP, relative to their norm: a "
            "kernel rounds, or an expansion has constants in float32.",
            "measured with ONNX's operator tests",
        ),
    ] = False
    float32_unless: Annotated[str, _fact("The attribute without which its output is float32.", _TEXT)] = ""
    typed_as_input: Annotated[
        bool, _fact("Its result has its input's type if no attribute names another.", _TEXT)
    ] = False

    # Shapes, sizes and work.
    shape_source: Annotated[bool, _fact("It turns any tensor into its shape.", _TEXT)] = False
    shape_arithmetic: Annotated[
        bool, _fact("It may compute one shape from others, and does much else besides.", _TEXT)
    ] = False
    shape: Annotated[Shape, _fact("The rule of its result's shape, where it is certain.", _SHAPES)] = ""
    shape_inputs: Annotated[
        tuple[int, ...],
        _fact("Inputs whose numbers decide the shape of its result, if they are there.", _SHAPES),
    ] = ()
    sized_as_first: Annotated[
        bool,
        _fact(
            "The walk that adds noise takes its first result to have the size of its first input.", _SHAPES
        ),
    ] = False
    sized_as_larger: Annotated[
        bool,
        _fact("The walk that adds noise repeats the smaller of its two inputs.", _SHAPES),
    ] = False
    restricts_as_first: Annotated[
        bool,
        _fact(
            "The walk to restricted inputs takes its result to have the shape of its first input.", _SHAPES
        ),
    ] = False
    size: Annotated[SizeEstimate, _fact("The rule that estimates the size of its result.", _SHAPES)] = ""
    any_size: Annotated[bool, _fact("Its result may be of any size, whatever its inputs are.", _TEXT)] = False
    fit: Annotated[
        FitDemand,
        _fact("The rule of what its inputs' sizes have to fit.", "its text, and errors of the CPU EP"),
    ] = ""
    numbers: Annotated[
        str,
        _fact("What computes small tensors of shapes and counts: a function of numpy, or a rule.", _TEXT),
    ] = ""
    products: Annotated[
        Products, _fact("The rule that counts the products or elements it adds up in one run.", "its formula")
    ] = ""
    partly_read: Annotated[bool, _fact("It reads no more of its first input than it gives.", _TEXT)] = False
    view: Annotated[bool, _fact("It need not move a byte.", "its text, and what runtimes do with it")] = False

    # What it is in a network.
    layer: Annotated[
        Layer,
        _fact(
            "It may be a layer: what it computes depends on weights, which are inputs, or attributes, as "
            "those of a classifier whose scores are the second output.",
            _TEXT,
        ),
    ] = ""
    head: Annotated[Head, _fact("The kind of scores that it gives as the last layer.", _TEXT)] = ""
    passes_scores: Annotated[
        PassesScores,
        _fact("It moves or stores scores, or pools them behind the last layer as SqueezeNet does.", _TEXT),
    ] = ""
    adds_bias: Annotated[bool, _fact("It may add a bias to the result of a layer.", _TEXT)] = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return its names with each domain; ONNX's own has no prefix."""
        return tuple(f"{domain}.{self.name}" if domain else self.name for domain in self.domains)

    def special(self) -> dict[str, Any]:
        """Return the facts that are not at their default, by field."""
        plain = BookRow(self.name)
        values = {field: getattr(self, field) for field in FACTS}
        return {field: value for field, value in values.items() if value != getattr(plain, field)}


def _facts() -> dict[str, Fact]:
    hints = get_type_hints(BookRow, include_extras=True)
    return {
        field: fact for field, hint in hints.items() for fact in get_args(hint)[1:] if isinstance(fact, Fact)
    }


FACTS: Mapping[str, Fact] = _facts()
"""Field -> what it means and where it comes from, in the order of the row."""


def plain(names: str, *, domains: tuple[str, ...] = (ONNX_DOMAIN,)) -> tuple[BookRow, ...]:
    """Return rows of operators with nothing special, by their names with blanks between them."""
    return tuple(BookRow(name, domains=domains) for name in names.split())
