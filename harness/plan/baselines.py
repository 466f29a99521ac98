"""Baselines: known failures of targets on a class of machines, in addition to the entries of a matrix."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from harness.core.records.verdict import Family, Verdict
from harness.core.verdicts.ranks import is_less, is_worse
from harness.plan.device_class import class_differences, class_words
from harness.plan.expectation import Expectation, is_expected
from harness.plan.selector import Selector
from harness.plan.surroundings import Surroundings
from harness.plan.where import Where, conditions, holds

FIRST_RUN = "first run on this kind of machine: nothing to compare"

_ALWAYS_COUNT = (Verdict.CRASH, Verdict.HANG, Verdict.UNCLEAN_EXIT)
"""Failures that are unexpected on any machine, until a baseline or the matrix knows them."""

_UNKNOWN = tuple(
    verdict for verdict in Verdict if verdict.family is Family.FAILED and verdict not in _ALWAYS_COUNT
)
"""Failures that do not count without something to compare with."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """The known failures of one target on one class of machines; ``dict`` is for the cached index.

    Attributes:
        file: The file it was read from, for messages.
        target: Its name in the matrix.
        provider: The first provider of its chain.
        where: The class.
        failures: Verdict -> ids of the cells that fail with it, sorted. All others do not fail there.
        results: Verdict -> ids of the cells that have it and do not fail, sorted; empty in older files.
        shares: Id of a cell that passes in part -> part of its compute on the EP, from 0 to 1.
    """

    file: str
    target: str
    provider: str
    where: Where = Where()
    failures: dict[Verdict, tuple[str, ...]] = {}
    results: dict[Verdict, tuple[str, ...]] = {}
    shares: dict[str, float] = {}

    @cached_property
    def by_cell(self) -> dict[str, Verdict]:
        """Id of a cell -> how it fails."""
        return _by_cell(self.failures)

    @cached_property
    def others(self) -> dict[str, Verdict]:
        """Id of a cell that does not fail -> its result."""
        return _by_cell(self.results)


class BaselineFit(msgspec.Struct, frozen=True, kw_only=True):
    """The baseline that fits a target where it ran.

    Attributes:
        baseline: The fitting baseline; None on the first run on a kind of machine.
        why: Why it fits; or that none does, and how the nearest one differs from this machine. One line.
    """

    baseline: Baseline | None
    why: str


class KnownVerdicts(Expectation, frozen=True, kw_only=True):
    """The expectation of a matrix and baselines for a cell: these failures, or none at all.

    Attributes:
        entry: The ``[[expect]]`` entry that also counts, with its own reason; or None.
        words: What is expected, in words.
        before: The result that a baseline knows, if it is no failure and the file has it.
        less: Whether the EP has less of the compute than this baseline knows.
    """

    entry: Expectation | None
    words: str
    before: Verdict | None = None
    less: bool = False

    @property
    def wanted(self) -> str:
        """The expected verdicts, in words."""
        return self.words

    def allows(self, verdict: Verdict) -> bool:
        """Return whether a verdict is as expected. What is mended is told, and fails no run."""
        if verdict in self.verdicts:
            return True
        worse = self.before is not None and is_worse(self.before, verdict, less=self.less)
        return not worse and is_expected(None, verdict)

    def why(self, verdict: Verdict) -> str:
        """Return why an expected failure is expected."""
        from_matrix = self.entry is not None and verdict in self.entry.verdicts
        return self.entry.reason if self.entry is not None and from_matrix else self.reason


def fitting(baselines: Iterable[Baseline], target: str, provider: str, seen: Surroundings) -> BaselineFit:
    """Return the baseline of a target that fits a machine; of several, the one with the most conditions."""
    its = [one for one in baselines if one.target == target and one.provider == provider]
    fit = [one for one in its if holds(one.where, seen, "")[0]]
    if fit:
        chosen = max(fit, key=lambda one: len(conditions(one.where)))  # of equal ones the first
        return BaselineFit(baseline=chosen, why=f"{chosen.file} fits: {class_words(chosen.where)}")
    if not its:
        return BaselineFit(baseline=None, why=FIRST_RUN)
    differ = {id(one): class_differences(one.where, seen) for one in its}
    nearest = min(its, key=lambda one: len(differ[id(one)]))
    other = f"{nearest.file} is of another kind: {'; '.join(differ[id(nearest)])}"
    return BaselineFit(baseline=None, why=f"{FIRST_RUN}; {other}")


def with_baseline(
    entry: Expectation | None, cell: str, fit: BaselineFit, share: float | None
) -> KnownVerdicts:
    """Return what is expected of a cell where a baseline fits, or where none does.

    Args:
        entry: The ``[[expect]]`` entry that applies there. If a baseline fits, the entry counts only if it
            allows the baseline's verdict: it may be about other machines.
        cell: Its id.
        fit: The baseline that fits.
        share: Part of its compute on the EP, from 0 to 1, if known.
    """
    before, less = None, False
    of_entry = () if entry is None else entry.verdicts
    if fit.baseline is None:
        verdicts, words, reason = (*_UNKNOWN, *of_entry), "no crash and no hang", FIRST_RUN
    else:
        known, before = fit.baseline.by_cell.get(cell), fit.baseline.others.get(cell)
        expected_share = fit.baseline.shares.get(cell)
        less = is_less(expected_share, share)
        agrees = entry is not None and any(
            one is known if known else one.family is not Family.FAILED for one in of_entry
        )
        own = () if known is None else (known,)
        verdicts = (*own, *of_entry) if agrees else own
        failing = [one for one in verdicts if one.family is Family.FAILED]
        of_ep = f" with {expected_share:.0%} of the compute on the EP" if less else ""
        words = " or ".join(failing) or (f"{before}{of_ep}" if before else "no failure")
        is_known = verdicts or before
        reason = f"{'as' if is_known else 'it is not among the failures that'} {fit.baseline.file} knows"
    return KnownVerdicts(
        selector=Selector(),
        verdicts=tuple(dict.fromkeys(verdicts)),
        reason=reason,
        entry=entry,
        words=words,
        before=before,
        less=less,
    )


def _by_cell(of: Mapping[Verdict, tuple[str, ...]]) -> dict[str, Verdict]:
    return {cell: verdict for verdict, cells in of.items() for cell in cells}


def of_targets(baselines: Iterable[Baseline], providers: Mapping[str, Any]) -> tuple[Baseline, ...]:
    """Return the baselines of a matrix's targets; ``providers`` are the first providers of their chains."""
    return tuple(one for one in baselines if providers.get(one.target) == one.provider)
