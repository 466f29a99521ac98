"""Element types, features and surfaces: on how many devices of each product they work, and since when."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from harness.annex.publication.devices import counted_lines
from harness.annex.publication.lines import Line
from harness.annex.publication.operator_page import DeviceCount, Named, count_of
from harness.annex.publication.since import CaseHistory, PassingSince, case_histories, since_of
from harness.core.records.scenario import SCENARIOS

TRAIT_KINDS = ("element type", "feature", "surface")
"""What cases have in common, in the order of the table."""

Trait = tuple[str, str, str]
"""Kind, name, and a short description."""


class TraitCount(msgspec.Struct, frozen=True, kw_only=True):
    """Cases of one trait with one product.

    Attributes:
        count: The devices on which every case passes, and since when.
        most: Most cases that pass on one device, with the number of its cases.
    """

    named: Named
    count: DeviceCount
    most: tuple[int, int]


class TraitRow(msgspec.Struct, frozen=True, kw_only=True):
    """One trait, with the products that tried it, by vendor, name and provider."""

    kind: str
    name: str
    about: str
    products: tuple[TraitCount, ...]


def since_table(lines: Iterable[Line]) -> tuple[TraitRow, ...]:
    """Return a row for each trait of some case; of each device the line that counts."""
    found: dict[Trait, dict[Named, list[tuple[PassingSince, tuple[int, int]]]]] = {}
    for named, on_device in counted_lines(lines).items():
        for line in on_device.values():
            for trait, histories in _by_trait(case_histories(line)).items():
                now = sum(one.steps[-1][1] for one in histories)
                told = since_of(histories), (now, len(histories))
                found.setdefault(trait, {}).setdefault(named, []).append(told)
    return tuple(
        TraitRow(
            kind=kind,
            name=name,
            about=about,
            products=tuple(_count(named, devices) for named, devices in found[kind, name, about].items()),
        )
        for kind, name, about in sorted(found, key=lambda one: (TRAIT_KINDS.index(one[0]), *one[1:]))
    )


def _by_trait(histories: Iterable[CaseHistory]) -> Mapping[Trait, Sequence[CaseHistory]]:
    found: dict[Trait, list[CaseHistory]] = {}
    for history in histories:
        for trait in _traits(history):
            found.setdefault(trait, []).append(history)
    return found


def _traits(history: CaseHistory) -> Iterator[Trait]:
    case = history.case
    for name in case.types:
        yield "element type", name, ""
    yield "feature", case.feature, history.profile
    known = SCENARIOS.get(case.scenario)
    yield "surface", case.scenario, known.surface if known else ""


def _count(named: Named, devices: Sequence[tuple[PassingSince, tuple[int, int]]]) -> TraitCount:
    return TraitCount(
        named=named,
        count=count_of([since for since, _ in devices]),
        most=max((most for _, most in devices), key=lambda one: one[0] / one[1]),
    )
