"""The next step for an outcome: its facts if they suffice for a verdict, else a question."""

from collections.abc import Callable, Sequence

import msgspec

from harness.core.cell import Cell
from harness.core.facts import CPU_PROVIDER, Facts, facts_for_other_inputs
from harness.core.lru_cache import LruCache
from harness.core.missing import Need, missing
from harness.core.precision import AS_IS
from harness.core.scenario import GENERATE, PLAIN
from harness.core.value import NamedValues
from harness.corpus.case import Case
from harness.corpus.revealed import hidden
from harness.corpus.zeroed import may_be_zeroed
from harness.engine.agreed import goldens_of, with_agreement
from harness.engine.cases import Cases
from harness.engine.early_end import clean_error, tells_no_memory
from harness.engine.evidence import Evidence, Rule, rule_of, with_placement
from harness.engine.inquiry import Answer, Inquiry, broken_of
from harness.engine.measure import measure, with_generation, with_unnoticed
from harness.engine.other_inputs import (
    Goldens,
    differs_for_others,
    judges_others,
    judging_goldens,
    outcome_of_others,
    with_error_of_others,
    with_others,
)
from harness.engine.outcome import Died, Hung, Raised, Ran
from harness.engine.references import References
from harness.engine.task import HOME, Kind, Question
from harness.golden.golden import Golden
from harness.plan.plan import Plan

_RULES = 64
"""Number of rules that are kept: a cell needs its rule several times, mostly in a row."""

Judged = Ran | Raised | Died | Hung
"""Outcomes whose verdict needs answers of the CPU provider."""


