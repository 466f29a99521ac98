"""Comparisons of submissions: versions of one provider, and operators over providers."""

from collections.abc import Iterable, Mapping

import msgspec

from harness.catalog.catalog import find_provider
from harness.conformance.level import Standing
from harness.publication.entry import Entry


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Cases that a version gained and lost since an older one, by label."""

    older: Entry
    gained: tuple[str, ...]
    lost: tuple[str, ...]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a provider on its devices; ``newest`` has its newest submission of each profile."""

    newest: Mapping[str, Entry]

    @property
    def one(self) -> Entry:
        """Any of its submissions: product and environment are the same."""
        return next(iter(self.newest.values()))


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """One operator in one row, from cases of this operator alone.

    Attributes:
        passed: Right, and computed by the provider alone.
        tried: All of these cases.
        failed: Those that failed.
        types: Element types of passed cases; ``other_types`` are those of the rest alone.
        opsets: ``(version, passed, tried)``.
        listed: Whether the catalogue lists the operator as documented; None without a list.
    """

    passed: int
    tried: int
    failed: int
    types: tuple[str, ...]
    other_types: tuple[str, ...]
    opsets: tuple[tuple[int, int, int], ...]
    listed: bool | None

    @property
    def tone(self) -> str:
        """``passed`` for all, ``partial`` for some, else ``failed`` or ``unsupported``."""
        if not self.passed:
            return "failed" if self.failed else "unsupported"
        return "passed" if self.passed == self.tried else "partial"

    @property
    def differs(self) -> str:
        """How the evidence differs from the documents; empty if it does not."""
        if self.listed and not self.passed:
            return "documented, but none passes"
        return "passes, but not documented" if self.listed is False and self.passed else ""


def rows_of(entries: Iterable[Entry]) -> tuple[Row, ...]:
    """Return the rows of the start page, by provider, the newest version first."""
    found: dict[tuple[object, ...], dict[str, Entry]] = {}
    for entry in sorted(entries, key=lambda one: (one.statement.created, one.id)):
        key = (*entry.place, entry.statement.environment.onnxruntime, entry.statement.product.version)
        found.setdefault(key, {})[entry.statement.profile.label] = entry
    rows = sorted(
        (Row(newest=newest) for newest in found.values()), key=lambda row: row.one.order, reverse=True
    )
    return tuple(sorted(rows, key=lambda row: row.one.place))  # stable: the newest version stays first


def changes_since(entry: Entry, entries: Iterable[Entry]) -> Changes | None:
    """Return what changed since the version before, on the same devices in the same profile."""
    older = [
        other
        for other in entries
        if other.place == entry.place
        and other.statement.profile == entry.statement.profile
        and other.order < entry.order
    ]
    if not older:
        return None
    before = max(older, key=lambda one: one.order)
    then, now = _passed(before), _passed(entry)
    return Changes(older=before, gained=tuple(sorted(now - then)), lost=tuple(sorted(then - now)))


def operators_of(row: Row) -> dict[str, Reach]:
    """Return the reach of each operator that some case of the row has alone."""
    provider = find_provider(row.one.statement.environment.provider)
    documents = provider.operators.operators if provider and provider.operators else {}
    results: dict[str, list[tuple[tuple[str, ...], int, Standing]]] = {}
    for entry in row.newest.values():
        for one in entry.result.cases:
            if len(one.case.ops) == 1:
                (name,) = one.case.ops
                results.setdefault(name, []).append((one.case.types, one.case.opset, one.standing))
    return {name: _reach(name, found, documents) for name, found in sorted(results.items())}


def _reach(
    name: str, found: list[tuple[tuple[str, ...], int, Standing]], documents: Mapping[str, str]
) -> Reach:
    types = {each for kinds, _, standing in found if standing is Standing.PASSED for each in kinds}
    all_types = {each for kinds, _, _ in found for each in kinds}
    opsets: dict[int, list[bool]] = {}
    for _, opset, standing in found:
        opsets.setdefault(opset, []).append(standing is Standing.PASSED)
    # The catalogue writes ``com.microsoft:Gelu``, a profile ``com.microsoft.Gelu``.
    spelled = ":".join(name.rsplit(".", 1))
    return Reach(
        passed=sum(standing is Standing.PASSED for *_, standing in found),
        tried=len(found),
        failed=sum(standing is Standing.FAILED for *_, standing in found),
        types=tuple(sorted(types)),
        other_types=tuple(sorted(all_types - types)),
        opsets=tuple((opset, sum(passed), len(passed)) for opset, passed in sorted(opsets.items())),
        listed=spelled in documents if documents else None,
    )


def _passed(entry: Entry) -> set[str]:
    return {one.label for one in entry.result.cases if one.standing is Standing.PASSED}
