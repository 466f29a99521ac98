"""Zero of all kinds: signed zeros, denormals, empty tensors, tensors without dimensions."""

from collections.abc import Iterator

import numpy as np

from harness.corpus.corners.corner import INF, Corner, floats, ints, reduction


def _signed() -> Iterator[Corner]:
    """Signed zeros: a tolerance sees the sign of a zero only in 1/x."""
    zero = floats(0, -0.0, 2)
    for op, y in (
        ("Identity", zero),
        ("Neg", -zero),
        ("Abs", np.abs(zero)),
        ("Sqrt", np.sqrt(zero)),
        ("Floor", np.floor(zero)),
        ("Tanh", np.tanh(zero)),
    ):
        yield Corner(f"{op.lower()}_sign_of_zero", op, (zero,), (1 / y,), then="Reciprocal")
    small, signs = floats(-0.5, -0.3, 0.3), floats(-INF, -INF, INF)
    yield Corner("round_sign_of_zero", "Round", (small,), (signs,), then="Reciprocal")
    a, b = floats(0, -0.0, -0.0), floats(-0.0, -0.0, 5)
    signs = floats(-INF, INF, -INF)
    yield Corner("mul_sign_of_zero", "Mul", (a, b), (signs,), then="Reciprocal")


def _tiny() -> Iterator[Corner]:
    """Denormals, scaled so that a tolerance reveals a flush to zero."""
    tiny, huge = floats(1e-40, -3e-39, 1e-44), floats(1e38, 1e38, 3e38)
    yield Corner("mul_of_denormals", "Mul", (tiny, huge), (tiny * huge,))
    root = floats(1e-40, 4e-42, 1)
    inverse = 1 / np.sqrt(root)
    yield Corner("sqrt_of_denormals", "Sqrt", (root,), (inverse,), then="Reciprocal")
    x, zero = floats(1e-40, -1e-44, 0), floats(0, 0, 0)
    yield Corner("equal_denormal_and_zero", "Equal", (x, zero), (x == zero,))
    yield Corner("greater_denormal_and_zero", "Greater", (x, zero), (x > zero,))
    a, b = floats(5e-324, 1e-310, 1, dtype=np.float64), floats(1e308, 1e308, 1, dtype=np.float64)
    yield Corner("mul_of_denormals_float64", "Mul", (a, b), (a * b * 1.0,))
    wide = floats(1e300, -1e-300, 1 + 2**-50, dtype=np.float64)
    yield Corner("identity_float64_wide", "Identity", (wide,), (wide,))
    near, one = floats(1 + 2**-50, 2, dtype=np.float64), floats(1, 1, dtype=np.float64)
    yield Corner("sub_float64_close", "Sub", (near, one), (1 / (near - one),), then="Reciprocal")


def _empty() -> Iterator[Corner]:
    """Tensors without elements: a sum of nothing is 0, a product 1, a maximum minus infinity."""
    none, other = np.zeros((0, 3), np.float32), np.ones((3, 2), np.float32)
    for op in ("Identity", "Relu", "Exp", "Softmax"):
        yield Corner(f"{op.lower()}_of_nothing", op, (none,), (none,))
    yield Corner("add_nothing", "Add", (none, floats(1, 2, 3)), (none,))
    yield Corner("concat_with_nothing", "Concat", (none, other.T), (other.T.copy(),), {"axis": 0})
    yield Corner("transpose_of_nothing", "Transpose", (none,), (none.T.copy(),), {"perm": [1, 0]})
    yield Corner("gather_nothing", "Gather", (other, ints()), (other[ints()],), {"axis": 0})
    rows = np.zeros((2, 0), np.float32)
    yield Corner("matmul_over_nothing", "MatMul", (rows, none), (rows @ none,))
    yield Corner("matmul_no_rows", "MatMul", (none, other), (none @ other,))
    bias = floats(1, 2, 3)
    yield Corner("gemm_over_nothing", "Gemm", (rows, none, bias), (np.stack([bias, bias]),))
    for op, start in (("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -INF), ("ReduceMin", INF)):
        yield reduction("of_nothing", op, none, 0, np.full(3, start, np.float32))
    square, found = np.zeros((2, 2), np.float32), np.zeros((2, 0), np.int64)
    yield Corner("nonzero_finds_nothing", "NonZero", (square,), (found,))
    yield Corner("slice_to_nothing", "Slice", (other, ints(2), ints(2)), (other[2:2],), constants=(1, 2))


def _no_dimensions() -> Iterator[Corner]:
    """Scalars, which differ from vectors of one element."""
    scalar, vector = np.array(3, np.float32), floats(1, 2)
    yield Corner("add_scalars", "Add", (scalar, scalar), (scalar + scalar,))
    yield Corner("mul_vector_by_scalar", "Mul", (vector, scalar), (vector * 3,))
    yield Corner("relu_of_scalar", "Relu", (scalar,), (scalar,))
    second = np.array(2, np.float32)
    yield Corner("gather_one_scalar", "Gather", (vector, np.array(1)), (second,), {"axis": 0})
    total = np.array(3, np.float32)
    yield Corner("reducesum_to_scalar", "ReduceSum", (vector,), (total,), {"keepdims": 0})


ZEROS = (_signed, _tiny, _empty, _no_dimensions)
