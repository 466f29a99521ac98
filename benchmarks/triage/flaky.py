"""Faults of which three sessions in ten are wrong: located and reduced as if they appeared each time?"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from benchmarks.detection.subjects import subjects
from benchmarks.triage.ep import NAME, Planted, StandIn
from benchmarks.triage.hunt import Hunted, hunt
from harness.annex.triage.lab import Lab, Trial
from harness.annex.triage.repetition import repeat_failure
from harness.annex.triage.signature import signature_of
from harness.annex.triage.subject import Subject
from harness.core.comparison.policy import Policy
from harness.core.records.fault import Repetition, Signature
from harness.core.records.verdict import Family

RATE = 0.3

PLACES = (
    ("mnist", "block-unwritten", "conv2/Relu"),
    ("resnet", "channels-shifted", "stage1/block0/conv1/Conv"),
    ("bert-1", "float16-storage", "layer0/attention/Softmax"),
    ("bert-1", "stale-second-input", "layer0/attention/MatMul_1"),
)
"""Model, fault and guilty node; each is tried as often as the others. The last one takes two nodes."""

STEADY, CONFIRMING = 1 << 10, 1 << 30
"""Where the numbers of trials begin that are not those of a flaky fault's own triage."""


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One triage of a flaky fault.

    Attributes:
        model: The model.
        fault: The kind.
        guilty: The node.
        confirmation: How often it appeared.
        hunted: What triage found; None if it was not confirmed.
        steady: What it finds if the fault appears each time.
    """

    model: str
    fault: str
    guilty: str
    confirmation: Repetition
    hunted: Hunted | None
    steady: Hunted

    @property
    def is_right(self) -> bool:
        """Whether no step went wrong: the same nodes, and a model that is as small."""
        found, steady = self.hunted, self.steady
        return found is not None and (
            self.guilty in found.nodes
            and (found.nodes, found.nodes_after) == (steady.nodes, steady.nodes_after)
            and found.verdict_after == steady.signature.verdict
        )


class Flaky:
    """A stand-in whose faults come and go.

    Args:
        lab: With the stand-in as a target.
        stand_in: The stand-in.
        models: By name.
    """

    def __init__(self, lab: Lab, stand_in: StandIn, models: Mapping[str, Subject]) -> None:
        self._lab = lab
        self._stand_in = stand_in
        self._models = models
        self._steady: dict[tuple[str, str, str], Hunted] = {}

    def triage(self, number: int) -> Try:
        """Triage one fault that comes and goes, confirmed as a triage does it."""
        place = PLACES[number % len(PLACES)]
        name, fault, guilty = place
        subject, planted = self._models[name], Planted(fault=fault, node=guilty, seed=0)
        if place not in self._steady:
            self._stand_in.plant(planted)
            always = hunt(self._lab, subject, STEADY + number)
            if always is None:
                raise RuntimeError(f"{fault} in {guilty} of {name} does not show")
            self._steady[place] = always
        steady = self._steady[place]
        self._stand_in.plant(msgspec.structs.replace(planted, rate=RATE))
        confirmation = self._confirmed(subject, number, steady.signature)
        hunted = None
        if confirmation.failures:
            hunted = hunt(self._lab, subject, number, confirmation.repeats, steady.signature)
        return Try(
            model=name, fault=fault, guilty=guilty, confirmation=confirmation, hunted=hunted, steady=steady
        )

    def _confirmed(self, subject: Subject, number: int, signature: Signature) -> Repetition:
        def attempt(repetition: int) -> Family:
            trial = Trial(subject=subject, target=NAME, number=CONFIRMING + (number << 8) + repetition)
            (seen,) = self._lab.run([trial])
            fails = signature_of(seen.record, Policy(), ()) == signature
            return Family.FAILED if fails else Family.PASSED

        return repeat_failure(attempt)


def try_all(count: int, folder: Path) -> Iterator[Try]:
    """Triage flaky faults so many times.

    Args:
        count: How many times.
        folder: For files.
    """
    names = {name for name, _, _ in PLACES}
    models = {
        one.name: Subject(model=one.case.model_path.read_bytes(), inputs=one.case.data_sets[0].inputs)
        for one in subjects(folder / "models", names)
    }
    stand_in = StandIn(folder)
    with Lab([stand_in.target()], folder / "lab", lambda _: None) as lab:
        tries = Flaky(lab, stand_in, models)
        yield from map(tries.triage, range(count))
