"""One model: its noise, its healthy results, its faults, and what every policy says of them."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from benchmarks.detection import cpu
from benchmarks.detection.effect import Noise, effect, equal, flat, noise
from benchmarks.detection.elsewhere import STRANGERS, Answer
from benchmarks.detection.faults import FAULTS, Fault
from benchmarks.detection.healthy import REWRITES, rewritten
from benchmarks.detection.net import Net
from benchmarks.detection.policies import LIMITS, POLICIES, SWEEP, Pair, Spread
from benchmarks.detection.reduced import reduce_precision
from benchmarks.detection.rows import Measured, Row
from benchmarks.detection.subjects import Subject
from harness.core.noise.noise import noise_of
from harness.core.noise.spread import spread_of
from harness.core.values.value import NamedValues, Tensor, tensor
from harness.corpus.case import Case
from harness.corpus.derived.noisy import amplitudes_of, noisy_case
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.derived.upcast import float64_case

FULL = "float32"
SITES = {FULL: 2, "float16": 1, "bfloat16": 1}
"""Nodes of a model in which each kind of fault is planted, at each precision."""

VISIBLE = 16.0
"""Multiples of the noise from which on a fault has to be found; a healthy result beyond them is doubtful."""

Healthy = dict[str, NamedValues]


class Bench:
    """One model on the bench.

    Args:
        subject: The model.
        answers: What other providers make of it, by their names.
    """

    def __init__(self, subject: Subject, answers: Mapping[str, Answer]) -> None:
        self.subject = subject
        self.answers = answers
        self.model = subject.model()
        self.golden = cpu.run(self.model, subject.feeds)
        self.values = cpu.trace(self.model, subject.feeds)
        self.rows: list[Row] = []
        self.equal = 0
        self.unseen: Counter[str] = Counter()
        self.refused: list[str] = []
        self.absent: dict[str, str] = {}

    def measure(self, precisions: tuple[str, ...], *, faults: bool) -> Measured:
        """Judge all that there is at some precisions, or what is healthy."""
        for precision in precisions:
            results = dict(self._full() if precision == FULL else self._reduced(precision))
            for stranger in STRANGERS:
                if stranger.precision == precision and stranger.name in self.answers:
                    self._take(results, stranger.name, self.answers[stranger.name])
            spread = self._spread(precision)
            doubtful = self._doubtful(results, precision)
            trusted = {way: result for way, result in results.items() if way not in doubtful}
            noises = noise(self.golden, trusted.values(), precision)
            for way, result in results.items():
                if equal(self.golden, result):
                    self.equal += 1
                else:
                    row = self._row(result, precision, noises, spread, way=way)
                    self.rows.append(msgspec.structs.replace(row, doubtful=way in doubtful))
            if faults:
                self._plant_all(precision, noises, spread)
        return Measured(
            model=self.subject.name,
            draw=self.subject.draw,
            equal=self.equal,
            rows=tuple(self.rows),
            unseen=dict(self.unseen),
            refused=tuple(self.refused),
            absent=self.absent,
        )

    def full_noise(self) -> Noise:
        """The noise at float32, of this machine's ways to compute the model alone."""
        results = dict(self._full())
        doubtful = self._doubtful(results, FULL)
        return noise(self.golden, (one for way, one in results.items() if way not in doubtful), FULL)

    def spoilt(self, fault: Fault) -> Iterator[tuple[int, Net]]:
        """The model with a fault, once for each node that it may befall, with the index of that node."""
        for index in self._sites(fault):
            net = Net(self.model, self.values, np.random.default_rng(index))
            if fault.plant(net, net.nodes[index]):
                yield index, net

    def _full(self) -> Iterator[tuple[str, NamedValues]]:
        feeds = self.subject.feeds
        for level in ("disabled", "basic", "extended"):
            yield f"optimizations {level}", cpu.run(self.model, feeds, level=level)
        for threads in (2, 4):
            yield f"{threads} threads", cpu.run(self.model, feeds, threads=threads)
        yield "other opset", cpu.run(onnx.load(self.subject.twin.model_path), feeds)
        for way, rewrite in REWRITES.items():
            try:
                yield way, cpu.run(rewritten(self.model, self.values, rewrite), feeds)
            except cpu.CpuError as error:
                self.absent[way] = str(error)
        exact = float64_case(self.subject.case)
        if isinstance(exact, Inapplicable):
            self.absent["float64"] = exact.reason
            return
        try:
            yield "float64", _narrow(self._run_case(exact)[0])
        except cpu.CpuError:
            try:
                yield "float64", _narrow(self._evaluate(exact))
            except Exception as error:  # noqa: BLE001 - the evaluator raises whatever its operators do
                self.absent["float64"] = f"{type(error).__name__}: {error}"

    def _reduced(self, precision: str) -> Iterator[tuple[str, NamedValues]]:
        ways = {"rounded": lambda _net, _node: None, **REWRITES}
        for way, rewrite in ways.items():
            net = Net(rewritten(self.model, self.values, rewrite), self.values, np.random.default_rng(0))
            reduce_precision(net, precision)
            name = way if way == "rounded" else f"rounded, {way}"
            try:
                yield name, cpu.run(net.model(), self.subject.feeds)
            except cpu.CpuError as error:
                self.absent[f"{precision}: {name}"] = str(error)

    def _take(self, results: Healthy, way: str, answer: Answer) -> None:
        if answer.values is None:
            self.absent[way] = answer.why_not
        else:
            results[way] = answer.values

    def _run_case(self, case: Case) -> list[NamedValues]:
        model = onnx.load(case.model_path)
        feeds = [
            {name: value.array for name, value in data_set.inputs if isinstance(value, Tensor)}
            for data_set in case.data_sets
        ]
        return cpu.run_all(model, feeds)

    def _evaluate(self, case: Case) -> NamedValues:
        """What ONNX's own evaluator makes of a case: the CPU provider has no Conv of doubles."""
        evaluator = ReferenceEvaluator(onnx.load(case.model_path))
        feeds = {name: value.array for name, value in case.data_sets[0].inputs if isinstance(value, Tensor)}
        results = evaluator.run(None, feeds)
        return tuple((name, tensor(np.asarray(one))) for name, one in zip(case.outputs, results, strict=True))

    def _spread(self, precision: str) -> Spread | None:
        noisy = noisy_case(self.subject.case, precision)
        if isinstance(noisy, Inapplicable):
            self.absent[f"noise at {precision}"] = noisy.reason
            return None
        samples = self._run_case(noisy)
        return spread_of((self.golden,), samples, amplitudes_of(noisy), precision).outputs[0]

    def _doubtful(self, results: Healthy, precision: str) -> set[str]:
        """Healthy results that differ from the others as much as a visible fault would."""
        found = set()
        for way, result in results.items():
            others = [one for other, one in results.items() if other != way]
            if effect(self.golden, result, noise(self.golden, others, precision)) > VISIBLE:
                found.add(way)
        return found

    def _plant_all(self, precision: str, noises: Noise, spread: Spread | None) -> None:
        for fault in FAULTS.values():
            for index, net in islice(self.spoilt(fault), SITES[precision]):
                node = self.model.graph.node[index]
                where = node.name or node.op_type
                if precision != FULL:
                    reduce_precision(net, precision)
                try:
                    result = cpu.run(net.model(), self.subject.feeds)
                except cpu.CpuError as error:
                    self.refused.append(f"{fault.name} at {where}: {error}")
                    continue
                if precision == FULL and equal(self.golden, result):
                    self.unseen[fault.name] += 1
                    continue
                row = self._row(result, precision, noises, spread, way=where if fault.operators else "all")
                self.rows.append(msgspec.structs.replace(row, fault=fault.name))

    def _sites(self, fault: Fault) -> list[int]:
        """The nodes that a fault may befall, in an order that is drawn once and for all."""
        if not fault.operators:
            return [0]
        found = [index for index, node in enumerate(self.model.graph.node) if node.op_type in fault.operators]
        seed = hashlib.sha256(f"{fault.name} {self.subject.name}".encode()).digest()
        np.random.default_rng(list(seed)).shuffle(found)
        return found

    def _row(
        self, result: NamedValues, precision: str, noises: Noise, spread: Spread | None, *, way: str
    ) -> Row:
        pair = Pair(golden=self.golden, result=result, precision=precision, spread=spread)
        size = effect(self.golden, result, noises)
        return Row(
            model=self.subject.name,
            layers=self.subject.layers,
            precision=precision,
            way=way,
            effect=size if math.isfinite(size) else None,
            ratios=_ratios(pair),
            failed=tuple(policy.name for policy in (*POLICIES, *SWEEP, *LIMITS) if policy.fails(pair)),
        )


def _ratios(pair: Pair) -> tuple[float, float] | None:
    found = flat(pair.result)
    ratios = [
        noise_of(golden, found[name], pair.spread[name])
        for name, golden in flat(pair.golden).items()
        if pair.spread and name in pair.spread and name in found
        if found[name].array.shape == golden.array.shape
    ]
    if not ratios:
        return None
    rms, largest = (max(column) for column in zip(*ratios, strict=True))
    return (rms, largest) if math.isfinite(rms) and math.isfinite(largest) else None


def _narrow(values: NamedValues) -> NamedValues:
    return tuple(
        (name, tensor(value.array.astype(np.float32)))
        if isinstance(value, Tensor) and value.dtype == "float64"
        else (name, value)
        for name, value in values
    )
