"""Facts that a record claims and that a reader derives: its cell, provider, verdict, family and expectation.

The plan names the cells, the matrix has the policies and expectations, and the rules of this version give the
verdict. Stored values are not trusted; where they differ, this is reported.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType

import msgspec

from harness.core.comparison.policy import Policy
from harness.core.comparison.policy_terms import policy_text
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.records.run_info import RunInfo, TargetExit
from harness.core.records.verdict import Family, Verdict
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.later_words import what_is_wrong
from harness.core.verdicts.decide import judged_again, verdict_of
from harness.doors import FROZEN_POLICIES, behind, load_registered
from harness.plan.expectation import ALL_CLEAN, is_expected, is_expected_exit
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.surroundings import surroundings_of
from harness.plan.tolerance_entry import policy_of
from harness.plan.tolerance_policy import cell_of

FrozenSuite = tuple[str, Mapping[tuple[str, str], Policy]]
"""A suite's name in cells, and the policy of each model and scenario."""

_CHARS = 160


class Derived:
    """Derives the records of one run, one after another.

    Args:
        info: ``run.json``.
        planned: Ids of the planned cells; None if the run folder does not name them.
    """

    def __init__(self, info: RunInfo, planned: tuple[str, ...] | None) -> None:
        self._info = info
        self._planned = None if planned is None else frozenset(planned)
        self._plan, self._problem = _plan_of(info)
        self._providers = self._plan.matrix.first_providers if self._plan is not None else {}
        self._frozen: dict[str, Mapping[tuple[str, str], Policy]] | None = None
        self._foreign: list[str] = []
        self.known: dict[str, str] = {}
        """Cell -> why the matrix expects its failure."""
        self._judged: dict[str, tuple[Record, Record]] = {}
        self._others: dict[str, list[str]] = {}

    @property
    def foreign(self) -> int:
        """Number of records that were left out because the plan has no such cell."""
        return len(self._foreign)

    def of(self, record: Record) -> Record | None:
        """Return a record with the derived facts, or None if the plan lacks its cell."""
        cell = cell_of(record)
        if cell.id != record.cell or not self._has(record):
            self._foreign.append(record.cell)
            return None
        derived = record
        if self._plan is not None:
            if record.provider != (provider := self._providers[record.target]):
                derived = msgspec.structs.replace(derived, provider=provider)
            derived = self._with_verdict(derived, cell, self._plan)
        family, expected = derived.verdict.family, self._expected(derived, cell)
        if derived.family is not family or derived.expected is not expected:
            derived = msgspec.structs.replace(derived, family=family, expected=expected)
        if derived is not record:
            self._note(record, derived)
        return derived

    def exits(self) -> dict[str, TargetExit]:
        """Return how the processes of each target ended, with the matrix's expectation."""
        found = {}
        for name, one in self._info.exits.items():
            verdicts: tuple[Verdict, ...] = ()
            if self._plan is not None:
                if name not in self._providers:
                    continue
                verdicts = self._plan.exit_verdicts(name, self._info.environment_of(name, ""))
            expected = is_expected_exit(verdicts, unclean=bool(one.unclean))
            found[name] = msgspec.structs.replace(
                one,
                verdict=Verdict.UNCLEAN_EXIT if one.unclean else None,
                expected=expected,
                reason=one.reason if one.unclean else "" if expected else ALL_CLEAN,
            )
        return found

    def simulated(self) -> dict[str, str]:
        """Return target -> the program that stands for its accelerator, for targets with one."""
        found = {}
        for name in self._info.targets if self._plan is not None else ():
            if self._plan is not None and name in self._providers:
                target = self._plan.target(name)
                seen = surroundings_of(self._info.targets[name], target.provider, target.device)
                found[name] = one_line(seen.simulated_by, _CHARS)
        return {name: by for name, by in found.items() if by}

    def told(self) -> Iterator[str]:
        """Yield the differences from the stored values, one line each."""
        if self._problem:
            yield (
                f"the matrix of run.json cannot be read, so verdicts are as stored, and no failure is "
                f"expected: {self._problem}"
            )
        if self._foreign:
            yield (
                f"{_records(self._foreign)} of a cell that the plan does not have, or with fields of another "
                "cell; left out"
            )
        if self._judged:
            old, new = next(iter(self._judged.values()))
            yield (
                f"{_records([*self._judged])} with another verdict than its facts give by the rules of this "
                f"version: {old.verdict} is stored, and {new.verdict} counts"
                + (f", judged by {policy_text(new.policy)}" if new.policy else "")
            )
        for field, cells in self._others.items():
            yield f"{_records(cells)} with another `{field}` than matrix and verdict give, which count"

    def _has(self, record: Record) -> bool:
        if self._plan is not None and record.target not in self._providers:
            return False
        return self._planned is None or record.cell in self._planned

    def _expected(self, record: Record, cell: Cell) -> bool:
        if self._plan is None:
            return is_expected(None, record.verdict)
        environment = self._info.environment_of(record.target, record.place)
        expectation, _ = self._plan.expectation_at(cell, environment, record.outputs, record.placement)
        expected = is_expected(expectation, record.verdict)
        if expectation is not None and expected and record.verdict.family is Family.FAILED:
            self.known[record.cell] = expectation.why(record.verdict)
        return expected

    def _with_verdict(self, record: Record, cell: Cell, plan: Plan) -> Record:
        policy = self._policy(record, cell, plan)
        if policy is None or verdict_of(record, policy) is record.verdict:
            return record
        return judged_again(record, policy)

    def _policy(self, record: Record, cell: Cell, plan: Plan) -> Policy | None:
        """Return the policy of a cell; None for a cell of a profile that this version lacks."""
        if self._frozen is None:
            self._frozen = dict(_frozen_policies(plan.matrix))
        if record.suite in self._frozen:
            return self._frozen[record.suite].get((record.model, cell.axis("scenario")))
        entry = plan.tolerance(cell) if plan.matrix.tolerance else None
        return policy_of(entry, record.precision, converted=record.converted)

    def _note(self, stored: Record, derived: Record) -> None:
        if derived.verdict is not stored.verdict:
            self._judged[stored.cell] = (stored, derived)
            return  # its family and expectation follow
        for field in ("family", "expected", "provider"):
            if getattr(stored, field) != getattr(derived, field):
                self._others.setdefault(field, []).append(stored.cell)


