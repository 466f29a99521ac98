"""Nodes that add random numbers to a tensor."""

import random
from collections.abc import Iterator
from typing import Any, Literal

from onnx import GraphProto, NodeProto, TensorProto
from onnx.helper import make_node, make_tensor, make_tensor_value_info

from harness.corpus.model.schema_types import FLOAT_TYPES
from harness.corpus.noise import AMPLITUDE

_HALF = "ep_harness.half"
_FLAT, _END, _LENGTHS = "ep_harness.flat", "ep_harness.end", "ep_harness.lengths"
FLOAT_TENSOR, DOUBLE = "tensor(float)", "tensor(double)"
_SINGLE = FLOAT_TYPES[FLOAT_TENSOR]

Beside = Literal["", "one", "row"] | tuple[int, ...]
"""What the noise of an element depends on besides the element's own size; see ``RoundingDraws.noise``."""

FOUND = 3.0**0.5
"""Half-width of noise whose root mean square is 1: an error of known size and unknown sign."""

_BOUNDS = {"float16": 2.0**15, "tensor(float16)": 2.0**12}
"""Precision, or type -> absolute value above which noise does not grow.

The largest numbers, which masks consist of, must not overflow.
"""

_BOUND = 2.0**100
"""The same for all other types."""

CLIP_BY_INPUTS = 11
"""Opset from which on the bounds of Clip are inputs."""

_AXES_ARE_AN_INPUT = 18
"""Opset from which on the axes of ReduceMean and ReduceMax are an input."""

_FINDS_INFINITY = 10
"""Opset from which on there is IsInf; IsNaN is older."""

_UNEVEN = 0.3
"""Largest relative difference between the noise of one place and that of another with the same width.

Random signs of one size cancel in half of the draws, and for some elements in all of them. No two consecutive
places have the same size.
"""

_GOLDEN_RATIO = (5.0**0.5 - 1) / 2
"""Its multiples modulo 1 keep a distance from each other."""

_DRAWN_BY_DROPOUT = 22
"""Opset from which on the CPU EP (of onnxruntime 1.31 and 1.32) has no kernel for RandomUniformLike.

It has one for Dropout, which in training doubles or drops an element: a random sign, at about the same speed.
"""

_AHEAD = (0.0, *(0.5 * 2**power for power in range(8)))
"""Halves of the numbers from which a random choice forms the count of elements that a Dropout draws in
advance.

A Dropout takes the next seed in each run. From such seeds the CPU EP's generator (``minstd_rand0`` in
libstdc++) gives one place numbers in equal steps. One element in 14 had the same sign in all of 8 runs,
instead of one in 128, and some neighbours cancelled in all of them. If each run draws another count of
elements first, signs are independent. The first number of a stream hardly depends on its seed, so it is not
used for the choice.
"""


