"""A model in which every rounding is drawn at random: noise after each operator that rounds.

An operator's result ``y`` becomes ``y + s * r * a``. ``r`` is drawn uniformly from ``[-h, h]`` anew in each
run, and ``a`` is a further input of the model. The rounding error is proportional to ``s``: to ``y`` itself
or, at a precision coarser than the type of ``y``, to the error of rounding ``y`` to this precision.
Constants, whole numbers, and sizes stay exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec
import onnx

from harness.core.noise.noise import PRECISIONS
from harness.corpus.model.nodes import all_nodes, bodies, domain_of, number_of, opsets_of, replace_nodes
from harness.corpus.model.schema_types import FLOAT_TYPES, result_types
from harness.corpus.noise.drawing import CLIP_BY_INPUTS, DOUBLE, FLOAT_TENSOR, FOUND, Beside, RoundingDraws
from harness.corpus.noise.even import even_axes
from harness.corpus.noise.exact import SELECTS_FROM, RoundingWatch, divided, selected, watched
from harness.corpus.noise.operator_rounding import (
    BY_BLOCKS,
    COMPOSED,
    CONTROL_INPUTS,
    COPIED,
    DISCONTINUOUS,
    EVEN,
    EXACT_OPERATORS,
    INSIDE,
    MULTIPLIES_BY_WEIGHTS,
    OF_ONE,
    OFFSETS,
    QUANTIZING,
    SUMS,
    THROUGH_ZERO,
    TRANSFORMS,
    UNITS,
)
from harness.corpus.noise.rounding import ACCUMULATED, ROUNDOFF, SUMMED, Rounding, both, inside_of
from harness.corpus.noise.tensors import ReadableTensors, learn_constant, makes_whole, node_size
from harness.corpus.noise.terms import AXES_INPUT, PRODUCTS, PartialDims, terms_of

_NARROW = frozenset(f"tensor({kind})" for kind in ("int2", "uint2", "int4", "uint4", "int8", "uint8"))
"""Types of weights that onnxruntime dequantizes within a product."""

_TO_INT8 = 4
"""The ``accuracy_level`` at which a product may round its other factor to int8."""

_RECIPROCAL = 2.0
"""Half-width of the noise of a quotient, in unit roundoffs, if it may be computed as a product with the
reciprocal."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was added to a model.

    Attributes:
        sites: Places with noise.
        jumps: Whether inputs of operators with jumps carry noise.
        coarse: Whether some noise belongs to a type coarser than float32.
        by_blocks: Number of factors of products with weights of a few bits that have the error allowed to
            them.
    """

    sites: int
    jumps: bool
    coarse: bool
    by_blocks: int


def add_noise(
    model: onnx.ModelProto,
    precision: str,
    *,
    folded: bool = True,
    allowed: Mapping[str, float] = MappingProxyType({}),
    seed: int = 0,
) -> Written:
    """Add noise to a model, in place; ``AMPLITUDE`` becomes a further input.

    Args:
        model: As ``harness.corpus.noise.flat`` returns it.
        precision: A key of ``PRECISIONS`` in ``harness.core.noise.noise``.
        folded: Whether results computed from constants alone are exact, as if they were computed in advance.
        allowed: Operator of ONNX's own domain -> largest error of an element ``y`` as a fraction of ``1 +
            abs(y)``, where that is more than rounding; ``BY_BLOCKS`` -> largest error of an element that is
            multiplied by weights of a few bits, as a fraction of the largest magnitude in its row.
        seed: Seed of the random numbers.
    """
    if not any(domain_of(one) == "" for one in model.opset_import):
        model.opset_import.add(domain="", version=CLIP_BY_INPUTS)
    opsets = opsets_of(model)
    opset = opsets.get("", CLIP_BY_INPUTS)
    drawing = RoundingDraws(opset, precision, seed)
    writer = _Writer(
        rounds=Rounding(precision=precision, opset=opset, drawing=drawing),
        opsets=opsets,
        drawing=drawing,
        allowed=allowed,
        folded=folded,
        finds_exact=opset >= SELECTS_FROM and any(_jumps(node) for node in all_nodes(model.graph.node)),
    )
    writer.graph(model.graph, ReadableTensors(), main=True)
    drawing.complete(model.graph)
    return Written(sites=drawing.sites, jumps=writer.jumps, coarse=writer.coarse, by_blocks=writer.by_blocks)


class _Writer(msgspec.Struct, kw_only=True):
    """One walk over a model, in the order of its nodes, which ONNX keeps topological."""

    rounds: Rounding
    opsets: Mapping[str, int]
    drawing: RoundingDraws
    allowed: Mapping[str, float]
    folded: bool
    finds_exact: bool
    """Return whether operations that round nothing get no noise: at jumps it would break ties.

    At a coarser precision the noise is the rounding error itself, which is 0 where nothing rounds.
    """
    jumps: bool = False
    coarse: bool = False
    by_blocks: int = 0
    narrow: set[str] = msgspec.field(default_factory=set)
    """Weights that were dequantized from a type of a few bits."""

    def graph(
        self, graph: onnx.GraphProto, outside: ReadableTensors, *, main: bool = False
    ) -> Mapping[str, str]:
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
            if scope.varies(port.name) and self.rounds.is_coarse(kind):
                fresh = renamed[port.name] = f"{port.name}.ep_harness.rounded"
                scope.types[fresh] = kind
                scope.noisy.add(fresh)
                nodes += self.rounds.result(port.name, fresh, kind, 1.0, 0.0)
            elif scope.varies(port.name) and kind == DOUBLE:
                # Accelerators without double units read it as float32, which rounds it if it needs more bits.
                fresh = renamed[port.name] = f"{port.name}.ep_harness.rounded"
                scope.types[fresh] = kind
                scope.noisy.add(fresh)
                nodes += self.drawing.noise(port.name, fresh, kind, FOUND, FLOAT_TYPES[FLOAT_TENSOR])
        for node in graph.node:
            for index, name in enumerate(node.input):
                node.input[index] = renamed.get(name, name)
            nodes += self.node(node, scope)
        replace_nodes(graph, [*self.drawing.leave(), *nodes])
        return scope.types

    def node(self, node: onnx.NodeProto, scope: ReadableTensors) -> Iterator[onnx.NodeProto]:
        """Yield the nodes that replace a node."""
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
        exact = node.op_type in EXACT_OPERATORS or node.op_type.startswith("QLinear")
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
        watch = watched(node, exactly, kind, scope) if self.shows_exact(kind) else RoundingWatch()
        yield from watch.before
        yield from self.rounded_factor(node, scope)
        yield from self.operands(node, scope, terms, "" if watch.after else watch.flag)
        for index, name in enumerate(node.output):
            if name in floats:
                node.output[index] = f"{name}.ep_harness.exact"
        yield node
        yield from watch.after
        allowed = 0.0 if domain_of(node) else self.allowed.get(node.op_type, 0.0)
        allowed_one = bool(allowed) and node.op_type not in TRANSFORMS
        for name in floats:
            kind = scope.types[name]
            self.coarse |= ROUNDOFF[kind] > ROUNDOFF[FLOAT_TENSOR]
            noisy = f"{name}.ep_harness.noisy" if watch.flag else name
            yield from self.rounds.result(
                f"{name}.ep_harness.exact",
                noisy,
                kind,
                max(UNITS.get(node.op_type, 1.0), allowed / self.rounds.width(kind)),
                terms,
                beside="one" if allowed_one else self.beside(node, kind, dims, first=name == results[0]),
                inside=inside_of(node),
            )
            if watch.flag:
                yield from selected(watch.flag, noisy, exactly, name, kind)
            scope.noisy.add(name)

    def quantized(self, node: onnx.NodeProto, scope: ReadableTensors) -> Iterator[onnx.NodeProto]:
        """Yield an operator that quantizes, with the rounding of its quotient as noise on the operand.

        An operator that multiplies by the reciprocal rounds twice.
        """
        name = node.input[0]
        kind, operand = scope.types[name], f"{name}.ep_harness.operand.{self.drawing.sites}"
        fine = node.op_type == "QuantizeLinear" and self.shows_exact(kind)
        watch = divided(node, f"{operand}.quotient", kind, scope) if fine else RoundingWatch()
        yield from watch.before
        noisy = f"{operand}.noisy" if watch.flag else operand
        yield from self.drawing.noise(name, noisy, kind, _RECIPROCAL * self.rounds.width(kind))
        if watch.flag:
            yield from selected(watch.flag, noisy, name, operand, kind)
        node.input[0] = operand
        scope.noisy.update(one for one in node.output if one)
        self.jumps = True
        yield node

    def beside(self, node: onnx.NodeProto, kind: str, dims: Sequence[PartialDims], *, first: bool) -> Beside:
        """Return what the uncertainty of a result's elements depends on; for a state, on all of them."""
        if node.op_type in OF_ONE:
            half = ROUNDOFF[kind] > ROUNDOFF[FLOAT_TENSOR]
            return () if half and node.op_type in THROUGH_ZERO else "one"
        if first:
            return even_axes(node, dims)
        return () if node.op_type in COMPOSED and node.op_type in EVEN else ""

    def learn(self, node: onnx.NodeProto, scope: ReadableTensors) -> bool:
        """Rewrite a node's bodies, and record facts about its results. Return whether it has bodies."""
        inner = [self.graph(body, scope) for body in bodies(node)]
        for name, kind in result_types(node, self.opsets, scope.types, inner):
            scope.types[name] = scope.types.get(name) or kind
        dims = [scope.sizes.get(name) for name in node.input]
        for name in node.output[:1]:
            scope.sizes[name] = scope.sizes.get(name) or node_size(node, dims)
        if node.op_type == "Constant":
            learn_constant(node, scope)
        if node.op_type == "DequantizeLinear" and scope.types.get(node.input[0]) in _NARROW:
            self.narrow.update(node.output if node.input[0] in scope.constant else ())
        if makes_whole(node, scope):
            scope.whole.update(name for name in node.output if name)
        return bool(inner)

    def rounded_factor(self, node: onnx.NodeProto, scope: ReadableTensors) -> Iterator[onnx.NodeProto]:
        """Yield the error allowed to the factor that is multiplied by weights of a few bits."""
        width, name = self.allowed.get(BY_BLOCKS, 0.0), node.input[0]
        if node.op_type == BY_BLOCKS:
            rounds = number_of(node, "accuracy_level", 0) == _TO_INT8
        else:
            rounds = node.op_type in MULTIPLIES_BY_WEIGHTS and node.input[1] in self.narrow
        if not (width and rounds and scope.varies(name)):
            return
        rounded = node.input[0] = f"{name}.ep_harness.operand.{self.drawing.sites}"
        scope.types[rounded] = scope.types[name]
        scope.noisy.add(rounded)
        self.by_blocks += 1
        yield from self.drawing.noise(name, rounded, scope.types[name], width, beside="row")

    def operands(
        self, node: onnx.NodeProto, scope: ReadableTensors, terms: float, flag: str
    ) -> Iterator[onnx.NodeProto]:
        """Yield noise on operands: for the sum over them, and for roundings inside.

        ``flag`` is the name of a tensor that says whether there is any; empty if there always is.
        """
        for index, width in self.widths(node, scope, terms):
            name = node.input[index]
            node.input[index] = f"{name}.ep_harness.operand.{self.drawing.sites}"
            noisy = f"{node.input[index]}.noisy" if flag else node.input[index]
            yield from self.drawing.noise(name, noisy, scope.types[name], width)
            if flag:
                yield from selected(flag, noisy, name, node.input[index], scope.types[name])

    def widths(self, node: onnx.NodeProto, scope: ReadableTensors, terms: float) -> list[tuple[int, float]]:
        """Return which operands get noise, and its half-width: mostly the first one that varies.

        A rounding inside an operator (a mean before it is subtracted, an argument that is reduced) counts as
        a rounding of its operand, unless that was rounded just before. Partial sums may begin with the addend
        of a product, or with any operand of a plain sum. At coarser precisions noise on one factor of a
        product stands for the rounding of the other one, the weights.
        """
        control = CONTROL_INPUTS.get(node.op_type, ())
        varied = [
            index for index, name in enumerate(node.input) if scope.varies(name) and index not in control
        ]
        found = []
        for index in varied if node.op_type in SUMS else varied[:1]:
            name, kind = node.input[index], scope.types[node.input[index]]
            if self.rounds.is_coarse(kind):
                width = self.rounds.width(kind) if node.op_type in PRODUCTS else 0.0
            else:
                inside = node.op_type in INSIDE and name not in scope.noisy
                width = both(
                    inside * self.rounds.width(kind), ACCUMULATED * ROUNDOFF[FLOAT_TENSOR] * terms**0.5
                )
            if width:
                found.append((index, width))
        offset = OFFSETS.get(node.op_type, len(node.input))
        if found and offset < len(node.input) and offset != found[0][0]:
            kind = scope.types.get(node.input[offset], "")
            if kind in FLOAT_TYPES and not self.rounds.is_coarse(kind):
                found.append((offset, SUMMED * ROUNDOFF[FLOAT_TENSOR] * terms**0.5))
        return found

    def is_angle(self, node: onnx.NodeProto, scope: ReadableTensors, terms: float) -> bool:
        """Return whether a node multiplies exact numbers, and only circular functions read the products.

        Every implementation rounds a product to nearest, so all have the same result. They differ in what
        they fuse with the product, and nothing can be fused into the argument of a sine. Noise on an angle of
        1,000, as in the embedding of a time or a position, would hide everything else.
        """
        return (
            node.op_type in {"Mul", "MatMul"}
            and terms <= 1
            and not scope.noisy.intersection(node.input)
            and not scope.not_angles.intersection(node.output)
            and not self.rounds.is_coarse(scope.types[node.output[0]])
        )

    def shows_exact(self, kind: str) -> bool:
        """Return whether detecting exact operations on this type is requested and possible."""
        finest = max(ROUNDOFF[kind], ROUNDOFF[FLOAT_TENSOR])  # float64 is treated as float32
        return self.finds_exact and PRECISIONS[self.rounds.precision] <= finest


def _jumps(node: onnx.NodeProto) -> bool:
    if node.op_type in {"Cast", "CastLike"}:
        return number_of(node, "to", FLOAT_TYPES[FLOAT_TENSOR]) not in FLOAT_TYPES.values()
    return node.op_type in DISCONTINUOUS or node.op_type.startswith("QLinear")