def is_plan_of(info: RunInfo, records: Sequence[Record]) -> bool:
    """Return whether the records of a complete run have the cells whose digest is in ``run.json``."""
    listing = "".join(f"{cell}\n" for cell in sorted(record.cell for record in records))
    return hashlib.sha256(listing.encode()).hexdigest() == info.plan


def _plan_of(info: RunInfo) -> tuple[Plan | None, str]:
    """Return a plan without cells but with the matrix's settings for each; else why there is none."""
    try:
        return Plan(matrix=msgspec.convert(info.matrix, Matrix), cells=()), ""
    except msgspec.ValidationError as error:
        return None, one_line(what_is_wrong(error), _CHARS)


def _frozen_policies(matrix: Matrix) -> Iterator[tuple[str, Mapping[tuple[str, str], Policy]]]:
    """Yield each frozen suite of a matrix, with the policy of each case, by model and scenario.

    A profile that this version lacks gives none.
    """
    for name in matrix.models.suites:
        kind, colon, rest = name.partition(":")
        if colon and kind in behind(FROZEN_POLICIES):
            policies_of: Callable[[str], FrozenSuite | None] = load_registered(
                FROZEN_POLICIES, kind, FunctionType
            )
            yield policies_of(rest) or ("-".join(rest.rsplit("@", 1)), {})


def _records(cells: list[str]) -> str:
    return f"{plural(len(cells), 'record')} (first: {one_line(cells[0], _CHARS)})"
