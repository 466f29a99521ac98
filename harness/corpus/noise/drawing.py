"""Nodes that add numbers drawn by lot to a tensor."""

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.corpus.noise.tensor_types import NUMBERS

if TYPE_CHECKING:
    import onnx

AMPLITUDE = "ep_harness.noise_amplitude"
HALF, TRUE = "ep_harness.half", "ep_harness.true"
FLOAT, DOUBLE = "tensor(float)", "tensor(double)"

FOUND = 3.0**0.5
"""Half-width of noise whose root mean square is 1: an error that is known but for its sign."""

BOUNDS = {"float16": 2.0**15, "tensor(float16)": 2.0**12}
"""Precision, or type -> absolute value from which on noise does not grow any more.

The largest numbers, which masks are made of, must not overflow.
"""

BOUND = 2.0**100
"""The same for all others."""

CLIP_BY_INPUTS = 11
"""Opset from which on the bounds of Clip are inputs."""

FINDS_INFINITY = 10
"""Opset from which on there is IsInf; IsNaN is older."""

DRAWN_BY_DROPOUT = 22
"""Opset from which on the CPU EP (of onnxruntime 1.31) has no kernel for RandomUniformLike.

It has one for Dropout, which in training doubles an element or drops it: a sign by lot, about as fast.
"""


class Drawing:
    """Draws noise for one model.

    Args:
        opset: Version of ONNX's operators in the model.
        bound: Absolute value from which on noise does not grow; some types have another.
    """

    def __init__(self, opset: int, bound: float) -> None:
        self.opset = opset
        self.bound = bound
        self.sites = 0
        """Places with noise so far."""
        self._bounds: set[float] = set()
        # Streams of seeds in a row resemble each other in the generator of the CPU EP.
        self._seeds = random.Random(0)  # noqa: S311 - nothing is secret here

    def complete(self, graph: "onnx.GraphProto") -> None:
        """Give a main graph what the nodes refer to."""
        from onnx.helper import make_node, make_tensor, make_tensor_value_info

        single = NUMBERS[FLOAT]
        graph.input.append(make_tensor_value_info(AMPLITUDE, single, []))
        for bound in sorted(self._bounds):
            graph.initializer.append(make_tensor(_bound(bound), single, [], [bound]))
        if self.sites and self.opset >= DRAWN_BY_DROPOUT:
            graph.initializer.append(make_tensor(HALF, single, [], [0.5]))
            # A constant here would have the Dropout optimized away. No amplitude is NaN.
            graph.node.insert(0, make_node("Equal", [AMPLITUDE, AMPLITUDE], [TRUE]))

    def noise(
        self,
        source: str,
        result: str,
        kind: str,
        width: float,
        rounded_to: int = 0,
        *,
        even: bool = False,
    ) -> "Iterator[onnx.NodeProto]":
        """Nodes that make a noisy tensor of another.

        Args:
            source: Name of the one.
            result: Name of the other.
            kind: Type of both.
            width: Half-width of the noise.
            rounded_to: Type whose rounding error the noise is in proportion to; 0: the elements themselves.
            even: Whether the mean of all elements adds to what the noise of each is in proportion to.
        """
        from onnx.helper import make_node

        single, stem = NUMBERS[FLOAT], f"{result}.{self.sites}"
        self.sites += 1
        wide = source
        if kind != FLOAT:
            wide = f"{stem}.wide"
            yield make_node("Cast", [source], [wide], to=single)
        scale = f"{stem}.scale"
        yield self._clip(wide, scale, BOUNDS.get(kind, self.bound))
        if rounded_to:
            narrow, rounded, lost = f"{stem}.narrow", f"{stem}.rounded", f"{stem}.lost"
            yield make_node("Cast", [scale], [narrow], to=rounded_to)
            yield make_node("Cast", [narrow], [rounded], to=single)
            yield make_node("Sub", [scale, rounded], [lost])
            scale = lost
        if even:
            size, mean, level = f"{stem}.size", f"{stem}.mean", f"{stem}.level"
            yield make_node("Abs", [scale], [size])
            counted = size
            if self.opset >= FINDS_INFINITY:
                counted = f"{stem}.counted"
                yield from self._zero_where_special(wide, size, counted)
            yield make_node("ReduceMean", [counted], [mean], keepdims=0)
            yield make_node("Add", [size, mean], [level])
            scale = level
        noise = f"{stem}.noise"
        yield from self._draw(scale, noise, width)
        if kind == FLOAT:
            yield make_node("Add", [source, noise], [result])
        elif kind == DOUBLE:  # the noise is float32, the sum must not be
            yield make_node("Cast", [noise], [f"{stem}.double"], to=NUMBERS[DOUBLE])
            yield make_node("Add", [source, f"{stem}.double"], [result])
        else:
            yield make_node("Add", [wide, noise], [f"{stem}.sum"])
            yield make_node("Cast", [f"{stem}.sum"], [result], to=NUMBERS[kind])

    def _zero_where_special(self, source: str, size: str, result: str) -> "Iterator[onnx.NodeProto]":
        """Nodes that leave NaN and infinity out of a mean: one of them would be the mean of all."""
        from onnx.helper import make_node

        nan, infinite, special, none = (f"{result}.{word}" for word in ("nan", "infinite", "special", "none"))
        yield make_node("IsNaN", [source], [nan])
        yield make_node("IsInf", [source], [infinite])
        yield make_node("Or", [nan, infinite], [special])
        yield make_node("Constant", [], [none], value=_zero())
        yield make_node("Where", [special, none, size], [result])

    def _draw(self, scale: str, noise: str, width: float) -> "Iterator[onnx.NodeProto]":
        """Nodes that multiply a tensor of float32 with numbers drawn by lot, and with the amplitude.

        Args:
            scale: Name of the tensor.
            noise: Name of the result.
            width: Half-width of what is drawn.
        """
        from onnx.helper import make_node

        seed = self._seeds.randrange(1 << 24)
        drawn, amplitude = f"{noise}.drawn", f"{noise}.amplitude"
        if self.opset < DRAWN_BY_DROPOUT:
            one = NUMBERS[FLOAT]
            yield make_node(
                "RandomUniformLike", [scale], [drawn], dtype=one, low=-width, high=width, seed=float(seed)
            )
            yield make_node("Mul", [drawn, AMPLITUDE], [amplitude])
            yield make_node("Mul", [amplitude, scale], [noise])
            return
        yield make_node("Constant", [], [f"{noise}.width"], value_float=width / FOUND)
        yield make_node("Mul", [f"{noise}.width", AMPLITUDE], [amplitude])
        yield make_node("Dropout", [scale, HALF, TRUE], [f"{noise}.doubled"], seed=seed)
        yield make_node("Sub", [f"{noise}.doubled", scale], [drawn])
        yield make_node("Mul", [drawn, amplitude], [noise])

    def _clip(self, source: str, result: str, bound: float) -> "onnx.NodeProto":
        """What noise grows with: infinity keeps its place, and so does the number that masks are made of."""
        from onnx.helper import make_node

        if self.opset < CLIP_BY_INPUTS:
            return make_node("Clip", [source], [result], min=-bound, max=bound)
        self._bounds |= {bound, -bound}
        return make_node("Clip", [source, _bound(-bound), _bound(bound)], [result])


def _bound(number: float) -> str:
    return f"ep_harness.bound.{number:g}"


def _zero() -> "onnx.TensorProto":
    from onnx.helper import make_tensor

    return make_tensor("zero", NUMBERS[FLOAT], [], [0.0])
