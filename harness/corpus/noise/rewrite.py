"""A model in which every rounding is drawn at random: noise after each operator that rounds.

An operator's result ``y`` becomes ``y + s * r * a``: ``r`` is drawn uniformly from ``[-h, h]`` anew in each
run, ``a`` is a further input of the model, and the rounding error is proportional to ``s``: to ``y`` itself
or, at a precision coarser than the type of ``y``, to the error of rounding ``y`` to it. Constants, whole
numbers, and sizes stay exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec
import onnx

from harness.core.noise import PRECISIONS
from harness.core.tolerance import UNIT_ROUNDOFF
from harness.corpus.element_types import ELEMENT_TYPES
from harness.corpus.nodes import all_nodes, bodies, domain_of, number_of, opsets_of, replace_nodes
from harness.corpus.noise import BFLOAT16_CASTS
from harness.corpus.noise.drawing import CLIP_BY_INPUTS, DOUBLE, FLOAT, FOUND, Beside, Drawing
from harness.corpus.noise.even import even_axes
from harness.corpus.noise.exact import SELECTS_FROM, Watch, divided, selected, watched
from harness.corpus.noise.operators import (
    COMPOSED,
    CONTROL_INPUTS,
    COPIED,
    DISCONTINUOUS,
    EVEN,
    EXACT,
    INSIDE,
    OF_ONE,
    OFFSETS,
    QUANTIZING,
    STEPWISE,
    SUMS,
    TRANSFORMS,
    UNITS,
)
from harness.corpus.noise.tensors import Scope, learn_constant, makes_whole, size_of
from harness.corpus.noise.terms import AXES_INPUT, PRODUCTS, Dims, terms_of
from harness.corpus.schema_types import FLOATS, result_types

_ROUNDOFF = {kind: UNIT_ROUNDOFF[ELEMENT_TYPES[number]] for kind, number in FLOATS.items()}
"""Types that operators compute in -> unit roundoff."""

_CASTS = {"float16": 10, "bfloat16": 16}
"""Precisions that a Cast rounds to -> ``TensorProto.DataType``."""

_ACCUMULATED, _SUMMED = 0.5, 0.42
"""Half-widths of the noise of a sum of n terms, in ``sqrt(n)`` unit roundoffs: on its terms, and on the sum.

A sum that grows term by term rounds each partial sum. With rounding errors of zero mean and a root mean
square of 0.42 unit roundoffs (uniform within half a unit in the last place, the significand spread
logarithmically), terms of variance ``s^2`` and mean ``m`` leave an error of variance
``0.42^2 u^2 n^2 (s^2 / 2 + n m^2 / 3)``. Noise of half-width ``h`` has a root mean square of ``h / sqrt(3)``:
the first addend is noise on each term of ``0.42 sqrt(3 n / 2) u``, the second is noise on the sum of
``0.42 sqrt(n) u``. GPUs, which add up in this order, show just this from 64 to 4096 terms.
"""

_RECIPROCAL = 2.0
"""Half-width of the noise of a quotient, in unit roundoffs, if it may be a product by the reciprocal."""

_COARSE_UNITS = 2.0
"""Upper limit of an operator's own error at a coarser precision: operators compute in a finer one."""


Inside = Literal["", "composed", "steps"]
"""How an operator may round inside at a coarser precision; see ``COMPOSED`` and ``STEPWISE``."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was put into a model.

    Attributes:
        sites: Places with noise.
        jumps: Whether inputs of operators with jumps carry noise.
        coarse: Whether some noise is that of a type coarser than float32.
    """

    sites: int
    jumps: bool
    coarse: bool


def add_noise(
    model: onnx.ModelProto,
    precision: str,
    *,
    folded: bool = True,
    allowed: Mapping[str, float] = MappingProxyType({}),
    seed: int = 0,
) -> Written:
    """Put noise into a model, in place; ``AMPLITUDE`` becomes a further input.

    Args:
        model: As ``harness.corpus.noise.flat`` returns it.
        precision: A key of ``PRECISIONS`` in ``harness.core.noise``.
        folded: Whether results of constants alone are exact, as if they had been computed before.
        allowed: Operator of ONNX's own domain -> largest error of an element ``y`` as a part of
            ``1 + abs(y)``, where that is more than rounding.
        seed: Of the random numbers.
    """
    if not any(domain_of(one) == "" for one in model.opset_import):
        model.opset_import.add(domain="", version=CLIP_BY_INPUTS)
    opsets = opsets_of(model)
    drawing = Drawing(opsets.get("", CLIP_BY_INPUTS), precision, seed)
    writer = _Writer(
        precision=precision,
        opsets=opsets,
        drawing=drawing,
        allowed=allowed,
        folded=folded,
        finds_exact=opsets.get("", CLIP_BY_INPUTS) >= SELECTS_FROM
        and any(_jumps(node) for node in all_nodes(model.graph.node)),
    )
    writer.graph(model.graph, Scope(), main=True)
    drawing.complete(model.graph)
    return Written(sites=drawing.sites, jumps=writer.jumps, coarse=writer.coarse)


