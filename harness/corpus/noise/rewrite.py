"""A model in which every rounding is drawn by lot: noise after each operator that rounds.

An operator's result ``y`` becomes ``y + s * r * a``: ``r`` is drawn uniformly from ``[-h, h]`` anew in each
run, ``a`` is a further input of the model, and ``s`` is what the rounding error is in proportion to: ``y``
itself or, at a precision coarser than the type of ``y``, the error of rounding ``y`` to it. What is constant,
a whole number, or says how large something is, stays exact.
"""

import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.noise.operators import (
    CLOSED,
    CONTROL_INPUTS,
    DISCONTINUOUS,
    EVEN,
    EXACT,
    INSIDE,
    UNITS,
)
from harness.corpus.noise.tensor_types import (
    COMPUTED,
    NUMBERS,
    declared_sizes,
    declared_types,
    result_types,
)
from harness.corpus.noise.terms import PRODUCTS, Dims, terms_of
from harness.corpus.noise.whole import is_whole
from harness.corpus.schema_types import bodies, domain_of

if TYPE_CHECKING:
    import onnx

UNIT_ROUNDOFF: dict[str, float] = {
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
"""Precision -> largest relative error of one rounding."""

CASTS = {"float16": 10, "bfloat16": 16}
"""Precisions that a Cast rounds to -> ``TensorProto.DataType``."""

FOUND = 3.0**0.5
"""Half-width of noise whose root mean square is 1: an error that is known but for its sign."""

ACCUMULATED, SUMMED = 0.5, 0.42
"""Half-widths of the noise of a sum of n terms, in ``sqrt(n)`` unit roundoffs: on its terms, and on the sum.

A sum that grows term by term rounds each partial sum. With rounding errors of zero mean and a root mean
square of 0.42 unit roundoffs (uniform within half a unit in the last place, the significand spread
logarithmically), terms of variance ``s^2`` and mean ``m`` leave an error of variance
``0.42^2 u^2 n^2 (s^2 / 2 + n m^2 / 3)``. Noise of half-width ``h`` has a root mean square of ``h / sqrt(3)``:
the first addend is noise on each term of ``0.42 sqrt(3 n / 2) u``, the second is noise on the sum of
``0.42 sqrt(n) u``. GPUs, which add up in this order, show just this from 64 to 4096 terms.
"""

COARSE_UNITS = 2.0
"""Most that an operator's own error counts at a coarser precision, where it is computed in a finer one."""

BOUNDS = {"float16": 2.0**15, "tensor(float16)": 2.0**12}
"""Precision, or type -> absolute value from which on noise does not grow any more.

The largest numbers, which masks are made of, must not overflow.
"""

BOUND = 2.0**100
"""The same for all others."""

CLIP_BY_INPUTS = 11
"""Opset from which on the bounds of Clip are inputs."""

BFLOAT16_CASTS = 13
"""Opset from which on Cast knows bfloat16."""

DRAWN_BY_DROPOUT = 22
"""Opset from which on the CPU EP (of onnxruntime 1.31) has no kernel for RandomUniformLike.

It has one for Dropout, which in training doubles an element or drops it: a sign by lot, three times as slow.
"""

AMPLITUDE = "ep_harness.noise_amplitude"
HALF, TRUE = "ep_harness.half", "ep_harness.true"
FLOAT, DOUBLE = "tensor(float)", "tensor(double)"
SIZES = frozenset({"Shape", "Size"})


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was put into a model.

    Attributes:
        sites: Places with noise.
        jumps: Operators with jumps whose inputs carry noise.
    """

    sites: int
    jumps: frozenset[str]


def add_noise(model: "onnx.ModelProto", precision: str, *, folded: bool = True) -> Written:
    """Put noise into a model in place; it has ``AMPLITUDE``, a float32 scalar, as a further input then.

    Args:
        model: One without functions of its own.
        precision: A key of ``UNIT_ROUNDOFF``.
        folded: Whether what is computed of constants alone is exact, as if it had been computed before.
    """
    import onnx

    if not any(domain_of(one) == "" for one in model.opset_import):
        model.opset_import.add(domain="", version=CLIP_BY_INPUTS)
    opsets = {domain_of(one): one.version for one in model.opset_import}
    writer = _Writer(precision, opsets, folded=folded)
    writer.graph(model.graph, _Scope(), main=True)
    single = NUMBERS[FLOAT]
    for bound in sorted(writer.bounds):
        model.graph.initializer.append(onnx.helper.make_tensor(_bound(bound), single, [], [bound]))
    if writer.sites and opsets[""] >= DRAWN_BY_DROPOUT:
        model.graph.initializer.append(onnx.helper.make_tensor(HALF, single, [], [0.5]))
        # A constant here would have the Dropout optimized away. No amplitude is NaN.
        model.graph.node.insert(0, onnx.helper.make_node("Equal", [AMPLITUDE, AMPLITUDE], [TRUE]))
    model.graph.input.append(onnx.helper.make_tensor_value_info(AMPLITUDE, NUMBERS[FLOAT], []))
    return Written(sites=writer.sites, jumps=frozenset(writer.jumps))


class _Scope:
    """What is known of the tensors that a node may read."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.sizes: dict[str, Dims] = {}
        self.constant: set[str] = set()
        """Weights, and what is computed of these alone: before the model runs."""
        self.held: set[str] = set()
        """What says how large something is."""
        self.whole: set[str] = set()
        """Floats that are whole numbers, and small."""
        self.noisy: set[str] = set()
        """What carries noise."""

    def within(self, graph: "onnx.GraphProto") -> "_Scope":
        """The scope of a graph that sees this one."""
        inner = _Scope()
        inner.types = self.types | declared_types(graph)
        inner.sizes = self.sizes | declared_sizes(graph)
        inner.constant = self.constant | {weight.name for weight in graph.initializer}
        inner.constant |= {sparse.values.name for sparse in graph.sparse_initializer}
        inner.held = self.held | _held(graph)
        inner.whole = self.whole | {weight.name for weight in graph.initializer if is_whole(weight)}
        inner.noisy = set(self.noisy)
        return inner

    def is_float(self, name: str) -> bool:
        """Whether operators compute in what it is."""
        return self.types.get(name) in COMPUTED

    def varies(self, name: str) -> bool:
        """Whether it is a float that may carry noise."""
        return self.is_float(name) and name not in self.constant and name not in self.held


class _Writer:
    """One walk over a model, in the order of its nodes, which ONNX keeps topological."""

    def __init__(self, precision: str, opsets: Mapping[str, int], *, folded: bool) -> None:
        self.precision = precision
        self.folded = folded
        self.opsets = opsets
        self.sites = 0
        self.jumps: set[str] = set()
        self.bounds: set[float] = set()
        # Streams of seeds in a row resemble each other in the generator of the CPU EP.
        self.seeds = random.Random(0)  # noqa: S311 - nothing is secret here

    def graph(self, graph: "onnx.GraphProto", outside: _Scope, *, main: bool = False) -> Mapping[str, str]:
        """Rewrite one graph; the types of its tensors."""
        scope = outside.within(graph)
        nodes: list[onnx.NodeProto] = []
        renamed: dict[str, str] = {}
        if not main:
            # What a loop carries is noisy from the second iteration on.
            scope.noisy.update(port.name for port in graph.input)
        for port in graph.input if main else ():
            kind = scope.types[port.name]
            if scope.varies(port.name) and self.is_coarse(kind):
                fresh = renamed[port.name] = f"{port.name}.ep_harness.rounded"
                scope.types[fresh] = kind
                scope.noisy.add(fresh)
                nodes += self.rounding(port.name, fresh, kind, 1.0, 0.0)
        for node in graph.node:
            for index, name in enumerate(node.input):
                node.input[index] = renamed.get(name, name)
            nodes += self.node(node, scope)
        del graph.node[:]
        graph.node.extend(nodes)
        return scope.types

    def node(self, node: "onnx.NodeProto", scope: _Scope) -> "Iterator[onnx.NodeProto]":
        """What stands in a node's place."""
        inner = [self.graph(body, scope) for body in bodies(node)]
        for name, kind in result_types(node, self.opsets, scope.types, inner):
            scope.types[name] = scope.types.get(name) or kind
        fed = {name for name in node.input if name}
        results = [name for name in node.output if name]
        if _makes_whole(node, scope):
            scope.whole.update(results)
        if self.folded and not inner and fed <= scope.constant:
            scope.constant.update(results)
        if _jumps(node) and any(scope.is_float(name) for name in fed & scope.noisy):
            self.jumps.add(node.op_type)
        if inner or fed & scope.noisy:
            scope.noisy.update(results)
        floats = [name for name in results if scope.varies(name) and name not in scope.whole]
        if inner or _is_exact(node) or not floats:
            yield node
            return
        terms = terms_of(node, [scope.sizes.get(name) for name in node.input])
        yield from self.operand(node, scope, terms)
        for index, name in enumerate(node.output):
            if name in floats:
                node.output[index] = f"{name}.ep_harness.exact"
        yield node
        for name in floats:
            yield from self.rounding(
                f"{name}.ep_harness.exact",
                name,
                scope.types[name],
                UNITS.get(node.op_type, 1.0),
                terms,
                even=node.op_type in EVEN,
            )
            scope.noisy.add(name)

    def operand(self, node: "onnx.NodeProto", scope: _Scope, terms: float) -> "Iterator[onnx.NodeProto]":
        """Noise on the first operand that varies: of the sum that is made of it, and of roundings within.

        What an operator rounds inside (a mean before it is subtracted, an argument that is reduced) counts as
        a rounding of its operand; where that has just been rounded, once is enough. At coarser precisions
        noise on one factor of a product stands for the rounding of the other, which are the weights.
        """
        control = CONTROL_INPUTS.get(node.op_type, frozenset())
        for index, name in enumerate(node.input):
            if not scope.varies(name) or index in control:
                continue
            kind = scope.types[name]
            if self.is_coarse(kind):
                width = self.width(kind) if node.op_type in PRODUCTS else 0.0
            else:
                inside = node.op_type in INSIDE and name not in scope.noisy
                width = _both(inside * self.width(kind), ACCUMULATED * COMPUTED[FLOAT] * terms**0.5)
            if width:
                node.input[index] = f"{name}.ep_harness.operand.{self.sites}"
                yield from self.noise(name, node.input[index], kind, width)
            return

    def rounding(
        self, source: str, result: str, kind: str, units: float, terms: float, *, even: bool = False
    ) -> "Iterator[onnx.NodeProto]":
        """Noise of a result that an operator rounds.

        Args:
            source: Name of the exact result.
            result: Name of the noisy one.
            kind: Type of both.
            units: Unit roundoffs that the operator's own error may have.
            terms: How many terms have been added up.
            even: Whether small elements of the result err like large ones.
        """
        if self.is_coarse(kind):
            width = FOUND * min(units, COARSE_UNITS)
            yield from self.noise(source, result, kind, width, CASTS[self.precision])
        else:
            width = _both(units * self.width(kind), SUMMED * COMPUTED[FLOAT] * terms**0.5)
            yield from self.noise(source, result, kind, width, even=even)

    def is_coarse(self, kind: str) -> bool:
        """Whether a tensor of this type loses bits when it is rounded to the precision."""
        return self.precision in CASTS and kind in {FLOAT, DOUBLE}

    def width(self, kind: str) -> float:
        """Half-width of the noise of one rounding; a type narrower than the precision rounds like itself."""
        unit = UNIT_ROUNDOFF[self.precision]
        return unit if kind == DOUBLE else max(unit, COMPUTED[kind])

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
        yield self.clip(wide, scale, BOUNDS.get(kind) or BOUNDS.get(self.precision, BOUND))
        if rounded_to:
            narrow, rounded, lost = f"{stem}.narrow", f"{stem}.rounded", f"{stem}.lost"
            yield make_node("Cast", [scale], [narrow], to=rounded_to)
            yield make_node("Cast", [narrow], [rounded], to=single)
            yield make_node("Sub", [scale, rounded], [lost])
            scale = lost
        if even:
            size, mean, level = f"{stem}.size", f"{stem}.mean", f"{stem}.level"
            yield make_node("Abs", [scale], [size])
            yield make_node("ReduceMean", [size], [mean], keepdims=0)
            yield make_node("Add", [size, mean], [level])
            scale = level
        noise = f"{stem}.noise"
        yield from self.draw(scale, noise, width)
        if kind == FLOAT:
            yield make_node("Add", [source, noise], [result])
        elif kind == DOUBLE:  # the noise is float32, the sum must not be
            yield make_node("Cast", [noise], [f"{stem}.double"], to=NUMBERS[DOUBLE])
            yield make_node("Add", [source, f"{stem}.double"], [result])
        else:
            yield make_node("Add", [wide, noise], [f"{stem}.sum"])
            yield make_node("Cast", [f"{stem}.sum"], [result], to=NUMBERS[kind])

    def draw(self, scale: str, noise: str, width: float) -> "Iterator[onnx.NodeProto]":
        """Nodes that multiply a tensor of float32 with numbers drawn by lot, and with the amplitude.

        Args:
            scale: Name of the tensor.
            noise: Name of the result.
            width: Half-width of what is drawn.
        """
        from onnx.helper import make_node

        seed = self.seeds.randrange(1 << 24)
        drawn, amplitude = f"{noise}.drawn", f"{noise}.amplitude"
        if self.opsets.get("", 1) < DRAWN_BY_DROPOUT:
            uniform = {"dtype": NUMBERS[FLOAT], "low": -width, "high": width, "seed": float(seed)}
            yield make_node("RandomUniformLike", [scale], [drawn], **uniform)
            yield make_node("Mul", [drawn, AMPLITUDE], [amplitude])
            yield make_node("Mul", [amplitude, scale], [noise])
            return
        yield make_node("Constant", [], [f"{noise}.width"], value_float=width / FOUND)
        yield make_node("Mul", [f"{noise}.width", AMPLITUDE], [amplitude])
        yield make_node("Dropout", [scale, HALF, TRUE], [f"{noise}.doubled"], seed=seed)
        yield make_node("Sub", [f"{noise}.doubled", scale], [drawn])
        yield make_node("Mul", [drawn, amplitude], [noise])

    def clip(self, source: str, result: str, bound: float) -> "onnx.NodeProto":
        """What noise grows with: infinity keeps its place, and so does the number that masks are made of."""
        from onnx.helper import make_node

        if self.opsets.get("", 1) < CLIP_BY_INPUTS:
            return make_node("Clip", [source], [result], min=-bound, max=bound)
        self.bounds |= {bound, -bound}
        return make_node("Clip", [source, _bound(-bound), _bound(bound)], [result])


def _both(left: float, right: float) -> float:
    """The half-width of the sum of two independent noises."""
    return float((left**2 + right**2) ** 0.5)


def _bound(number: float) -> str:
    return f"ep_harness.bound.{number:g}"


def _makes_whole(node: "onnx.NodeProto", scope: _Scope) -> bool:
    """Whether the results of a node are whole numbers."""
    if domain_of(node):
        return False
    if node.op_type == "Cast":
        return scope.types.get(node.input[0]) not in COMPUTED or node.input[0] in scope.whole
    if node.op_type == "Constant":
        return any(one.name == "value" and is_whole(one.t) for one in node.attribute)
    floats = [name for name in node.input if scope.is_float(name)]
    return node.op_type in CLOSED and bool(floats) and scope.whole.issuperset(floats)


def _is_exact(node: "onnx.NodeProto") -> bool:
    return node.op_type in EXACT or node.op_type.startswith("QLinear")


def _jumps(node: "onnx.NodeProto") -> bool:
    if node.op_type in {"Cast", "CastLike"}:
        return any(one.name == "to" and one.i not in NUMBERS.values() for one in node.attribute)
    return node.op_type in DISCONTINUOUS or node.op_type.startswith("QLinear")


def _held(graph: "onnx.GraphProto") -> set[str]:
    """Tensors that sizes come from; what reads the size of a tensor does not care for its values."""
    held: set[str] = set()
    for node in reversed(graph.node):
        control = CONTROL_INPUTS.get(node.op_type, frozenset())
        held.update(name for index, name in enumerate(node.input) if index in control)
        if node.op_type not in SIZES and held.intersection(node.output):
            held.update(node.input)
    return held - {""}
