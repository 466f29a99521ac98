"""One operator over all devices: how many get it right with each product, and since which version."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harness.annex.conformance.level import case_label
from harness.annex.publication.devices import counted_lines
from harness.annex.publication.entry import AcceptedSubmission, version_order
from harness.annex.publication.lines import Line
from harness.annex.publication.operator_reach import OperatorReach, operator_evidence
from harness.annex.publication.since import PassingSince, case_histories, newest_of, since_of

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

Named = tuple[str, str, str]
"""Vendor, name and provider of a product."""


class DeviceReach(msgspec.Struct, frozen=True, kw_only=True):
    """One operator on one device, with the line that counts for a product."""

    line: Line
    evidence: OperatorReach
    since: PassingSince


class DeviceCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many devices of a product get something right.

    Attributes:
        since: The oldest submission from whose version on none of ``passing`` fails; null without any.
        from_start: Whether no older version is known in which one of them fails.
        broke: The newest submission that broke it on some device; null if none did.
    """

    passing: int
    devices: int
    since: AcceptedSubmission | None
    from_start: bool
    broke: AcceptedSubmission | None

    @property
    def tone(self) -> str:
        """``passed`` for all devices, ``partial`` for some, else ``failed``."""
        if not self.passing:
            return "failed"
        return "passed" if self.passing == self.devices else "partial"


class ProductReach(msgspec.Struct, frozen=True, kw_only=True):
    """One operator with one product: ``devices`` that pass come last."""

    id: str
    named: Named
    count: DeviceCount
    devices: tuple[DeviceReach, ...]

    @property
    def right(self) -> tuple[DeviceReach, ...]:
        """Devices on which every case passes."""
        return tuple(one for one in self.devices if one.since.passes)

    @property
    def others(self) -> tuple[DeviceReach, ...]:
        """Devices on which some case does not pass."""
        return tuple(one for one in self.devices if not one.since.passes)


class OperatorView(msgspec.Struct, frozen=True, kw_only=True):
    """The page of an operator.

    Attributes:
        home: Its address on any site, such as ``o/Resize``.
        products: The products that tried it.
        cases: Label of a case and its profile -> count for each of ``products``; None if it was not tried.
    """

    name: str
    home: str
    products: tuple[ProductReach, ...]
    cases: Mapping[tuple[str, str], tuple[DeviceCount | None, ...]]


def operator_home(name: str) -> str:
    """Return the address of an operator's page; a name that is no plain file name has a digest for it."""
    plain = _PLAIN.fullmatch(name) is not None
    return f"o/{name if plain else hashlib.sha256(name.encode()).hexdigest()[:16]}"


def product_id(named: Named) -> str:
    """Return the id of a product, the same on any site."""
    return hashlib.sha256(msgspec.json.encode(named)).hexdigest()[:8]


def operator_views(lines: Iterable[Line]) -> tuple[OperatorView, ...]:
    """Return a view for each operator that some case has alone, by name."""
    products = counted_lines(lines)
    reaches: dict[str, dict[Named, list[DeviceReach]]] = {}
    cases: dict[str, dict[tuple[str, str], dict[Named, list[PassingSince]]]] = {}
    for named, on_device in products.items():
        for line in on_device.values():
            for name, reach, by_case in _of_line(line):
                reaches.setdefault(name, {}).setdefault(named, []).append(reach)
                for key, since in by_case.items():
                    of_case = cases.setdefault(name, {}).setdefault(key, {})
                    of_case.setdefault(named, []).append(since)
    return tuple(_view(name, found, cases[name]) for name, found in sorted(reaches.items()))


def _of_line(line: Line) -> Iterable[tuple[str, DeviceReach, dict[tuple[str, str], PassingSince]]]:
    alone = [history for history in case_histories(line) if len(history.case.ops) == 1]
    for name, evidence in operator_evidence(line).items():
        its = [history for history in alone if name in history.case.ops]
        by_case = {(case_label(one.case), one.profile): since_of([one]) for one in its}
        yield name, DeviceReach(line=line, evidence=evidence, since=since_of(its)), by_case


def _view(
    name: str,
    found: Mapping[Named, Sequence[DeviceReach]],
    cases: Mapping[tuple[str, str], Mapping[Named, Sequence[PassingSince]]],
) -> OperatorView:
    return OperatorView(
        name=name,
        home=operator_home(name),
        products=tuple(
            ProductReach(
                id=product_id(named),
                named=named,
                count=count_of([one.since for one in devices]),
                devices=tuple(sorted(devices, key=lambda one: (one.since.passes, one.line.one.device))),
            )
            for named, devices in found.items()
        ),
        cases={
            key: tuple(count_of(of_case[named]) if named in of_case else None for named in found)
            for key, of_case in sorted(cases.items())
        },
    )


def count_of(devices: Sequence[PassingSince]) -> DeviceCount:
    """Return how many devices pass, and since when: what one device shows counts for the others."""
    passing = [one for one in devices if one.since is not None]
    failed = newest_of(one.failed for one in passing if one.failed is not None)
    starts = (one.since for one in passing if one.since is not None)
    later = (one for one in starts if failed is None or _version(one) > _version(failed))
    return DeviceCount(
        passing=len(passing),
        devices=len(devices),
        since=min(later, key=lambda entry: entry.order, default=None),
        from_start=failed is None,
        broke=newest_of(one.broke for one in devices if one.broke is not None),
    )


def _version(entry: AcceptedSubmission) -> tuple[object, ...]:
    return (
        version_order(entry.statement.product.version),
        version_order(entry.statement.environment.onnxruntime),
    )
