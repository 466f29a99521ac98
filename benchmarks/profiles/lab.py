"""One model on the bench: planted faults, one node at a time, and whether the verdict shows them."""

import contextlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

from benchmarks.detection.faults import FAULTS as COMPUTED
from benchmarks.detection.net import Net
from benchmarks.fuzzing.faults import FAULTS as RARE
from benchmarks.fuzzing.faults.fault import Array, Site
from benchmarks.profiles.session import CpuSession, RefusedError
from benchmarks.profiles.simple import simple_faults
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import computing_precision
from harness.core.noise.noise import NoiseRule
from harness.core.noise.spread import spread_of
from harness.core.values.value import NamedValues, Tensor
from harness.core.verdicts.compare import compare_all
from harness.corpus.case import Case
from harness.corpus.derived.noisy import amplitudes_of, noisy_case
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.engine.measuring.output_kinds import output_kinds_of

SITES = 2
"""Nodes of a model in which each fault is planted, at most."""

NUMBERS = {name: number for number, name in ELEMENT_TYPES.items()}

Planted = tuple[str, NamedValues]
"""Name of a fault, and what the model with it computes."""


class Lab:
    """One model.

    Args:
        case: The model with its first data set.

    Raises:
        RefusedError: The CPU EP does not run it.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.model = onnx.load(case.model_path)
        self.inputs = case.data_sets[0].inputs
        self.golden = CpuSession(self.model).run(self.inputs)
        self.precision = computing_precision(case.facts.float_types, "float32")

    @cached_property
    def values(self) -> dict[str, Any]:
        """The tensors of the main graph by name, weights included."""
        wide = onnx.ModelProto.FromString(self.model.SerializeToString())
        known = {output.name for output in wide.graph.output}
        names = dict.fromkeys(name for node in wide.graph.node for name in node.output if name)
        wide.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
        try:
            found = CpuSession(wide, optimized=False).run(self.inputs)
        except RefusedError:
            found = self.golden
        weights = {one.name: onnx.numpy_helper.to_array(one) for one in self.model.graph.initializer}
        pairs = (*self.inputs, *found)
        return weights | {name: value.array for name, value in pairs if isinstance(value, Tensor)}

    @cached_property
    def spread(self) -> Any:
        """The noise of each output; None if it cannot be drawn."""
        try:
            noisy = noisy_case(self.case, self.precision)
            if isinstance(noisy, Inapplicable):
                return None
            session = CpuSession(onnx.load(noisy.model_path))
            samples = [session.run(one.inputs) for one in noisy.data_sets[: len(amplitudes_of(noisy))]]
        except RefusedError:
            return None
        each = len(samples) // len(self.case.data_sets)
        return spread_of((self.golden,), samples[:each], amplitudes_of(noisy)[:each], self.precision).outputs[
            0
        ]

    def fails(self, result: NamedValues) -> bool:
        """Return whether a result fails by the harness's default rules: table and noise, and steps."""
        policy = Policy(precision=self.precision)
        kinds = output_kinds_of(self.case, (self.golden,))
        if not self._differs(result, policy, kinds[0] if kinds else {}, None):
            return False
        noise = NoiseRule(precision=self.precision, spreads=self.spread) if self.spread else None
        return noise is None or self._differs(result, policy, kinds[0] if kinds else {}, noise)

    def _differs(self, result: NamedValues, policy: Policy, kinds: Any, noise: NoiseRule | None) -> bool:
        found = compare_all(self.golden, result, policy.tolerance_for, kinds, noise, policy)
        return found.verdict is not None

    def planted(self) -> Iterator[Planted]:
        """Yield each fault that fits the model, with its result."""
        seen: dict[str, int] = {}
        own = {(one.domain, one.name) for one in self.model.functions}  # names that no provider knows
        nodes = [node for node in self.model.graph.node if (node.domain, node.op_type) not in own]
        for node in [*nodes[:1], *nodes[:0:-1]]:
            site = self._site(node)
            if site is None:
                continue
            rest = _Rest(self, node.output[0])
            for name, wrong in self._wrong(site):
                if seen.get(name, 0) < SITES and (result := rest.result(wrong)) is not None:
                    seen[name] = seen.get(name, 0) + 1
                    yield name, result
            yield from self._computed(node, seen)

    def _site(self, node: onnx.NodeProto) -> Site | None:
        value = self.values.get(node.output[0]) if node.output else None
        if not isinstance(value, np.ndarray) or value.dtype == object:
            return None
        opset = self.case.facts.opsets.get("ai.onnx", 1)
        return Site(self.model.graph, opset, node, self.values)

    def _wrong(self, site: Site) -> Iterator[tuple[str, Array]]:
        first = next((self.values[name] for name in site.node.input if name in self.values), site.y)
        with contextlib.suppress(TypeError, ValueError):  # an element type without this arithmetic
            yield from simple_faults(site, operator_of(site.node), first.dtype.name)
        for fault in RARE.values():
            if (fault.ops and site.op not in fault.ops) or site.node.domain:
                continue
            try:
                if fault.applies(site):
                    yield f"rare: {fault.name}", fault.damage(site)
            except (ArithmeticError, IndexError, TypeError, ValueError):
                continue  # such as a form for tensors of numpy's own types

    def _computed(self, node: onnx.NodeProto, seen: dict[str, int]) -> Iterator[Planted]:
        index = next(at for at, other in enumerate(self.model.graph.node) if other is node)
        for fault in COMPUTED.values():
            name = f"computed: {fault.name}: {node.op_type}"
            if node.domain or node.op_type not in fault.operators or seen.get(name, 0) >= SITES:
                continue
            net = Net(self.model, self.values, np.random.default_rng(index))
            try:
                if fault.plant(net, net.nodes[index]):
                    result = CpuSession(net.model()).run(self.inputs)
                    seen[name] = seen.get(name, 0) + 1
                    yield name, result
            except (
                RefusedError,
                ArithmeticError,
                IndexError,
                KeyError,
                StopIteration,
                TypeError,
                ValueError,
            ):
                continue  # the fault does not fit a model of this kind


