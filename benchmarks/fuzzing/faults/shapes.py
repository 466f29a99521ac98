"""Faults that show for some shapes only: high ranks, none, no elements, odd sizes, broadcasting."""

from functools import partial

from benchmarks.fuzzing.faults.fault import Fault, Site, fault, last

_RANK, _EMPTY, _ODD = "rank", "zero size", "odd size"
_REDUCTIONS = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp"
_FUNCTIONS = "Abs Neg Relu Sigmoid Tanh Exp Erf Sqrt Log Floor Ceil LeakyRelu"

_rank = partial(fault, _RANK)
_empty = partial(fault, _EMPTY)
_odd = partial(fault, _ODD)


def _broadcast_batches(site: Site) -> bool:
    a, b = site.x(0).shape[:-2], site.x(1).shape[:-2]
    return len(site.x(1).shape) > 1 and a != b and max(map(len, (a, b))) > 0 and bool(site.y.size)


def _not_reversed(site: Site) -> bool:
    order = list(site.given.get("perm", ()))
    return (
        site.y.ndim == 5 and bool(order) and order != sorted(order, reverse=True) and order != sorted(order)
    )


SHAPES: tuple[Fault, ...] = (
    _rank("Add, Mul: rank 5", "Add Mul", lambda s: s.y.ndim == 5),
    _rank("Sub, Div: rank 6", "Sub Div Max Min", lambda s: s.y.ndim > 5),
    _rank("Transpose: rank 5", "Transpose", _not_reversed),
    _rank("Transpose: rank 6", "Transpose", lambda s: s.y.ndim > 5),
    _rank("Softmax: rank 4, not the last axis", "Softmax LogSoftmax",
          lambda s: s.y.ndim > 3 and s.given.get("axis", -1) not in {-1, s.y.ndim - 1}),
    _rank("MatMul: a matrix and a vector", "MatMul", lambda s: s.x(0).ndim == 2 and s.x(1).ndim == 1),
    _rank("MatMul: batches that broadcast", "MatMul", _broadcast_batches),
    _rank("reductions: rank 5", _REDUCTIONS, lambda s: s.x().ndim > 4),
    _rank("Concat: rank 5", "Concat", lambda s: s.y.ndim > 4 and len(s.node.input) > 1),
    _rank("functions: rank 0", _FUNCTIONS, lambda s: s.y.ndim == 0),
    _rank("Conv: three dimensions", "Conv", lambda s: s.y.ndim == 5),
    _empty("Concat: an empty piece", "Concat",
           lambda s: bool(s.y.size) and any(s.x(at).size == 0 for at in range(len(s.node.input)))),
    _empty("MatMul, Gemm: a sum of nothing", "MatMul Gemm MatMulInteger",
           lambda s: bool(s.y.size) and s.x(0).size == 0),
    _empty("reductions: a sum of nothing", "ReduceSum ReduceSumSquare ReduceL1 ReduceL2",
           lambda s: bool(s.y.size) and s.x().size == 0),
    _odd("Conv: an odd number of filters above 4", "Conv",
         lambda s: s.x(1).shape[0] > 4 and s.x(1).shape[0] % 2 == 1,
         last(1)),
    _odd("Gemm, MatMul: 7 columns", "Gemm MatMul", lambda s: s.y.ndim > 1 and s.y.shape[-1] == 7, last(1)),
    _odd("Softmax: an axis of size 1", "Softmax",
         lambda s: s.y.ndim > 0 and s.y.shape[s.given.get("axis", -1)] == 1),
)  # fmt: skip
"""The numbers in the conditions are the forms themselves."""
