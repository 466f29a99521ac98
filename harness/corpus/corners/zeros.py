"""Nothing at all: signed zeros, numbers next to zero, empty tensors, tensors without dimensions."""

from collections.abc import Iterator

import numpy as np

from harness.corpus.corners.corner import INF, Corner, floats, ints

_NONE = np.zeros((0, 3), np.float32)


def zeros() -> Iterator[Corner]:
    """Every corner of this kind."""
    yield from _signed()
    yield from _tiny()
    yield from _empty()
    yield from _no_dimensions()


def _signed() -> Iterator[Corner]:
    """The sign of a zero shows in 1/x, and nowhere else that a tolerance would see."""
    zero = floats(0, -0.0, 2)
    for op, y in (
        ("Identity", zero),
        ("Neg", -zero),
        ("Abs", np.abs(zero)),
        ("Sqrt", np.sqrt(zero)),
        ("Floor", np.floor(zero)),
        ("Tanh", np.tanh(zero)),
    ):
        name = f"{op.lower()}_sign_of_zero"
        yield Corner(name=name, op=op, inputs=(zero,), expected=(1 / y,), then="Reciprocal")
    small, signs = floats(-0.5, -0.3, 0.3), floats(-INF, -INF, INF)
    yield Corner(name="round_sign_of_zero", op="Round", inputs=(small,), expected=(signs,), then="Reciprocal")
    a, b = floats(0, -0.0, -0.0), floats(-0.0, -0.0, 5)
    signs = floats(-INF, INF, -INF)
    yield Corner(name="mul_sign_of_zero", op="Mul", inputs=(a, b), expected=(signs,), then="Reciprocal")


def _tiny() -> Iterator[Corner]:
    """Denormals, brought to where a tolerance sees them: what flushes them to zero gives another result."""
    tiny, huge = floats(1e-40, -3e-39, 1e-44), floats(1e38, 1e38, 3e38)
    yield Corner(name="mul_of_denormals", op="Mul", inputs=(tiny, huge), expected=(tiny * huge,))
    root = floats(1e-40, 4e-42, 1)
    inverse = 1 / np.sqrt(root)
    yield Corner(name="sqrt_of_denormals", op="Sqrt", inputs=(root,), expected=(inverse,), then="Reciprocal")
    x, zero = floats(1e-40, -1e-44, 0), floats(0, 0, 0)
    yield Corner(name="equal_denormal_and_zero", op="Equal", inputs=(x, zero), expected=(x == zero,))
    yield Corner(name="greater_denormal_and_zero", op="Greater", inputs=(x, zero), expected=(x > zero,))
    a, b = floats(5e-324, 1e-310, 1, dtype=np.float64), floats(1e308, 1e308, 1, dtype=np.float64)
    yield Corner(name="mul_of_denormals_float64", op="Mul", inputs=(a, b), expected=(a * b * 1.0,))
    wide = floats(1e300, -1e-300, 1 + 2**-50, dtype=np.float64)
    yield Corner(name="identity_float64_wide", op="Identity", inputs=(wide,), expected=(wide,))
    near, one = floats(1 + 2**-50, 2, dtype=np.float64), floats(1, 1, dtype=np.float64)
    yield Corner(
        name="sub_float64_close",
        op="Sub",
        inputs=(near, one),
        expected=(1 / (near - one),),
        then="Reciprocal",
    )


def _empty() -> Iterator[Corner]:
    """Tensors without elements: a sum of nothing is 0, a product 1, a maximum the least that there is."""
    none, other = np.zeros((0, 3), np.float32), np.ones((3, 2), np.float32)
    nowhere = ints()
    for op in ("Identity", "Relu", "Exp", "Softmax"):
        yield Corner(name=f"{op.lower()}_of_nothing", op=op, inputs=(none,), expected=(none,))
    yield Corner(name="add_nothing", op="Add", inputs=(none, floats(1, 2, 3)), expected=(none,))
    yield Corner(
        name="concat_with_nothing",
        op="Concat",
        inputs=(none, other.T),
        expected=(other.T.copy(),),
        attributes={"axis": 0},
    )
    yield Corner(
        name="transpose_of_nothing",
        op="Transpose",
        inputs=(none,),
        expected=(none.T.copy(),),
        attributes={"perm": [1, 0]},
    )
    yield Corner(
        name="gather_nothing",
        op="Gather",
        inputs=(other, nowhere),
        expected=(other[nowhere],),
        attributes={"axis": 0},
    )
    rows = np.zeros((2, 0), np.float32)
    yield Corner(name="matmul_over_nothing", op="MatMul", inputs=(rows, none), expected=(rows @ none,))
    yield Corner(name="matmul_no_rows", op="MatMul", inputs=(none, other), expected=(none @ other,))
    yield Corner(
        name="gemm_over_nothing",
        op="Gemm",
        inputs=(rows, none, floats(1, 2, 3)),
        expected=(np.array([[1, 2, 3], [1, 2, 3]], np.float32),),
    )
    for op, start in (("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -INF), ("ReduceMin", INF)):
        yield Corner(
            name=f"{op.lower()}_of_nothing",
            op=op,
            inputs=(none, ints(0)),
            expected=(np.full(3, start, np.float32),),
            attributes={"keepdims": 0},
            constants=(1,),
        )
    yield Corner(
        name="nonzero_finds_nothing",
        op="NonZero",
        inputs=(np.zeros((2, 2), np.float32),),
        expected=(np.zeros((2, 0), np.int64),),
    )
    yield Corner(
        name="slice_to_nothing",
        op="Slice",
        inputs=(other, ints(2), ints(2)),
        expected=(other[2:2],),
        constants=(1, 2),
    )


def _no_dimensions() -> Iterator[Corner]:
    """Scalars, which are no vectors of one element."""
    scalar, vector = np.array(3, np.float32), floats(1, 2)
    yield Corner(name="add_scalars", op="Add", inputs=(scalar, scalar), expected=(scalar + scalar,))
    yield Corner(name="mul_vector_by_scalar", op="Mul", inputs=(vector, scalar), expected=(vector * 3,))
    yield Corner(name="relu_of_scalar", op="Relu", inputs=(scalar,), expected=(scalar,))
    yield Corner(
        name="gather_one_scalar",
        op="Gather",
        inputs=(vector, np.array(1)),
        expected=(np.array(2, np.float32),),
        attributes={"axis": 0},
    )
    total = np.array(3, np.float32)
    yield Corner(
        name="reducesum_to_scalar",
        op="ReduceSum",
        inputs=(vector,),
        expected=(total,),
        attributes={"keepdims": 0},
    )