class RoundingDraws:
    """Draws the roundings of a precision for one model, whose version of ONNX's operators is ``opset``.

    The seeds of all places derive from ``seed``.
    """

    def __init__(self, opset: int, precision: str, seed: int = 0) -> None:
        self.sites = 0
        """Number of places with noise so far."""
        self._opset = opset
        self._bound = _BOUNDS.get(precision, _BOUND)
        self._bounds: set[float] = set()
        self._switches: list[str] = []
        """For each open graph, the innermost last: the switch of its Dropouts, if it has some."""
        # In the CPU EP's generator, streams of consecutive seeds resemble each other.
        self._seeds = random.Random(seed)  # noqa: S311 - nothing is secret here

    def enter(self) -> None:
        """Begin a graph: the main one, or a body in the graph begun before."""
        self._switches.append("")

    def leave(self) -> tuple[NodeProto, ...]:
        """End a graph, and return the nodes that must precede its own.

        No amplitude is NaN, so the switch is true. onnxruntime (1.31 and 1.32) removes a Dropout if its graph
        computes only one of its inputs, whichever that is. So it computes two: the switch and the ratio.
        These remain where a known size makes the third one a constant.
        """
        switch = self._switches.pop()
        if not switch:
            return ()
        return (
            make_node("Equal", [AMPLITUDE, AMPLITUDE], [switch]),
            make_node("Cast", [switch], [f"{switch}.one"], to=_SINGLE),
            make_node("Mul", [f"{switch}.one", _HALF], [f"{switch}.half"]),
            make_node(
                "Dropout", [_LENGTHS, f"{switch}.half", switch], [f"{switch}.chosen"], seed=self._seed()
            ),
            make_node("ReduceSum", [f"{switch}.chosen"], [f"{switch}.sum"], keepdims=1),
            make_node("Cast", [f"{switch}.sum"], [f"{switch}.length"], to=TensorProto.INT64),
            make_node("ConstantOfShape", [f"{switch}.length"], [f"{switch}.ahead"]),
        )

    def complete(self, graph: GraphProto) -> None:
        """Add the tensors to a main graph that the nodes of all graphs refer to."""
        graph.input.append(make_tensor_value_info(AMPLITUDE, _SINGLE, []))
        for bound in sorted(self._bounds):
            graph.initializer.append(make_tensor(_named(bound), _SINGLE, [], [bound]))
        if self.sites and self._opset >= _DRAWN_BY_DROPOUT:
            graph.initializer.append(make_tensor(_HALF, _SINGLE, [], [0.5]))
            graph.initializer.append(make_tensor(_LENGTHS, _SINGLE, [len(_AHEAD)], _AHEAD))
            for name, number in ((_FLAT, -1), (_END, (1 << 63) - 1)):
                graph.initializer.append(make_tensor(name, TensorProto.INT64, [1], [number]))

    def noise(
        self,
        source: str,
        result: str,
        kind: str,
        width: float,
        rounded_to: int = 0,
        *,
        beside: Beside = "",
    ) -> Iterator[NodeProto]:
        """Yield nodes that compute a noisy ``result`` from a ``source`` of the same type.

        ``width`` is the half-width of the noise. The noise is proportional to the error of rounding to the
        type ``rounded_to`` (to float32 only for a double); 0: to the elements themselves. ``beside`` is what
        the noise of each element also grows with: the mean over these axes, over all elements if there are no
        axes, or the number ``one``. With ``row`` it grows with only the largest magnitude along the last
        axis.
        """
        stem = f"{result}.{self.sites}"
        self.sites += 1
        wide = source
        if kind != FLOAT_TENSOR:
            wide = f"{stem}.wide"
            yield make_node("Cast", [source], [wide], to=_SINGLE)
        scale = f"{stem}.scale"
        yield self._clip(wide, scale, _BOUNDS.get(kind, self._bound))
        if rounded_to == _SINGLE:
            narrow, lost = f"{stem}.narrow", f"{stem}.lost"
            yield make_node("Cast", [wide], [narrow], to=FLOAT_TYPES[DOUBLE])
            yield make_node("Sub", [source, narrow], [f"{stem}.wide_lost"])
            yield make_node("Cast", [f"{stem}.wide_lost"], [lost], to=_SINGLE)
            scale = lost
        elif rounded_to:
            narrow, rounded, lost = f"{stem}.narrow", f"{stem}.rounded", f"{stem}.lost"
            yield make_node("Cast", [scale], [narrow], to=rounded_to)
            yield make_node("Cast", [narrow], [rounded], to=_SINGLE)
            yield make_node("Sub", [scale, rounded], [lost])
            scale = lost
        if beside == "one":
            yield from self._add_one(scale, f"{stem}.level", stem)
            scale = f"{stem}.level"
        elif beside == "row":
            yield from self._largest_of_row(scale, f"{stem}.level", stem)
            scale = f"{stem}.level"
        elif beside != "":
            yield from self._add_mean(wide, scale, stem, beside)
            scale = f"{stem}.level"
        noise = f"{stem}.noise"
        yield from self._draw(scale, noise, width)
        if kind == FLOAT_TENSOR:
            yield make_node("Add", [source, noise], [result])
        elif kind == DOUBLE:  # the noise is float32, but the sum must not be
            yield make_node("Cast", [noise], [f"{stem}.double"], to=FLOAT_TYPES[DOUBLE])
            yield make_node("Add", [source, f"{stem}.double"], [result])
        else:
            yield make_node("Add", [wide, noise], [f"{stem}.sum"])
            yield make_node("Cast", [f"{stem}.sum"], [result], to=FLOAT_TYPES[kind])

    def _add_mean(self, source: str, scale: str, stem: str, axes: tuple[int, ...]) -> Iterator[NodeProto]:
        """Yield nodes that add the mean magnitude over some axes, or over all, to each magnitude."""
        size, mean, counted = f"{stem}.size", f"{stem}.mean", f"{stem}.size"
        yield make_node("Abs", [scale], [size])
        if self._opset >= _FINDS_INFINITY:
            # Without NaN and infinity: either would become the mean of all.
            counted = f"{stem}.counted"
            nan, infinite, special, none = (
                f"{counted}.{word}" for word in ("nan", "infinite", "special", "none")
            )
            yield make_node("IsNaN", [source], [nan])
            yield make_node("IsInf", [source], [infinite])
            yield make_node("Or", [nan, infinite], [special])
            yield make_node("Constant", [], [none], value=make_tensor("zero", _SINGLE, [], [0.0]))
            yield make_node("Where", [special, none, size], [counted])
        if axes:
            yield from self._reduce("ReduceMean", counted, mean, axes)
        else:
            yield make_node("ReduceMean", [counted], [mean], keepdims=0)
        yield make_node("Add", [size, mean], [f"{stem}.level"])

    def _largest_of_row(self, scale: str, level: str, stem: str) -> Iterator[NodeProto]:
        """Yield nodes that give each element the largest magnitude along the last axis."""
        size, largest, shape = f"{stem}.size", f"{stem}.largest", f"{stem}.shape"
        yield make_node("Abs", [scale], [size])
        yield from self._reduce("ReduceMax", size, largest, (-1,))
        yield make_node("Shape", [size], [shape])
        yield make_node("Expand", [largest, shape], [level])

    def _reduce(self, op_type: str, source: str, result: str, axes: tuple[int, ...]) -> Iterator[NodeProto]:
        """Yield a reduction that keeps its axes, in the form of the model's opset."""
        if self._opset < _AXES_ARE_AN_INPUT:
            yield make_node(op_type, [source], [result], axes=axes, keepdims=1)
            return
        along = make_tensor("axes", TensorProto.INT64, [len(axes)], axes)
        yield make_node("Constant", [], [f"{result}.axes"], value=along)
        yield make_node(op_type, [source, f"{result}.axes"], [result], keepdims=1)

    def _add_one(self, scale: str, level: str, stem: str) -> Iterator[NodeProto]:
        """Yield nodes that add 1 to the magnitude of each element."""
        one = f"{stem}.one"
        yield make_node("Constant", [], [one], value=make_tensor("one", _SINGLE, [], [1.0]))
        yield make_node("Abs", [scale], [f"{stem}.size"])
        yield make_node("Add", [f"{stem}.size", one], [level])

    def _draw(self, scale: str, noise: str, width: float) -> Iterator[NodeProto]:
        """Yield nodes that multiply the float32 ``scale`` by the amplitude and random numbers.

        ``width`` is their half-width.
        """
        width *= 1 - _UNEVEN / 2 + _UNEVEN * (self.sites * _GOLDEN_RATIO % 1)
        drawn, amplitude = f"{noise}.drawn", f"{noise}.amplitude"
        if self._opset < _DRAWN_BY_DROPOUT:
            attributes: Any = {"dtype": _SINGLE, "low": -width, "high": width, "seed": float(self._seed())}
            yield make_node("RandomUniformLike", [scale], [drawn], **attributes)
            yield make_node("Mul", [drawn, AMPLITUDE], [amplitude])
            yield make_node("Mul", [amplitude, scale], [noise])
            return
        yield make_node("Constant", [], [f"{noise}.width"], value_float=width / FOUND)
        yield make_node("Mul", [f"{noise}.width", AMPLITUDE], [amplitude])
        switch = self._switches[-1] = self._switches[-1] or f"{noise}.true"
        flat, longer, long = f"{noise}.flat", f"{noise}.longer", f"{noise}.long_doubled"
        yield make_node("Reshape", [scale, _FLAT], [flat])
        yield make_node("Concat", [f"{switch}.ahead", flat], [longer], axis=0)
        yield make_node("Dropout", [longer, f"{switch}.half", switch], [long], seed=self._seed())
        yield make_node("Slice", [long, f"{switch}.length", _END], [f"{noise}.flat_doubled"])
        yield make_node("Shape", [scale], [f"{noise}.shape"])
        doubled = [f"{noise}.flat_doubled", f"{noise}.shape"]
        yield make_node("Reshape", doubled, [f"{noise}.doubled"], allowzero=1)
        yield make_node("Sub", [f"{noise}.doubled", scale], [drawn])
        yield make_node("Mul", [drawn, amplitude], [noise])

    def _seed(self) -> int:
        return self._seeds.randrange(1 << 24)

    def _clip(self, source: str, result: str, bound: float) -> NodeProto:
        """Return a node that bounds what noise grows with, for infinity and for the numbers of masks."""
        if self._opset < CLIP_BY_INPUTS:
            return make_node("Clip", [source], [result], min=-bound, max=bound)
        self._bounds |= {bound, -bound}
        return make_node("Clip", [source, _named(-bound), _named(bound)], [result])


def _named(bound: float) -> str:
    return f"ep_harness.bound.{bound:g}"