class _Rest:
    """A model behind one of its tensors, which is fed."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self._name = name
        self._dtype = next((v.dtype for n, v in lab.golden if n == name and isinstance(v, Tensor)), "")
        self._read = any(_reads(node, name) for node in lab.model.graph.node)

    def result(self, wrong: Array) -> NamedValues | None:
        """Return what the model computes from a wrong tensor; None if it refuses it."""
        known = NUMBERS.keys()
        dtype = self._dtype or wrong.dtype.name
        if dtype not in known:
            dtype = dtype.replace("_", "")
        tensor = Tensor(dtype=dtype, array=np.asarray(wrong, order="C"))
        if not self._read:
            return tuple((name, tensor if name == self._name else value) for name, value in self._lab.golden)
        try:
            found = self._session(dtype, wrong.shape).run((*self._lab.inputs, (self._name, tensor)))
        except (RefusedError, KeyError):
            return None
        names = {output.name for output in self._lab.model.graph.output}
        rest = dict(found)
        return tuple((name, rest.get(name, value)) for name, value in self._lab.golden if name in names)

    def _session(self, dtype: str, shape: tuple[int, ...]) -> CpuSession:
        made = getattr(self, "_made", None)
        if made is None:
            cut = onnx.ModelProto.FromString(self._lab.model.SerializeToString())
            for node in cut.graph.node:
                for at, name in enumerate(node.output):
                    if name == self._name:
                        node.output[at] = f"{name}__right"
            outputs = [one for one in cut.graph.output if one.name != self._name]
            del cut.graph.output[:]
            cut.graph.output.extend(outputs)
            kept = [one for one in cut.graph.value_info if one.name != self._name]
            del cut.graph.value_info[:]
            cut.graph.value_info.extend(kept)
            cut.graph.input.append(
                onnx.helper.make_tensor_value_info(self._name, NUMBERS[dtype], list(shape))
            )
            made = self._made = CpuSession(cut)
        return made


def operator_of(node: onnx.NodeProto) -> str:
    """Return the operator with its domain, unless that is ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in {"", "ai.onnx"} else node.op_type


def _reads(node: onnx.NodeProto, name: str) -> bool:
    """Return whether a node, or a node of its subgraphs, reads a tensor."""
    graphs = [graph for one in node.attribute for graph in (*one.graphs, one.g)]
    return name in node.input or any(_reads(inner, name) for graph in graphs for inner in graph.node)
