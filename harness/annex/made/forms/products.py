"""Matrix products in their variants."""

from typing import Any

import numpy as np

from harness.annex.made.forms.input_values import SMALL, UNIT, ValueKind
from harness.annex.made.forms.setting import Form, Operand, Setting, broadcast

_INTEGERS = ValueKind(low=-20.0, high=20.0)


def matmul(setting: Setting) -> Form:
    """Return a form of MatMul: batches that broadcast, vectors on either side."""
    first, second = _shapes(setting)
    kinds = ValueKind(low=-3.0, high=3.0)
    return Form(inputs=(setting.operand(0, first, kinds), setting.operand(1, second, kinds)))


def _shapes(setting: Setting, *, vectors: bool = True) -> tuple[tuple[int, ...], tuple[int, ...]]:
    draw = setting.draw
    rows, inner, columns = (setting.size(33) for _ in range(3))
    if draw.chance(10):
        inner = draw.pick((64, 65, 127, 128, 129, 256))
    batch = tuple(min(size, 4) for size in setting.shape(0, 3))
    first, second = (*batch, rows, inner), (*broadcast(setting, batch), inner, columns)
    if draw.chance(30):
        first, second = (*second[:-2], rows, inner), (*batch, inner, columns)
    if vectors and draw.chance(10):
        return draw.pick((((inner,), second), (first, (inner,)), ((inner,), (inner,))))
    return first, second


def gemm(setting: Setting) -> Form:
    """Return a form of Gemm or of a fused form of it."""
    draw = setting.draw
    rows, inner, columns = (setting.size(33) for _ in range(3))
    attributes: dict[str, Any] = {}
    turned_a, turned_b = draw.below(2), draw.below(2)
    if turned_a or draw.chance(30):
        attributes["transA"] = turned_a
    if turned_b or draw.chance(30):
        attributes["transB"] = turned_b
    attributes |= setting.maybe(40, {"alpha": draw.pick((0.5, 1.0, 2.0, -1.0))})
    attributes |= setting.maybe(40, {"beta": draw.pick((0.5, 1.0, 2.0, 0.0))})
    first = setting.operand(0, (inner, rows) if turned_a else (rows, inner))
    second = setting.operand(1, (columns, inner) if turned_b else (inner, columns))
    inputs: list[Operand | None] = [first, second]
    if (setting.since < _OPTIONAL_BIAS and not setting.operator.domain) or draw.chance(75):
        shape = draw.pick(((rows, columns), (columns,), (1, columns), (rows, 1), (1,), ()))
        inputs.append(setting.operand(2, shape))
    if setting.has("activation"):
        attributes["activation"] = draw.pick(("Relu", "Sigmoid", "Tanh"))
    return Form(inputs=tuple(inputs), attributes=attributes)


_OPTIONAL_BIAS = 11
"""Version of Gemm from which on its third input is optional."""


def fused_matmul(setting: Setting) -> Form:
    """Return a form of onnxruntime's FusedMatMul: transposed factors, a scale."""
    draw = setting.draw
    first, second = _shapes(setting, vectors=False)
    attributes: dict[str, Any] = setting.maybe(50, {"alpha": draw.pick((0.5, 2.0))})
    shapes = []
    for name, (*batch, rows, columns) in (("transA", first), ("transB", second)):
        turned = draw.chance(50)
        attributes |= {name: 1} if turned else {}
        shapes.append((*batch, columns, rows) if turned else (*batch, rows, columns))
    return Form(inputs=tuple(map(setting.operand, (0, 1), shapes)), attributes=attributes)


def integer_matmul(setting: Setting) -> Form:
    """Return a form of MatMulInteger, with and without zero points."""
    first, second = _shapes(setting, vectors=False)
    inputs: list[Operand | None] = [
        setting.operand(at, shape, _INTEGERS) for at, shape in enumerate((first, second))
    ]
    if setting.takes(2) and setting.draw.chance(60):
        inputs.append(setting.operand(2, (), _INTEGERS))
        if setting.draw.chance(60):
            inputs.append(setting.operand(3, (), _INTEGERS))
    return Form(inputs=tuple(inputs))


def determinant(setting: Setting) -> Form:
    """Return a form of Det or Inverse of matrices with a dominant diagonal, which are regular."""
    size = setting.size(5)
    data = setting.operand(0, (*setting.shape(0, 2), size, size), SMALL)
    array = data.array + 4 * np.eye(size, dtype=data.array.dtype)
    return Form(inputs=(Operand(array=array.astype(data.array.dtype), dtype=data.dtype),))


_EQUATIONS = (
    "ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "i,i->", "i,j->ij", "bhid,bhjd->bhij",
    "...ij,...jk->...ik", "ij,ij->", "ijk->kji", "bij->b", "ij,jk,kl->il",
)  # fmt: skip


def einsum(setting: Setting) -> Form:
    """Return a form of Einsum."""
    equation = setting.draw.pick(_EQUATIONS)
    sizes = {letter: setting.size(9) for letter in "bhijkld"}
    inputs = []
    for term in equation.partition("->")[0].split(","):
        shape = [2] if "..." in term else []
        shape += [sizes[letter] for letter in term.replace("...", "")]
        inputs.append(setting.operand(0, shape))
    return Form(inputs=tuple(inputs), attributes={"equation": equation})


def four_bits(setting: Setting) -> Form:
    """Return a form of onnxruntime's MatMulNBits: weights of four bits in blocks, each with a scale."""
    draw = setting.draw
    rows, columns, block = setting.size(9), setting.size(17), draw.pick((16, 32))
    inner = block * draw.between(1, 3)
    blocks = inner // block
    scales = draw.whole((columns * blocks,), 1, 8) / 32
    weights = draw.whole((columns, blocks, block // 2), 0, 255)
    inputs: list[Operand | None] = [
        setting.operand(0, (rows, inner), UNIT),
        setting.given_as("uint8", weights, constant=True),
        setting.given(2, scales, constant=True),
    ]
    if draw.chance(40):
        points = draw.whole((columns * ((blocks + 1) // 2),), 0, 255)
        inputs.append(setting.given_as("uint8", points, constant=True))
    attributes = {"K": inner, "N": columns, "bits": 4, "block_size": block}
    return Form(inputs=tuple(inputs), attributes=attributes)


def distances(setting: Setting) -> Form:
    """Return a form of onnxruntime's CDist."""
    width = setting.size(9)
    metric = setting.draw.pick(("euclidean", "sqeuclidean"))
    shapes = [(setting.size(9), width), (setting.size(9), width)]
    return Form(inputs=tuple(map(setting.operand, (0, 1), shapes)), attributes={"metric": metric})