class _Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A run to be judged, and the questions that can be asked about it.

    ``about`` and ``case`` as in ``NextStep.of``.

    ``raised`` is whether it ended with an error.
    """

    about: Question
    cell: Cell
    case: Case
    rule: Rule
    askable: frozenset[Need]
    raised: bool = False


class NextStep(msgspec.Struct, frozen=True):
    """Measures outcomes, and finds the question to ask first.

    Attributes:
        needs: The questions that may be asked at all.
        rules: The rules of the most recently judged cells: id of a cell and digest of its case -> rule.
    """

    plan: Plan
    cases: Cases
    references: References
    needs: frozenset[Need] = frozenset(Need)
    rules: LruCache[tuple[str, str], Rule] = msgspec.field(default_factory=lambda: LruCache(_RULES))

    @property
    def _inquiry(self) -> Inquiry:
        return Inquiry(plan=self.plan, cases=self.cases, references=self.references)

    def of(self, about: Question, cell: Cell, case: Case, outcome: Judged) -> Facts | Question:
        """Return the facts of a cell, or a question that has to be answered first.

        It measures with the known answers; while one is missing, it adds that answer and measures again.
        ``about`` is the model in the form that the cell runs, ``case`` the same, loaded.
        """
        provider = self.plan.target(cell.target).provider[0]
        rule = self.rule(cell, case)
        if about.scenario == GENERATE:
            rule = msgspec.structs.replace(rule, generation=self.cases.generation(case))
        if isinstance(outcome, Ran):
            rule = with_placement(rule, outcome.placement)
        evidence = self._goldens(about, case, rule) if isinstance(outcome, Ran) else Evidence()
        if isinstance(evidence, Question):
            return evidence
        askable = self._askable(cell, case, outcome, rule) & self.needs
        asking = _Asking(
            about=about,
            cell=cell,
            case=case,
            rule=rule,
            askable=askable,
            raised=isinstance(outcome, Raised),
        )
        settled = self._settle(asking, evidence, lambda known: measure(outcome, case, known, rule, provider))
        if isinstance(settled, Question):
            return settled
        facts, evidence = settled
        facts = with_agreement(facts, case, outcome, evidence, rule)
        if isinstance(outcome, Ran) and _ran_others(outcome) and rule.generation is None:
            return self._with_others(asking, evidence, outcome, facts)
        return with_generation(facts, case, outcome, evidence, rule)

    def _settle(
        self,
        asking: _Asking,
        evidence: Evidence,
        measured: Callable[[Evidence], Facts],
        judged: Callable[[Facts], Facts] = lambda facts: facts,
    ) -> tuple[Facts, Evidence] | Question:
        """Measure and ask until nothing is missing for a judgement.

        ``judged`` returns the facts to be judged.
        """
        about, cell, case, rule = asking.about, asking.cell, asking.case, asking.rule
        facts = measured(evidence)
        while True:
            # A cell of many ways has many runs, which references repeat; so they are asked only if it fails.
            by_usual = rule.generation is None
            need = missing(judged(facts), rule.policy, asking.askable, by_usual=by_usual)
            if need is None:
                return facts, evidence
            if need is Need.WIDER:
                wider = self._inquiry.with_wider(evidence, about.for_golden(), case, rule)
                if isinstance(wider, Question):
                    return wider
                evidence = wider
                facts = measured(evidence)
                continue
            answer = self._inquiry.ask(need, about, cell, case, rule)
            if isinstance(answer, Question):
                return answer
            evidence = _with(evidence, need, answer)
            if need is Need.OWN_CPU and isinstance(answer, Golden) and asking.raised:
                evidence = msgspec.structs.replace(evidence, broken=broken_of(answer, case))
            if need is Need.REFERENCES:
                evidence = msgspec.structs.replace(evidence, doubts=self._inquiry.doubts(about, case, rule))
            # After the usual last question no value needs another comparison.
            facts = with_unnoticed(facts, evidence) if need is Need.ZEROED else measured(evidence)

    def rule(self, cell: Cell, case: Case) -> Rule:
        """Return the rule that measures and judges a cell; ``case`` is its model in the form that it runs."""
        key = (cell.id, case.digest)
        rule = self.rules.get(key)
        if rule is None:
            rule = rule_of(self.plan, cell, case)
            self.rules.put(key, rule, 0)
        return rule

    def goldens(self, about: Question, cell: Cell, case: Case) -> Sequence[NamedValues]:
        """Return the right outputs of each data set of a cell that has been measured; empty if unknown."""
        evidence = self._goldens(about, case, self.rule(cell, case))
        return () if isinstance(evidence, Question) else goldens_of(case, evidence)

    def _with_others(self, first: _Asking, known: Evidence, outcome: Ran, facts: Facts) -> Facts | Question:
        """Return facts with those that judge the run with other inputs, in the same way as the first one.

        Nothing is asked if its bits equal those of the CPU provider, or if the first answer does not pass
        anyway.
        """
        case, rule = first.case, first.rule
        own = self.references.find(first.about.for_golden(), case)
        right = own.other if own is not None else ()
        if right and not outcome.other_error and not differs_for_others(case, right, outcome.other or ()):
            return facts
        if not judges_others(facts, case, rule.policy):
            return facts
        about = msgspec.structs.replace(first.about, others=True)
        others = self.cases.of(about)
        if not isinstance(others, Case):
            return facts  # the agent has run the same inputs
        evidence = self._goldens(about, others, rule)
        if isinstance(evidence, Question):
            return evidence
        run = outcome_of_others(outcome)
        askable = frozenset[Need]() if rule.policy.converted else first.askable - {Need.ZEROED, Need.PLAYED}
        asking = msgspec.structs.replace(first, about=about, case=others, askable=askable)
        goldens = judging_goldens(known, evidence)
        if outcome.other_error:
            asked = msgspec.structs.replace(first, about=about, case=others)
            return self._with_error(asked, facts, clean_error(outcome.other_error, case.model_path), goldens)

        def measured(evidence: Evidence) -> Facts:
            found = measure(run, others, evidence, rule, facts.provider)
            return with_others(facts, found, outcome, goldens, rule.policy.tolerance_for)

        settled = self._settle(asking, evidence, measured, facts_for_other_inputs)
        return settled if isinstance(settled, Question) else settled[0]

    def _with_error(self, others: _Asking, facts: Facts, error: str, goldens: Goldens) -> Facts | Question:
        """Return facts with the error that the EP raises for other inputs."""
        undefined = self._inquiry.ask(Need.UNDEFINED, others.about, others.cell, others.case, others.rule)
        if isinstance(undefined, Question):
            return undefined
        excused = "undefined by ONNX" if undefined else "out of memory" if tells_no_memory(error) else ""
        return with_error_of_others(facts, error, goldens, excused)

    def _goldens(self, about: Question, case: Case, rule: Rule) -> Evidence | Question:
        """Return the golden; for a converted model also that of the unconverted model."""
        own = about.for_golden()
        golden = self._inquiry.find(own, case)
        if golden is None:
            return own
        if not rule.policy.converted:
            return Evidence(golden=golden)
        full = self._inquiry.answered(own.for_golden(AS_IS))
        if isinstance(full, Question):
            return full
        rounded = self._inquiry.answered(msgspec.structs.replace(own, kind=Kind.ROUNDED))
        if isinstance(rounded, Question):
            return rounded
        return Evidence(golden=rounded if rounded.status == "ok" else golden, full=full)

    def _askable(self, cell: Cell, case: Case, outcome: Judged, rule: Rule) -> frozenset[Need]:
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
            return frozenset(needs)
        needs.add(Need.REPEATED)
        if rule.generation is not None:
            needs.add(Need.PLAYED)
        if target.runtime != HOME and target.provider[0] != CPU_PROVIDER:
            needs.add(Need.OWN_CPU)
        if hidden(case):
            needs.add(Need.REVEALED)
        if case.facts.partials:
            needs.add(Need.UNDEFINED)
        if may_be_zeroed(case) and cell.axis("scenario") == PLAIN:
            needs.add(Need.ZEROED)
        return frozenset(needs)


def _ran_others(outcome: Ran) -> bool:
    return outcome.other is not None or bool(outcome.other_error)


def _with(evidence: Evidence, need: Need, answer: Answer) -> Evidence:
    """Return evidence with the answer to a need; the field has the need's name."""
    value: object = answer
    if isinstance(answer, Golden) and need is Need.REPEATED:
        value = answer.disputed
    return msgspec.structs.replace(evidence, answered=(*evidence.answered, need.value), **{need.value: value})
