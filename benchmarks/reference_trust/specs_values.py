"""Specifications of operators that look at each value, or at one axis."""

import numpy as np

from benchmarks.reference_trust.specs import (
    Spec,
    floats,
    integers,
    left_out,
    positive,
    tied,
    unit,
    values,
)

SHAPES = ((5,), (3, 4), (2, 3, 4), (2, 3, 4, 5))
NONE_AND = (None, 0.0, 0.1, 0.7, 3.0)
INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "uint32", "uint64")
ACTIVATIONS: dict[str, dict[str, tuple[object, ...]]] = {
    "Elu": {"alpha": NONE_AND},
    "LeakyRelu": {"alpha": NONE_AND},
    "Selu": {"alpha": NONE_AND, "gamma": NONE_AND},
    "HardSigmoid": {"alpha": NONE_AND, "beta": NONE_AND},
    "ThresholdedRelu": {"alpha": NONE_AND},
    "Celu": {"alpha": (None, 0.1, 0.7, 3.0)},
    "Shrink": {"lambd": NONE_AND, "bias": NONE_AND},
    "Gelu": {"approximate": (None, "none", "tanh")},
    "Swish": {"alpha": NONE_AND},
    "HardSwish": {},
    "Mish": {},
    "Softplus": {},
    "Softsign": {},
}
ELEMENTWISE = (
    "Abs", "Acosh", "Asin", "Asinh", "Acos", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
    "Identity", "Log", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan",
    "Tanh", "IsNaN",
)  # fmt: skip
BINARY = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Equal",
    "Less",
    "Greater",
    "LessOrEqual",
    "GreaterOrEqual",
    "PRelu",
)
VARIADIC = ("Max", "Min", "Sum", "Mean")
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
EDGES = np.array(
    [-np.inf, np.inf, np.nan, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e-8, 88.0, -88.0, 1e30]
)


def _specs() -> list[Spec]:
    specs = [Spec(name, [floats(3, 4, 5)], attributes) for name, attributes in ACTIVATIONS.items()]
    specs += [Spec(name, [values(EDGES, "float32")]) for name in (*ACTIVATIONS, *ELEMENTWISE)]
    specs += [Spec(name, [make(3, 4)]) for name in ELEMENTWISE for make in (floats, unit, positive)]
    specs += [Spec(name, [floats(2, 3, 4), positive(3, 1)]) for name in BINARY]
    specs += [Spec(name, [tied(2, 3, 4), tied(4)]) for name in BINARY]
    specs += [Spec(name, [positive(2, 3, 4), floats(2, 1, 4)]) for name in BINARY]
    specs += [Spec(name, [floats(2, 3), floats(3), floats(2, 1)]) for name in VARIADIC]
    specs += [Spec(name, [floats(2, 3)]) for name in VARIADIC]
    specs += [
        Spec(name, [values(EDGES, "float32"), values(EDGES[::-1].copy(), "float32")])
        for name in ("Max", "Min")
    ]
    for name in ("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Equal", "Less", "Greater"):
        for dtype in INTEGERS:
            low = 0 if dtype.startswith("u") else -9
            exponents = integers(0, 4, (4, 5), dtype) if name == "Pow" else integers(1, 9, (4, 5), dtype)
            specs.append(Spec(name, [integers(low, 9, (4, 5), dtype), exponents]))
            if low and name != "Pow":
                specs.append(Spec(name, [integers(low, 9, (4, 5), dtype), integers(-9, 0, (4, 5), dtype)]))
    for dtype in INTEGERS:
        low = 0 if dtype.startswith("u") else -9
        specs += [Spec(name, [integers(low, 9, (4, 5), dtype)]) for name in ("Abs", "Neg", "Sign", "Relu")]
        specs.append(
            Spec("Mod", [integers(low, 9, (4, 5), dtype), integers(1, 9, (4, 5), dtype)], {"fmod": (0, 1)})
        )
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        shifts = integers(0, 7, (20,), dtype)
        specs.append(
            Spec("BitShift", [integers(0, 200, (20,), dtype), shifts], {"direction": ("LEFT", "RIGHT")})
        )
    specs.append(Spec("Mod", [floats(20), positive(20)], {"fmod": (1,)}))
    specs.append(
        Spec("IsInf", [values(EDGES, "float32")], {"detect_negative": (0, 1), "detect_positive": (0, 1)})
    )
    bounds = values(-0.5, "float32"), values(0.7, "float32")
    specs.append(Spec("Clip", [floats(3, 4), *bounds]))
    specs.append(Spec("Clip", [floats(3, 4), bounds[0]]))
    specs.append(Spec("Clip", [floats(3, 4), left_out, bounds[1]]))
    specs.append(Spec("Clip", [floats(3, 4), bounds[1], bounds[0]]))
    return specs + _of_an_axis() + _casts()


