"""Products: their devices on one page, and one row or column for them where there are many."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harness.annex.conformance.level import Standing
from harness.annex.conformance.submission import Level
from harness.annex.publication.devices import counted_lines
from harness.annex.publication.entry import newest_version
from harness.annex.publication.lines import Line
from harness.annex.publication.operator_page import Named, product_id

FEW = 5
"""Most devices of a product of which each has a row or column of its own on pages of all products."""


class ProductGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A product, with every line of it; ``counted`` has one for each device."""

    id: str
    named: Named
    lines: tuple[Line, ...]
    counted: tuple[Line, ...]

    @property
    def is_large(self) -> bool:
        """Whether its devices share a row or column."""
        return len(self.lines) > FEW

    @property
    def newest_day(self) -> str:
        """The day of its newest submission."""
        return max(line.newest_day for line in self.lines)

    @property
    def newest_runtime(self) -> str:
        """The newest onnxruntime that ran with the newest version on a device."""
        return newest_version(line.current.onnxruntime for line in self.lines)

    def conformant(self, profile: str) -> tuple[int, int]:
        """Return how many devices are conformant to a profile, and how many submitted it."""
        levels = [line.newest[profile].level for line in self.counted if profile in line.newest]
        return levels.count(Level.CONFORMANT), len(levels)


class SharedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A large product in the table of a profile; every figure counts devices.

    Attributes:
        features: Name -> devices on which every case of it passes; likewise label -> devices in ``cases``.
    """

    group: ProductGroup
    devices: int
    conformant: int
    features: Mapping[str, int]
    cases: Mapping[str, int]


def product_groups(lines: Iterable[Line]) -> tuple[ProductGroup, ...]:
    """Return the products, by vendor, name and provider."""
    lines = tuple(lines)
    of_product: dict[Named, list[Line]] = {}
    for line in lines:
        said = line.one.statement
        named = (said.product.vendor, said.product.name, said.environment.provider)
        of_product.setdefault(named, []).append(line)
    return tuple(
        ProductGroup(
            id=product_id(named),
            named=named,
            lines=tuple(of_product[named]),
            counted=tuple(on_device.values()),
        )
        for named, on_device in counted_lines(lines).items()
    )


def shared_columns(groups: Iterable[ProductGroup], profile: str) -> tuple[SharedColumn, ...]:
    """Return a column for each large product that submitted a profile."""
    return tuple(
        _column(group, profile)
        for group in groups
        if group.is_large and any(profile in line.newest for line in group.counted)
    )


def _column(group: ProductGroup, profile: str) -> SharedColumn:
    entries = [line.newest[profile] for line in group.counted if profile in line.newest]
    conformant, devices = group.conformant(profile)
    features = {
        name: sum(
            entry.result.features[name].passed == entry.result.features[name].cases for entry in entries
        )
        for name in entries[0].result.features
    }
    by_case: Sequence[Sequence[bool]] = [
        [one.standing is Standing.PASSED for one in entry.result.cases] for entry in entries
    ]
    labels = [one.label for one in entries[0].result.cases]
    return SharedColumn(
        group=group,
        devices=devices,
        conformant=conformant,
        features=features,
        cases=dict(zip(labels, map(sum, zip(*by_case, strict=True)), strict=True)),
    )
