"""The facts of one cell, before it is judged; a record publishes all of them."""

import msgspec

from harness.core.agreement import Agreement
from harness.core.ended import Ended, OwnCpu
from harness.core.fixed_sizes import FixedSizes
from harness.core.generated import Generation
from harness.core.latency import Latency
from harness.core.other_check import OtherCheck
from harness.core.output_metrics import OutputMetrics
from harness.core.record import OptionEffect, Placement, Record, Repeats
from harness.core.reference import ReferenceCheck
from harness.core.scenario import Observations
from harness.core.verdict import Phase
from harness.core.work import Unchecked

CPU_PROVIDER = "CPUExecutionProvider"

UNREPEATABLE = "the CPU EP itself gives another result each time"
"""Reason of a dispute: another run of the CPU EP gives another golden."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts of one cell; fields as in ``harness.core.record.Record``."""

    provider: str = ""
    phase: Phase | None = None
    cause: str = ""
    ended: Ended | None = None
    own_cpu: OwnCpu | None = None
    precision: str = "float32"
    converted: bool = False
    own_precision: str = ""
    finest: str = ""
    delivers: tuple[str, ...] = ()
    remedy: str = ""
    placement: Placement | None = None
    outputs: tuple[OutputMetrics, ...] = ()
    again: tuple[OutputMetrics, ...] = ()
    other: tuple[OutputMetrics, ...] = ()
    other_check: OtherCheck | None = None
    golden: str = ""
    golden_digest: str = ""
    no_golden: str = ""
    dispute: str = ""
    undefined: dict[str, str] = {}
    beyond: str = ""
    providers_changed: str = ""
    teardown: str = ""
    timings_ms: dict[str, float] = {}
    latency: Latency | None = None
    scenario: Observations = {}
    generation: Generation | None = None
    repeats: Repeats | None = None
    no_spread: str = ""
    reference_check: ReferenceCheck | None = None
    effect: OptionEffect | None = None
    answered: tuple[str, ...] = ()
    weak_golden: str = ""
    agreement: tuple[Agreement, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    fixed: FixedSizes | None = None

    @property
    def is_cpu(self) -> bool:
        """Whether the CPU EP itself is under test."""
        return self.provider == CPU_PROVIDER


def facts_for_other_inputs(facts: Facts) -> Facts:
    """Return the facts of the run with other inputs alone, in the form of those of the first inputs."""
    check = facts.other_check or OtherCheck()
    return Facts(
        provider=facts.provider,
        phase=facts.phase,
        precision=facts.precision,
        converted=facts.converted,
        own_precision=facts.own_precision,
        finest=facts.finest,
        delivers=facts.delivers,
        remedy=facts.remedy,
        placement=facts.placement,
        outputs=facts.other,
        golden=facts.golden,
        dispute=check.dispute,
        undefined=check.undefined,
        no_spread=check.no_spread,
        reference_check=check.reference_check,
        answered=check.answered,
    )


def facts_of(record: Record) -> Facts:
    """Return the facts that a record publishes."""
    return Facts(**{name: getattr(record, name) for name in Facts.__struct_fields__})
