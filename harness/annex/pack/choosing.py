"""For each model and provider the fastest configuration that passes, by the rule of what to ship."""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.annex.pack.proof import COMPILES, Proof
from harness.core.findings.shipping import ShippingChoice, rounds_of, what_to_ship, why_not_shipped
from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import Record
from harness.core.records.scenario import GENERATE, PLAIN
from harness.core.timing.pace import best_ms, unbeaten
from harness.plan.surroundings import matching_devices

_TYPES = {"CPU": "cpu", "GPU": "gpu", "NPU": "npu"}


class ProvedVariant(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration that a package gets.

    Attributes:
        device: Type of the device that it was proved on; empty if unknown.
        compiled: Whether it passed the scenario ``ep_context``, so that it is compiled.
    """

    cell: Cell
    record: Record
    provider: str
    device: str
    compiled: bool

    @property
    def name(self) -> str:
        """Name of the variant: that of its target, with the precision if it is converted."""
        precision = self.cell.axis("precision")
        suffix = "" if precision == "fp32" else f"-{precision.removeprefix('ep:')}"
        return f"{self.cell.target}{suffix}".replace("/", "-").replace("\\", "-")

    @property
    def p50_ms(self) -> float | None:
        """Median of its runs in milliseconds; None if it was not timed."""
        return best_ms(rounds_of(self.record))


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A target without a variant in the package, and why."""

    target: str
    why: str


def choose(proof: Proof, model: str) -> tuple[tuple[ProvedVariant, ...], tuple[LeftOut, ...]]:
    """Return the variants of one model, that for the CPU provider last, and what is left out.

    Of several targets of one provider and type of device the fastest is taken: a runtime could not tell them
    apart.
    """
    found: dict[tuple[str, str], list[ProvedVariant]] = {}
    left: list[LeftOut] = []
    for target in proof.targets:
        variant = _of_target(proof, model, target)
        if isinstance(variant, LeftOut):
            left.append(variant)
        else:
            found.setdefault((variant.provider, variant.device), []).append(variant)
    chosen = []
    for variants in found.values():
        best = next(iter(unbeaten(variants, lambda one: rounds_of(one.record))), variants[0])
        chosen.append(best)
        left += [
            LeftOut(target=one.cell.target, why=f"{best.cell.target} has the same provider and device")
            for one in variants
            if one is not best
        ]
    # A variant for the CPU provider is for machines on which nothing else matches.
    return tuple(sorted(chosen, key=lambda one: one.provider == CPU_PROVIDER)), tuple(left)


def _of_target(proof: Proof, model: str, target: str) -> ProvedVariant | LeftOut:
    of_model = {
        cell: record
        for cell, record in proof.records.items()
        if cell.model == model and cell.target == target
    }
    plain = {cell: record for cell, record in of_model.items() if cell.axis("scenario") == PLAIN}
    failing = {
        _session(cell): why
        for cell, record in of_model.items()
        if cell.axis("scenario") == GENERATE and (why := why_not_shipped(record))
    }
    choices = {record.cell: (cell, record) for cell, record in plain.items() if _session(cell) not in failing}
    if not choices:
        why = next(iter(failing.values()), "it was not tried")
        return LeftOut(target=target, why=f"as a generator of text: {why}" if failing else why)
    asked = (ShippingChoice(record=record, rounds=rounds_of(record)) for _, record in choices.values())
    ((row,),) = [one.rows for one in what_to_ship(asked, (target,), proof.simulated)]
    if not row.ships:
        return LeftOut(target=target, why=row.because)
    cell, record = choices[row.choice.record.cell]
    compiled = [
        one for one in of_model if one.axis("scenario") == COMPILES and _session(one) == _session(cell)
    ]
    return ProvedVariant(
        cell=cell,
        record=record,
        provider=proof.targets[target].provider[0],
        device=_device(proof.fingerprints.get(target, {}), proof.targets[target].device),
        compiled=any(not why_not_shipped(of_model[one]) for one in compiled),
    )


def _session(cell: Cell) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in cell.axes if pair[0] != "scenario")


def _device(fingerprint: Mapping[str, Any], wanted: Mapping[str, str]) -> str:
    """Return the type of the first device that matches a target's filter, as a package names it."""
    found = (one.get("device") for one in matching_devices(fingerprint, wanted))
    first = next((one for one in found if isinstance(one, Mapping)), {})
    return _TYPES.get(str(first.get("type", "")).upper(), "")
