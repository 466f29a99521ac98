"""Operators by provider: how many cases pass, with which element types and opsets."""

from collections.abc import Iterable, Mapping

import msgspec

from harness.annex.conformance.level import CaseResult, Standing
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.lines import Line
from harness.catalog.catalog import find_provider

_WORSE = (Standing.PASSED, Standing.MISSING, Standing.OPEN, Standing.FAILED)


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The reach of one provider over some cases.

    Attributes:
        passed: Right, and computed by the provider alone.
        types: Element types of passed cases; ``other_types`` are those that only the other cases have.
        opsets: ``(version, passed, tried)``.
        listed: Whether the catalogue lists the operator as documented; None without a list.
    """

    passed: int
    tried: int
    failed: int
    types: tuple[str, ...]
    other_types: tuple[str, ...]
    opsets: tuple[tuple[int, int, int], ...]
    listed: bool | None = None

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


class OperatorReach(msgspec.Struct, frozen=True, kw_only=True):
    """The reach of one operator on one line.

    Attributes:
        reach: Over all profiles; a case in several of them counts once.
        failing: The submissions with cases that do not pass, each with the label of the first.
    """

    reach: Reach
    failing: tuple[tuple[AcceptedSubmission, str], ...]


def operator_evidence(line: Line) -> dict[str, OperatorReach]:
    """Return the evidence for each operator that some case of the newest submissions has alone."""
    provider = find_provider(line.one.statement.environment.provider)
    documents = provider.operators.operators if provider and provider.operators else {}
    results: dict[str, list[tuple[AcceptedSubmission, CaseResult]]] = {}
    for entry in line.newest.values():
        for one in entry.result.cases:
            if len(one.case.ops) == 1:
                (name,) = one.case.ops
                results.setdefault(name, []).append((entry, one))
    return {
        name: OperatorReach(
            reach=reach_of(_distinct(one for _, one in found), listed=_is_listed(name, documents)),
            failing=_failing(found),
        )
        for name, found in sorted(results.items())
    }


def reach_of(results: Iterable[CaseResult], *, listed: bool | None = None) -> Reach:
    """Return the reach over some cases; ``listed`` is as in ``Reach``."""
    found = tuple(results)
    passing = [one for one in found if one.standing is Standing.PASSED]
    types = {each for one in passing for each in one.case.types}
    opsets: dict[int, list[bool]] = {}
    for one in found:
        opsets.setdefault(one.case.opset, []).append(one.standing is Standing.PASSED)
    return Reach(
        passed=len(passing),
        tried=len(found),
        failed=sum(one.standing is Standing.FAILED for one in found),
        types=tuple(sorted(types)),
        other_types=tuple(sorted({each for one in found for each in one.case.types} - types)),
        opsets=tuple((opset, sum(passed), len(passed)) for opset, passed in sorted(opsets.items())),
        listed=listed,
    )


def _distinct(results: Iterable[CaseResult]) -> Iterable[CaseResult]:
    """Return the worst result of each case: several profiles may have the same one."""
    worst: dict[tuple[str, ...], CaseResult] = {}
    for one in results:
        key = (one.case.model, one.case.inputs, one.case.golden, one.case.scenario)
        if key not in worst or _WORSE.index(one.standing) > _WORSE.index(worst[key].standing):
            worst[key] = one
    return worst.values()


def _is_listed(name: str, documents: Mapping[str, str]) -> bool | None:
    # The catalogue writes ``com.microsoft:Gelu``, a profile ``com.microsoft.Gelu``.
    return ":".join(name.rsplit(".", 1)) in documents if documents else None


def _failing(
    found: Iterable[tuple[AcceptedSubmission, CaseResult]],
) -> tuple[tuple[AcceptedSubmission, str], ...]:
    first: dict[str, tuple[AcceptedSubmission, str]] = {}
    for entry, one in found:
        if one.standing is not Standing.PASSED:
            first.setdefault(entry.id, (entry, one.label))
    return tuple(first.values())
