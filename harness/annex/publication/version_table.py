"""Versions of a product by versions of onnxruntime: where it loads, and what is right and wrong there."""

from collections.abc import Iterable

import msgspec

from harness.annex.conformance.level import Standing
from harness.annex.publication.devices import device_id
from harness.annex.publication.entry import AcceptedSubmission, version_order
from harness.annex.publication.lines import Line
from harness.annex.publication.operator_page import Named, product_id


class VersionCount(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a product with one version of onnxruntime.

    Attributes:
        devices: Devices that submitted it; ``loads`` are those on which some case has a verdict.
        right: Cases that pass, over these devices; of one device and profile the newest submission counts.
        wrong: Cases that fail; the others are refused, not computed by the provider, or open.
        newest: The newest of these submissions.
    """

    devices: int
    loads: int
    right: int
    wrong: int
    cases: int
    newest: AcceptedSubmission

    @property
    def tone(self) -> str:
        """``failed`` if something is wrong or nothing loads, ``passed`` if all is right, else ``partial``."""
        if self.wrong or not self.loads:
            return "failed"
        return "passed" if self.right == self.cases else "partial"


class VersionTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table of one product; versions the newest first.

    Attributes:
        runtimes: Versions of onnxruntime, the columns.
        rows: ``(version of the product, a count for each column or None)``.
    """

    id: str
    named: Named
    runtimes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[VersionCount | None, ...]], ...]


def version_tables(lines: Iterable[Line]) -> tuple[VersionTable, ...]:
    """Return a table for each product, by vendor, name and provider."""
    found: dict[Named, dict[tuple[str, str], dict[tuple[str, str], AcceptedSubmission]]] = {}
    for line in lines:
        for version in line.versions:
            for profile, entries in version.entries.items():
                said = entries[0].statement
                named = (said.product.vendor, said.product.name, said.environment.provider)
                pair = (said.product.version, version.onnxruntime)
                latest = found.setdefault(named, {}).setdefault(pair, {})
                key = (device_id(entries[0]), profile)
                if key not in latest or latest[key].statement.created < said.created:
                    latest[key] = entries[0]
    return tuple(_table(named, pairs) for named, pairs in sorted(found.items()))


def _table(
    named: Named, pairs: dict[tuple[str, str], dict[tuple[str, str], AcceptedSubmission]]
) -> VersionTable:
    runtimes = sorted({runtime for _, runtime in pairs}, key=version_order, reverse=True)
    versions = sorted({version for version, _ in pairs}, key=version_order, reverse=True)
    return VersionTable(
        id=product_id(named),
        named=named,
        runtimes=tuple(runtimes),
        rows=tuple(
            (
                version,
                tuple(
                    _count(pairs[version, runtime]) if (version, runtime) in pairs else None
                    for runtime in runtimes
                ),
            )
            for version in versions
        ),
    )


def _count(latest: dict[tuple[str, str], AcceptedSubmission]) -> VersionCount:
    standings = [one.standing for entry in latest.values() for one in entry.result.cases]
    loaded = {
        device
        for (device, _), entry in latest.items()
        if any(one.standing is not Standing.OPEN for one in entry.result.cases)
    }
    return VersionCount(
        devices=len({device for device, _ in latest}),
        loads=len(loaded),
        right=standings.count(Standing.PASSED),
        wrong=standings.count(Standing.FAILED),
        cases=len(standings),
        newest=max(latest.values(), key=lambda entry: (entry.statement.created, entry.id)),
    )
