"""Faults of which three sessions in ten are wrong: located and reduced as if they appeared each time?"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.detection.subjects import subjects
from benchmarks.triage.ep import NAME, Planted, StandIn
from benchmarks.triage.hunt import Hunted, hunt
from harness.core.fault import Confirmation
from harness.core.policy import Policy
from harness.core.verdict import Family
from harness.triage.confirm import confirm
from harness.triage.lab import Lab, Trial
from harness.triage.signature import signature_of
from harness.triage.subject import Subject

RATE = 0.3

TRIES = (
    ("mnist", "block-unwritten", "conv2/Relu"),
    ("mnist", "channels-shifted", "conv1/Conv"),
)
"""Model, fault and guilty node; each is tried as often as the others."""


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
    confirmation: Confirmation
    hunted: Hunted | None
    steady: Hunted

    @property
    def is_right(self) -> bool:
        """Whether no step went wrong: the same node, and a model that is as small."""
        found, steady = self.hunted, self.steady
        return found is not None and (
            (found.nodes, found.exact, found.nodes_after, found.verdict_after)
            == (steady.nodes, steady.exact, steady.nodes_after, steady.verdict_after)
            == ((self.guilty,), True, steady.nodes_after, found.verdict)
        )


def try_all(count: int) -> Iterator[Try]:
    """Triage flaky faults so many times."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        names = sorted({model for model, _, _ in TRIES})
        models = {one.name: one for one in subjects(folder / "models", names)}
        stand_in = StandIn(folder)
        with Lab([stand_in.target()], folder / "lab", lambda _: None) as lab:
            steady: dict[tuple[str, str, str], Hunted] = {}
            for number in range(count):
                name, fault, guilty = TRIES[number % len(TRIES)]
                case = models[name].case
                subject = Subject(model=case.model_path.read_bytes(), inputs=case.data_sets[0].inputs)
                planted = Planted(fault=fault, node=guilty, seed=0)
                if (name, fault, guilty) not in steady:
                    stand_in.plant(planted)
                    always = hunt(lab, subject, 1000 + number)
                    if always is None:
                        raise RuntimeError(f"{fault} in {guilty} of {name} does not show")
                    steady[name, fault, guilty] = always
                stand_in.plant(msgspec.structs.replace(planted, rate=RATE))
                confirmation = _confirmed(lab, subject, number + 1)
                hunted = hunt(lab, subject, number + 1, confirmation.repeats) if confirmation.failures else None
                yield Try(
                    model=name,
                    fault=fault,
                    guilty=guilty,
                    confirmation=confirmation,
                    hunted=hunted,
                    steady=steady[name, fault, guilty],
                )


def _confirmed(lab: Lab, subject: Subject, number: int) -> Confirmation:
    def attempt(repetition: int) -> Family | None:
        trial = Trial(subject=subject, target=NAME, number=(number << 12) + 3000 + repetition)
        (seen,) = lab.run([trial])
        return signature_of(seen.record, Policy(), ()).verdict.family

    return confirm(attempt)
