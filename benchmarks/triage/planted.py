"""Faults of the detection benchmark in one node of a model: are they located, and how small do they get?"""

import hashlib
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.detection import cpu
from benchmarks.detection.effect import effect
from benchmarks.detection.faults import FAULTS, Fault
from benchmarks.detection.faults.precision import PRODUCTS
from benchmarks.detection.measure import VISIBLE, Bench
from benchmarks.detection.subjects import Subject as Model
from benchmarks.triage.alone import shows_alone
from benchmarks.triage.ep import Planted, StandIn
from benchmarks.triage.hunt import Hunted, hunt
from harness.annex.triage.lab import Lab
from harness.annex.triage.subject import Subject


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which faults are planted.

    Attributes:
        kinds: By name; all if empty.
        sites: Nodes of a model in which each kind is planted.
        share: Of all pairs of a kind and a model, drawn by their names.
    """

    kinds: tuple[str, ...] = ()
    sites: int = 1
    share: float = 1.0

    def takes(self, fault: str, model: str) -> bool:
        """Whether a kind is planted in a model."""
        digest = hashlib.sha256(f"triage {fault} {model}".encode()).digest()
        drawn = int.from_bytes(digest[:4], "big") / 2**32 < self.share
        return drawn and (not self.kinds or fault in self.kinds)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One planted fault.

    Attributes:
        model: Its name.
        fault: The kind.
        guilty: Names of the nodes of which each is a right answer.
        alone: Whether the fault shows in one of these nodes alone.
        effect: Multiples of the noise; None where it has no number.
        hunted: What triage found; None if the cell passes.
    """

    model: str
    fault: str
    guilty: tuple[str, ...]
    alone: bool
    effect: float | None
    hunted: Hunted | None

    @property
    def outcome(self) -> str:
        """How the location is to be counted: ``exact``, ``set``, ``wrong`` or ``passed``."""
        if self.hunted is None:
            return "passed"
        held = set(self.guilty) & set(self.hunted.nodes)
        if not held:
            return "wrong"
        return "exact" if self.hunted.exact else "set"


def hunt_all(model: Model, choice: Choice) -> Iterator[Row]:
    """Plant faults in a model, one after the other, and have each of those that are visible triaged."""
    bench = Bench(model, {})
    noises = bench.full_noise()
    subject = Subject(model=bench.model.SerializeToString(), inputs=model.case.data_sets[0].inputs)
    with tempfile.TemporaryDirectory() as temporary:
        stand_in = StandIn(Path(temporary))
        with Lab([stand_in.target()], Path(temporary), lambda _: None) as lab:
            number = 0
            for fault in FAULTS.values():
                if not choice.takes(fault.name, model.name):
                    continue
                for index, net in islice(bench.spoilt(fault), choice.sites):
                    try:
                        result = cpu.run(net.model(), model.feeds)
                    except cpu.CpuError:
                        continue  # a model that is refused shows nothing
                    size = effect(bench.golden, result, noises)
                    if size <= VISIBLE:
                        continue
                    number += 1
                    node = bench.model.graph.node[index].name
                    stand_in.plant(Planted(fault=fault.name, node=node, seed=index))
                    yield Row(
                        model=model.name,
                        fault=fault.name,
                        guilty=_guilty(bench, fault, node),
                        alone=not fault.operators or shows_alone(bench, fault, index),
                        effect=size if np.isfinite(size) else None,
                        hunted=hunt(lab, subject, number),
                    )


def _guilty(bench: Bench, fault: Fault, node: str) -> tuple[str, ...]:
    """A fault of the whole model is one of each of its products."""
    if fault.operators:
        return (node,)
    return tuple(one.name for one in bench.model.graph.node if one.op_type in PRODUCTS)