class _Writer(msgspec.Struct, kw_only=True):
    """One walk over a model, in the order of its nodes, which ONNX keeps topological."""

    precision: str
    opsets: Mapping[str, int]
    drawing: Drawing
    allowed: Mapping[str, float]
    folded: bool
    finds_exact: bool
    """Whether operations that round nothing get no noise: where results jump it would move ties.

    At a coarser precision the noise, which is the error of rounding itself, shows where there is none.
    """
    jumps: bool = False
    coarse: bool = False

    def graph(self, graph: onnx.GraphProto, outside: Scope, *, main: bool = False) -> Mapping[str, str]:
        """Rewrite one graph, and return the types of its tensors."""
        scope = outside.within(graph)
        self.drawing.enter()
        nodes: list[onnx.NodeProto] = []
        renamed: dict[str, str] = {}
        if not main:
            # The state of a loop is noisy from the second iteration on.
            scope.noisy.update(port.name for port in graph.input)
        for port in graph.input if main else ():
            kind = scope.types[port.name]
            if scope.varies(port.name) and self.is_coarse(kind):
                fresh = renamed[port.name] = f"{port.name}.ep_harness.rounded"
                scope.types[fresh] = kind
                scope.noisy.add(fresh)
                nodes += self.rounding(port.name, fresh, kind, 1.0, 0.0)
            elif scope.varies(port.name) and kind == DOUBLE:
                # Accelerators without double units read it as float32, which rounds it if it needs more bits.
                fresh = renamed[port.name] = f"{port.name}.ep_harness.rounded"
                scope.types[fresh] = kind
                scope.noisy.add(fresh)
                nodes += self.drawing.noise(port.name, fresh, kind, FOUND, FLOATS[FLOAT])
        for node in graph.node:
            for index, name in enumerate(node.input):
                node.input[index] = renamed.get(name, name)
            nodes += self.node(node, scope)
        replace_nodes(graph, [*self.drawing.leave(), *nodes])
        return scope.types

    def node(self, node: onnx.NodeProto, scope: Scope) -> Iterator[onnx.NodeProto]:
        """Yield what replaces a node."""
        dims = [scope.sizes.get(name) for name in node.input]
        inner = self.learn(node, scope)
        fed = {name for name in node.input if name}
        results = [name for name in node.output if name]
        if self.folded and not inner and fed <= scope.constant:
            scope.constant.update(results)
        self.jumps |= _jumps(node) and any(scope.is_float(name) for name in fed & scope.noisy)
        if inner or fed & scope.noisy:
            scope.noisy.update(results)
        copied = {node.output[index] for index in COPIED.get(node.op_type, ()) if index < len(node.output)}
        floats = [
            name for name in results if scope.varies(name) and name not in scope.whole and name not in copied
        ]
        if node.op_type in QUANTIZING and not inner and scope.varies(node.input[0]):
            yield from self.quantized(node, scope)
            return
        exact = node.op_type in EXACT or node.op_type.startswith("QLinear")
        if inner or exact or not floats:
            yield node
            return
        at = AXES_INPUT.get(node.op_type, len(node.input))
        axes = scope.axes.get(node.input[at], ()) if at < len(node.input) else ()
        terms = terms_of(node, dims, self.opsets.get("", CLIP_BY_INPUTS), axes)
        if self.is_angle(node, scope, terms):
            yield node
            return
        exactly = f"{floats[0]}.ep_harness.exact"
        kind = scope.types[floats[0]]
        watch = watched(node, exactly, kind, scope) if self.shows_exact(kind) else Watch()
        yield from watch.before
        yield from self.operands(node, scope, terms, "" if watch.after else watch.flag)
        for index, name in enumerate(node.output):
            if name in floats:
                node.output[index] = f"{name}.ep_harness.exact"
        yield node
        yield from watch.after
        allowed = 0.0 if domain_of(node) else self.allowed.get(node.op_type, 0.0)
        of_one = (allowed and node.op_type not in TRANSFORMS) or node.op_type in OF_ONE
        for name in floats:
            kind = scope.types[name]
            self.coarse |= _ROUNDOFF[kind] > _ROUNDOFF[FLOAT]
            noisy = f"{name}.ep_harness.noisy" if watch.flag else name
            yield from self.rounding(
                f"{name}.ep_harness.exact",
                noisy,
                kind,
                max(UNITS.get(node.op_type, 1.0), allowed / self.width(kind)),
                terms,
                beside="one" if of_one else self.even(node, dims, first=name == results[0]),
                inside=_inside(node),
            )
            if watch.flag:
                yield from selected(watch.flag, noisy, exactly, name, kind)
            scope.noisy.add(name)

    def quantized(self, node: onnx.NodeProto, scope: Scope) -> Iterator[onnx.NodeProto]:
        """Yield an operator that quantizes, with the rounding of its quotient as noise on the operand.

        One that multiplies by the reciprocal rounds twice.
        """
        name = node.input[0]
        kind, operand = scope.types[name], f"{name}.ep_harness.operand.{self.drawing.sites}"
        fine = node.op_type == "QuantizeLinear" and self.shows_exact(kind)
        watch = divided(node, f"{operand}.quotient", kind, scope) if fine else Watch()
        yield from watch.before
        noisy = f"{operand}.noisy" if watch.flag else operand
        yield from self.drawing.noise(name, noisy, kind, _RECIPROCAL * self.width(kind))
        if watch.flag:
            yield from selected(watch.flag, noisy, name, operand, kind)
        node.input[0] = operand
        scope.noisy.update(one for one in node.output if one)
        self.jumps = True
        yield node

    def even(self, node: onnx.NodeProto, dims: Sequence[Dims], *, first: bool) -> Beside:
        """Return which elements of a result are as uncertain as each other; of a state all are."""
        if first:
            return even_axes(node, dims)
        return () if node.op_type in COMPOSED & EVEN else ""

    def learn(self, node: onnx.NodeProto, scope: Scope) -> bool:
        """Rewrite a node's bodies, and note what its results are. Return whether it has bodies."""
        inner = [self.graph(body, scope) for body in bodies(node)]
        for name, kind in result_types(node, self.opsets, scope.types, inner):
            scope.types[name] = scope.types.get(name) or kind
        dims = [scope.sizes.get(name) for name in node.input]
        for name in node.output[:1]:
            scope.sizes[name] = scope.sizes.get(name) or size_of(node, dims)
        if node.op_type == "Constant":
            learn_constant(node, scope)
        if makes_whole(node, scope):
            scope.whole.update(name for name in node.output if name)
        return bool(inner)

    def operands(
        self, node: onnx.NodeProto, scope: Scope, terms: float, flag: str
    ) -> Iterator[onnx.NodeProto]:
        """Yield noise on operands: for the sum over them, and for roundings inside.

        ``flag`` is the name of what says whether there is any; empty if there is.
        """
        for index, width in self.widths(node, scope, terms):
            name = node.input[index]
            node.input[index] = f"{name}.ep_harness.operand.{self.drawing.sites}"
            noisy = f"{node.input[index]}.noisy" if flag else node.input[index]
            yield from self.drawing.noise(name, noisy, scope.types[name], width)
            if flag:
                yield from selected(flag, noisy, name, node.input[index], scope.types[name])

    def widths(self, node: onnx.NodeProto, scope: Scope, terms: float) -> list[tuple[int, float]]:
        """Return which operands get noise, and its half-width: mostly the first one that varies.

        What an operator rounds inside (a mean before it is subtracted, an argument that is reduced) counts as
        a rounding of its operand, unless that has just been rounded. Partial sums may begin with what is
        added to a product, or with any operand of a plain sum. At coarser precisions noise on one factor of a
        product stands for the rounding of the other, the weights.
        """
        control = CONTROL_INPUTS.get(node.op_type, frozenset())
        varied = [
            index for index, name in enumerate(node.input) if scope.varies(name) and index not in control
        ]
        found = []
        for index in varied if node.op_type in SUMS else varied[:1]:
            name, kind = node.input[index], scope.types[node.input[index]]
            if self.is_coarse(kind):
                width = self.width(kind) if node.op_type in PRODUCTS else 0.0
            else:
                inside = node.op_type in INSIDE and name not in scope.noisy
                width = _both(inside * self.width(kind), _ACCUMULATED * _ROUNDOFF[FLOAT] * terms**0.5)
            if width:
                found.append((index, width))
        offset = OFFSETS.get(node.op_type, len(node.input))
        if found and offset < len(node.input) and offset != found[0][0]:
            kind = scope.types.get(node.input[offset], "")
            if kind in FLOATS and not self.is_coarse(kind):
                found.append((offset, _SUMMED * _ROUNDOFF[FLOAT] * terms**0.5))
        return found

    def rounding(
        self,
        source: str,
        result: str,
        kind: str,
        units: float,
        terms: float,
        *,
        beside: Beside = "",
        inside: Inside = "",
    ) -> Iterator[onnx.NodeProto]:
        """Yield the noise that turns the exact ``source`` into the ``result`` that an operator rounds.

        ``units`` is the operator's own error in unit roundoffs, ``terms`` how many terms have been added up,
        ``beside`` what is as uncertain as the elements: see ``Drawing.noise``. An operator that rounds
        ``inside`` may do so although the result needs no rounding: at a coarser precision, too, the noise of
        a composed one is in proportion to the result, and one of several steps has both. In proportion it is
        also where ONNX has no Cast that would show the error of rounding.
        """
        if self.is_coarse(kind) and (inside == "composed" or not self.casts):
            yield from self.drawing.noise(source, result, kind, min(units, _COARSE_UNITS) * self.width(kind))
        elif self.is_coarse(kind):
            if inside:
                stepped, level = f"{result}.ep_harness.steps", "" if beside == "one" else beside
                yield from self.drawing.noise(source, stepped, kind, self.width(kind), beside=level)
                source = stepped
            width = FOUND * min(units, _COARSE_UNITS)
            yield from self.drawing.noise(source, result, kind, width, _CASTS[self.precision])
        else:
            width = _both(units * self.width(kind), _SUMMED * _ROUNDOFF[FLOAT] * terms**0.5)
            yield from self.drawing.noise(source, result, kind, width, beside=beside)

    def is_angle(self, node: onnx.NodeProto, scope: Scope, terms: float) -> bool:
        """Return whether a node multiplies exact numbers, and only circular functions read the products.

        Every implementation rounds a product to nearest, so all have the same one. They differ in what they
        fuse it with, and nothing can be fused into the argument of a sine. Noise on an angle of 1,000, as in
        the embedding of a time or a position, would hide all else.
        """
        return (
            node.op_type in {"Mul", "MatMul"}
            and terms <= 1
            and not scope.noisy.intersection(node.input)
            and not scope.not_angles.intersection(node.output)
            and not self.is_coarse(scope.types[node.output[0]])
        )

    def shows_exact(self, kind: str) -> bool:
        """Return whether it is asked, and known, where an operation on this type rounds."""
        finest = max(_ROUNDOFF[kind], _ROUNDOFF[FLOAT])  # float64 is held to float32
        return self.finds_exact and PRECISIONS[self.precision] <= finest

    @property
    def casts(self) -> bool:
        """Whether a Cast of the model's opset rounds to the precision; none rounds to TF32."""
        if self.precision not in _CASTS:
            return False
        return self.precision != "bfloat16" or self.opsets.get("", BFLOAT16_CASTS) >= BFLOAT16_CASTS

    def is_coarse(self, kind: str) -> bool:
        """Return whether a tensor of this type loses bits when it is rounded to the precision."""
        return PRECISIONS[self.precision] > _ROUNDOFF[FLOAT] and kind in {FLOAT, DOUBLE}

    def width(self, kind: str) -> float:
        """Return the half-width of a rounding's noise; a type below the precision rounds like itself."""
        unit = PRECISIONS[self.precision]
        return unit if kind == DOUBLE else max(unit, _ROUNDOFF[kind])


def _inside(node: onnx.NodeProto) -> Inside:
    if node.op_type in COMPOSED:
        return "composed"
    return "steps" if node.op_type in STEPWISE else ""


def _both(left: float, right: float) -> float:
    """Return the half-width of the sum of two independent noises."""
    return float((left**2 + right**2) ** 0.5)


def _jumps(node: onnx.NodeProto) -> bool:
    if node.op_type in {"Cast", "CastLike"}:
        return number_of(node, "to", FLOATS[FLOAT]) not in FLOATS.values()
    return node.op_type in DISCONTINUOUS or node.op_type.startswith("QLinear")