def _of_an_axis() -> list[Spec]:
    specs = []
    for shape in SHAPES:
        axes = (None, *range(-len(shape), len(shape)))
        specs += [Spec(name, [floats(*shape)], {"axis": axes}) for name in ("Softmax", "LogSoftmax")]
        specs.append(Spec("Hardmax", [tied(*shape)], {"axis": axes}))
        specs += [
            Spec(
                name,
                [make(*shape)],
                {"axis": axes, "keepdims": (None, 0, 1), "select_last_index": (None, 0, 1)},
            )
            for name in ("ArgMax", "ArgMin")
            for make in (floats, tied)
        ]
        specs.append(Spec("LpNormalization", [floats(*shape)], {"axis": axes, "p": (None, 1, 2)}))
        specs += [
            Spec(name, [floats(*shape), values(axis)], {"exclusive": (None, 0, 1), "reverse": (None, 0, 1)})
            for name in ("CumSum", "CumProd")
            for axis in axes[1:]
        ]
        specs += [
            Spec(
                "TopK",
                [floats(*shape), values([2])],
                {"axis": axes, "largest": (None, 0, 1), "sorted": (None, 1)},
                outputs=2,
            )
        ]
        specs.append(Spec("Flatten", [floats(*shape)], {"axis": (None, *range(-len(shape), len(shape) + 1))}))
        specs += [
            Spec(
                name,
                [positive(*shape), left_out if dims is None else values(dims)],
                {"keepdims": (None, 0, 1), "noop_with_empty_axes": (None, 0, 1)},
            )
            for name in REDUCTIONS
            for dims in (None, [0], [-1], list(range(len(shape))), [])
        ]
        specs += [
            Spec(name, [floats(*shape), left_out if dims is None else values(dims)], {"keepdims": (None, 0)})
            for name in REDUCTIONS
            for dims in (None, [0], [-1])
        ]
    specs.append(
        Spec("MeanVarianceNormalization", [floats(2, 3, 4, 5)], {"axes": (None, [0, 2, 3], [2, 3], [1], [0])})
    )
    specs.append(Spec("Trilu", [floats(2, 4, 5), values(1)], {"upper": (None, 0, 1)}))
    specs.append(Spec("Trilu", [floats(2, 4, 5)], {"upper": (None, 0, 1)}))
    specs.append(Spec("EyeLike", [floats(4, 5)], {"k": (None, 1, -2), "dtype": (None, 1, 6, 7, 11)}))
    specs.append(
        Spec(
            "OneHot",
            [integers(-4, 4, (3, 4)), values(5), values([2, 5], "float32")],
            {"axis": (None, 0, 1, 2, -1, -2)},
        )
    )
    specs.append(
        Spec(
            "ReverseSequence",
            [floats(4, 4, 3), values([4, 3, 2, 1])],
            {"batch_axis": (0, 1), "time_axis": (0, 1)},
        )
    )
    specs.append(Spec("Compress", [floats(3, 4), values([0, 1, 1], "bool")], {"axis": (None, 0, 1, -1)}))
    specs.append(Spec("Concat", [floats(2, 3, 4), floats(2, 3, 4)], {"axis": (0, 1, 2, -1, -2, -3)}))
    specs.append(Spec("Split", [floats(6, 4), values([2, 4])], {"axis": (None, 0)}, outputs=2))
    specs.append(Spec("Split", [floats(3, 6), values([2, 4])], {"axis": (1, -1)}, outputs=2))
    specs.append(Spec("Split", [floats(6, 4)], {"axis": (None, 0), "num_outputs": (2,)}, outputs=2))
    specs.append(Spec("Transpose", [floats(2, 3, 4)], {"perm": (None, [2, 0, 1], [0, 2, 1], [1, 2, 0])}))
    specs += [Spec("Gather", [floats(4, 4, 4), integers(-4, 4, (2, 3))], {"axis": (None, 0, 1, 2, -1)})]
    specs += [
        Spec("GatherElements", [floats(4, 4, 4), integers(-4, 4, (4, 4, 4))], {"axis": (None, 0, 1, 2, -1)})
    ]
    specs.append(Spec("GatherND", [floats(3, 4, 5), integers(0, 3, (3, 2, 1))], {"batch_dims": (None, 0, 1)}))
    order = values(np.array([[3, 1, 0], [2, 0, 1]]))
    specs += [
        Spec(
            name,
            [floats(4, 4), order, floats(2, 3)],
            {"axis": (None, 0, 1, -1), "reduction": (None, "none", "add", "mul", "max", "min")},
        )
        for name in ("ScatterElements", "Scatter")
    ]
    specs.append(
        Spec(
            "ScatterND",
            [floats(4, 3), values([[1], [3], [1]]), floats(3, 3)],
            {"reduction": ("add", "mul", "max", "min")},
        )
    )
    specs.append(Spec("Unique", [tied(3, 4)], {"axis": (None, 0, 1, -1), "sorted": (None, 0, 1)}, outputs=4))
    specs += [Spec("NonZero", [tied(*shape)]) for shape in SHAPES]
    for starts, ends, steps in (
        ([0, 1], [2, 3], None),
        ([-1, 3], [-9, 0], [-1, -2]),
        ([1, 0], [99, -1], [1, 2]),
    ):
        more = [values([0, 1]), values(steps)] if steps else []
        specs.append(Spec("Slice", [floats(3, 4), values(starts), values(ends), *more]))
    specs.append(Spec("Slice", [floats(3, 4, 5), values([1]), values([3]), values([-1]), values([1])]))
    return specs


def _casts() -> list[Spec]:
    numbers = values([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 100.7], "float32")
    whole = values([-3, -1, 0, 1, 2, 100])
    kinds = (1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13)
    return [
        Spec("Cast", [numbers], {"to": (1, 3, 5, 6, 7, 9, 10, 11)}),
        Spec("Cast", [values([0.0, 0.5, 1.5, 100.7], "float32")], {"to": kinds}),
        Spec("Cast", [whole], {"to": (1, 3, 5, 6, 7, 9, 10, 11)}),
        Spec("Cast", [values([1, 0, 1], "bool")], {"to": kinds}),
    ]


SPECS = _specs()
