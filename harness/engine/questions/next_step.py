"""The next step for an outcome: its facts if they suffice for a verdict, else a question."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from harness.core.lru_cache import LruCache
from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER, Facts, facts_for_other_inputs
from harness.core.records.scenario import GENERATE, PLAIN
from harness.core.values.value import NamedValues
from harness.core.verdicts.missing import Need, missing
from harness.corpus.case import Case
from harness.corpus.derived.inner_outputs import hidden_tensors
from harness.corpus.derived.zeroing import may_be_zeroed
from harness.engine.answers.cases import Cases
from harness.engine.answers.evidence import CellRule, Evidence, rule_of, with_placement
from harness.engine.answers.other_inputs_case import (
    differs_for_others,
    judges_others,
    judging_goldens,
    outcome_of_others,
    with_error_of_others,
    with_others,
)
from harness.engine.answers.references import References
from harness.engine.measuring.agreement_measure import goldens_of, with_agreement
from harness.engine.measuring.early_end import clean_error, tells_no_memory
from harness.engine.measuring.measure import measure, with_answer, with_generation
from harness.engine.questions.inquiry import Inquiry, broken_of
from harness.engine.tasks.measurement import Measurement
from harness.engine.tasks.outcome import Died, Hung, Raised, Ran
from harness.engine.tasks.task import HOME, Question, QuestionKind
from harness.plan.plan import Plan

_WAITING = 4096
"""Outcomes that wait for an answer, and of which is kept what is measured; others are measured anew."""

OpenOutcome = Ran | Raised | Died | Hung
"""Outcomes whose verdict needs answers of the CPU provider."""


class _Trial(msgspec.Struct, kw_only=True):
    """One outcome, as far as it is measured; ``about`` and ``cell`` as in ``NextStep.of``.

    Attributes:
        digest: That of the case, which is not kept while the outcome waits: its inputs take memory.
        askable: What can be asked about it.
        evidence: What has been answered; None before the golden is.
        facts: What is measured with that.
        other: The run with other inputs; None before it is measured.
    """

    about: Question
    cell: Cell
    digest: str
    outcome: OpenOutcome
    provider: str
    rule: CellRule
    askable: frozenset[Need]
    evidence: Evidence | None = None
    facts: Facts = Facts()
    other: "_Trial | None" = None

    @property
    def nbytes(self) -> int:
        """About the bytes that it takes: its outputs, and as much for the answers to compare with."""
        return 2 * self.outcome.nbytes if isinstance(self.outcome, Ran) else 0


class NextStep(msgspec.Struct, frozen=True):
    """Measures outcomes, and finds the question to ask first.

    Attributes:
        needs: What may be asked at all.
        trials: Cell and draw -> its outcome that waits for an answer.
        fingerprints: Target -> place -> the environment that the first agent there reported.
    """

    plan: Plan
    cases: Cases
    references: References
    needs: frozenset[Need] = frozenset(Need)
    trials: LruCache[tuple[str, int], _Trial] = msgspec.field(default_factory=lambda: LruCache(_WAITING))
    fingerprints: dict[str, dict[str, Mapping[str, Any]]] = {}

    @property
    def _inquiry(self) -> Inquiry:
        return Inquiry(plan=self.plan, cases=self.cases, references=self.references)

    def of(self, about: Question, cell: Cell, case: Case, outcome: OpenOutcome) -> Measurement | Question:
        """Return what is measured of a cell, or a question that has to be answered before.

        Measures with what is known, and adds one answer after the other. When a question is answered, it goes
        on from there. ``about`` is the model in the form that the cell runs, ``case`` the same, loaded.
        """
        key = cell.id, about.draw
        trial = self.trials.get(key)
        self.trials.drop(key)
        if trial is None or trial.outcome is not outcome or trial.digest != case.digest:
            trial = self._trial(about, cell, case, outcome)
        facts = self._measured(trial, case)
        if isinstance(facts, Question):
            self.trials.put(key, trial, trial.nbytes)
            return facts
        return Measurement(facts, trial.rule.policy)

    def _trial(self, about: Question, cell: Cell, case: Case, outcome: OpenOutcome) -> _Trial:
        chosen = outcome.scenario.get("chosen", "") if isinstance(outcome, Ran) else ""
        seen = self.fingerprints.get(cell.target, {}).values()
        rule = rule_of(self.plan, cell, case, str(chosen), seen)
        if about.scenario == GENERATE:
            rule = msgspec.structs.replace(rule, generation=self.cases.generation(case))
        if isinstance(outcome, Ran):
            rule = with_placement(rule, outcome.placement)
        return _Trial(
            about=about,
            cell=cell,
            digest=case.digest,
            outcome=outcome,
            provider=self.plan.target(cell.target).provider[0],
            rule=rule,
            askable=self._askable(cell, case, outcome, rule) & self.needs,
        )

    def _measured(self, trial: _Trial, case: Case) -> Facts | Question:
        """Return the facts of a cell, or what has to be asked before."""
        outcome, rule = trial.outcome, trial.rule
        evidence = self._settled(trial, case)
        if isinstance(evidence, Question):
            return evidence
        facts = trial.facts
        if isinstance(outcome, Ran) and _ran_others(outcome) and rule.generation is None:
            found = self._with_others(trial, case, outcome, evidence)
            if isinstance(found, Question):
                return found
            facts = found
        facts = with_agreement(facts, case, outcome, evidence, rule)
        return with_generation(facts, case, outcome, evidence, rule)

    def _settled(
        self,
        trial: _Trial,
        case: Case,
        judged: Callable[[Facts, Evidence], Facts] = lambda facts, _: facts,
    ) -> Evidence | Question:
        """Measure and ask until nothing is missing to judge; ``judged`` are the facts that are about it."""
        about, cell, rule = trial.about, trial.cell, trial.rule
        evidence = trial.evidence
        if evidence is None:
            found = self._goldens(trial, case) if isinstance(trial.outcome, Ran) else Evidence()
            if isinstance(found, Question):
                return found
            trial.facts = measure(trial.outcome, case, found, rule, trial.provider)
            evidence = trial.evidence = found
        while True:
            # A cell of many ways has many runs, which references repeat; so they are asked only if it fails.
            by_usual = rule.generation is None
            need = missing(judged(trial.facts, evidence), rule.policy, trial.askable, by_usual=by_usual)
            if need is None:
                return evidence
            known = self._inquiry.with_answer(need, evidence, about, cell, case, rule)
            if isinstance(known, Question):
                return known
            if need is Need.OWN_CPU and isinstance(trial.outcome, Raised) and known.own_cpu is not None:
                known = msgspec.structs.replace(known, broken=broken_of(known.own_cpu, case))
            trial.facts = with_answer(need, trial.facts, trial.outcome, case, known, rule)
            evidence = trial.evidence = known

    def goldens(self, about: Question, case: Case, facts: Facts) -> Sequence[NamedValues]:
        """Return the right outputs of each data set of a cell that has been measured; empty if unknown."""
        evidence = self._golden(about, case, converted=facts.converted)
        return () if isinstance(evidence, Question) else goldens_of(case, evidence)

    def _with_others(self, trial: _Trial, case: Case, outcome: Ran, known: Evidence) -> Facts | Question:
        """Return facts with what judges the run with other inputs, like that of the first ones.

        Nothing is asked if its bits equal those of the CPU provider, or if the first answer does not pass
        anyway.
        """
        facts, rule = trial.facts, trial.rule
        if trial.other is None and not self._judges_others(trial, case, outcome):
            return facts
        about = msgspec.structs.replace(trial.about, others=True)
        others = self.cases.of(about)
        if not isinstance(others, Case):
            return facts  # the agent has run the same inputs
        other = trial.other = trial.other or _other(trial, about, others, outcome)
        if outcome.other_error:
            return self._with_error(other, others, facts, outcome.other_error, known)

        def joined(found: Facts, evidence: Evidence) -> Facts:
            goldens = judging_goldens(known, evidence)
            return with_others(facts, found, outcome, goldens, rule.policy.tolerance_for)

        def judged(found: Facts, evidence: Evidence) -> Facts:
            return facts_for_other_inputs(joined(found, evidence))

        settled = self._settled(other, others, judged)
        return settled if isinstance(settled, Question) else joined(other.facts, settled)

    def _judges_others(self, trial: _Trial, case: Case, outcome: Ran) -> bool:
        own = self.references.find(trial.about.for_golden(), case)
        right = own.other if own is not None else ()
        same = right and not outcome.other_error
        if same and not differs_for_others(case, right, outcome.other or ()):
            return False
        return judges_others(trial.facts, case, trial.rule.policy)

    def _with_error(
        self, other: _Trial, case: Case, facts: Facts, error: str, known: Evidence
    ) -> Facts | Question:
        """Return facts with the error that the EP raises for other inputs."""
        evidence = self._goldens(other, case)
        if isinstance(evidence, Question):
            return evidence
        undefined = self._inquiry.ask(Need.UNDEFINED, other.about, other.cell, case, other.rule)
        if isinstance(undefined, Question):
            return undefined
        error = clean_error(error, case.model_path)
        excused = "undefined by ONNX" if undefined else "out of memory" if tells_no_memory(error) else ""
        return with_error_of_others(facts, error, judging_goldens(known, evidence), excused)

    def _goldens(self, trial: _Trial, case: Case) -> Evidence | Question:
        return self._golden(trial.about, case, converted=trial.rule.policy.converted)

    def _golden(self, about: Question, case: Case, *, converted: bool) -> Evidence | Question:
        """Return the golden; of a converted model also that of the given model."""
        own = about.for_golden()
        golden = self._inquiry.find(own, case)
        if golden is None:
            return own
        if not converted:
            return Evidence(golden=golden)
        full = self._inquiry.answered(self.cases.given(own))
        if isinstance(full, Question):
            return full
        if case.sibling is not None:
            return Evidence(golden=golden, full=full)
        rounded = self._inquiry.answered(msgspec.structs.replace(own, kind=QuestionKind.ROUNDED))
        if isinstance(rounded, Question):
            return rounded
        return Evidence(golden=rounded if rounded.status == "ok" else golden, full=full)

    def _askable(self, cell: Cell, case: Case, outcome: OpenOutcome, rule: CellRule) -> frozenset[Need]:
        """Return the questions that can be asked about a model on a target."""
        if case.frozen is not None:
            # The model is known to be good, and the golden to be right: the CPU provider excuses nothing.
            return frozenset({Need.NOISE}) if isinstance(outcome, Ran) else frozenset()
        target = self.plan.target(cell.target)
        if not isinstance(outcome, Ran):
            return frozenset({Need.OWN_CPU})
        needs = {Need.NOISE, Need.WIDER} if rule.wider else {Need.NOISE}
        if not case.facts.origins.by_chance:  # references would draw other numbers
            needs.add(Need.REFERENCES)
        if rule.policy.converted:
            return frozenset(needs | _of_variants(case))
        needs.add(Need.REPEATED)
        if rule.generation is not None:
            needs.add(Need.PLAYED)
        if target.runtime != HOME and target.provider[0] != CPU_PROVIDER:
            needs.add(Need.OWN_CPU)
        if hidden_tensors(case):
            needs.add(Need.REVEALED)
        if case.facts.partials:
            needs.add(Need.UNDEFINED)
        if may_be_zeroed(case) and cell.axis("scenario") == PLAIN:
            needs.add(Need.ZEROED)
        return frozenset(needs)


def _ran_others(outcome: Ran) -> bool:
    return outcome.other is not None or bool(outcome.other_error)


def _of_variants(case: Case) -> set[Need]:
    """Return what a variant of a package may need more than a converted model."""
    return {Need.REVEALED} if case.sibling is not None and hidden_tensors(case) else set()


def _other(trial: _Trial, about: Question, case: Case, outcome: Ran) -> _Trial:
    """Return the run with other inputs as an outcome of its own."""
    converted = trial.rule.policy.converted
    return _Trial(
        about=about,
        cell=trial.cell,
        digest=case.digest,
        outcome=outcome_of_others(outcome),
        provider=trial.provider,
        rule=trial.rule,
        askable=frozenset() if converted else trial.askable - {Need.ZEROED, Need.PLAYED},
    )
