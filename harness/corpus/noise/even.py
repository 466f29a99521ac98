"""Groups of elements of a result that have the same uncertainty."""

import math
from collections.abc import Sequence

import onnx

from harness.corpus.noise.drawing import Beside
from harness.corpus.noise.operator_rounding import EVEN
from harness.corpus.noise.terms import PartialDims, attribute_of

_ENOUGH = 16
"""Number of elements whose mean shows the usual size of one of them."""


def even_axes(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> Beside:
    """Return the axes along which all elements have the same uncertainty.

    None for all axes, "" if there are none.

    ``dims`` are the sizes of the node's inputs. If these are unknown, all elements have the same uncertainty.
    """
    even = EVEN.get(node.op_type)
    if even is None:
        return ""
    sizes = dims[0] if dims and dims[0] is not None else ()
    rank = len(sizes)
    if even == "rows":
        axes: tuple[int, ...] = (-1,)
    elif even == "normalized":
        first = int(attribute_of(node, "axis", -1))
        axes = tuple(range(first - rank if first >= 0 else first, 0))
    elif even == "channels":
        axes = tuple(axis for axis in range(rank) if axis != 1)
    elif even == "planes":
        axes = tuple(range(2, rank))
    else:
        return ()
    known = [sizes[axis] for axis in axes if -rank <= axis < rank]
    return axes if math.prod(size or 1 for size in known) >= _ENOUGH and len(known) == len(axes) else ()
