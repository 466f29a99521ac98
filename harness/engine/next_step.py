"""The next step for an outcome: its facts if they suffice for a verdict, else a question to ask."""

import contextlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from harness.core.cell import Cell
from harness.core.errors import UsageError
from harness.core.facts import CPU_PROVIDER, Facts, facts_for_other_inputs
from harness.core.missing import Need, missing
from harness.core.noise import PRECISIONS
from harness.core.own_cpu import lacks
from harness.core.precision import AS_IS
from harness.core.scenario import GENERATE, PLAIN, SCENARIOS
from harness.core.spread import Spread
from harness.core.value import STRING, NamedValues, Tensor, Value
from harness.corpus.case import Case
from harness.corpus.model_check import broken_rule
from harness.corpus.noisy import parts_of
from harness.corpus.revealed import hidden, read_by_partials
from harness.corpus.undefined import CONTESTED, undefined_outputs
from harness.corpus.zeroed import may_be_zeroed
from harness.engine.agreed import goldens_of, with_agreement
from harness.engine.cases import Cases, Found, why_not
from harness.engine.compare_sets import flat, numbered
from harness.engine.evidence import Evidence, Rule, rule_of
from harness.engine.measure import measure, own_cpu_of, with_generation
from harness.engine.other_inputs import (
    differs_for_others,
    judges_others,
    judging_goldens,
    outcome_of_others,
    with_others,
)
from harness.engine.outcome import Died, Hung, Raised, Ran
from harness.engine.references import References
from harness.engine.task import HOME, Kind, Question
from harness.golden.golden import Golden
from harness.golden.trust import doubt_about
from harness.plan.plan import Plan

Judged = Ran | Raised | Died | Hung
"""Outcomes whose verdict needs answers of the CPU provider."""


class _Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is judged, and what can be asked about it; ``about`` and ``case`` as in ``NextStep.of``.

    ``raised`` is whether it ended with an error.
    """

    about: Question
    cell: Cell
    case: Case
    rule: Rule
    askable: frozenset[Need]
    raised: bool = False


class NextStep(msgspec.Struct, frozen=True):
    """Measures outcomes, and finds what has to be asked first; ``needs`` is what may be asked at all."""

    plan: Plan
    cases: Cases
    references: References
    needs: frozenset[Need] = frozenset(Need)

    def of(self, about: Question, cell: Cell, case: Case, outcome: Judged) -> Facts | Question:
        """Return the facts of a cell, or a question that has to be answered before.

        Measures with what is known; while something is missing, adds its answer and measures again. ``about``
        is the model in the form that the cell runs, ``case`` the same, loaded.
        """
        provider = self.plan.target(cell.target).provider[0]
        rule = rule_of(self.plan, cell, case)
        if about.scenario == GENERATE:
            rule = msgspec.structs.replace(rule, generation=self.cases.generation(case))
        evidence = self._goldens(about, case, rule) if isinstance(outcome, Ran) else Evidence()
        if isinstance(evidence, Question):
            return evidence
        askable = self._askable(cell, case, outcome, rule) & self.needs
        if isinstance(outcome, Ran) and not rule.policy.converted:
            evidence = self._with_known(evidence, case, outcome, rule, askable)
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
        if isinstance(outcome, Ran) and outcome.other is not None and rule.generation is None:
            return self._with_others(asking, evidence, outcome, facts)
        return with_generation(facts, case, outcome, evidence, rule)

    def _settle(
        self,
        asking: _Asking,
        evidence: Evidence,
        measured: Callable[[Evidence], Facts],
        judged: Callable[[Facts], Facts] = lambda facts: facts,
    ) -> tuple[Facts, Evidence] | Question:
        """Measure and ask until nothing is missing to judge; ``judged`` are the facts that are about it."""
        about, cell, case, rule = asking.about, asking.cell, asking.case, asking.rule
        while True:
            facts = measured(evidence)
            # A cell of many ways has many runs, which references repeat; they are asked if it fails.
            by_usual = rule.generation is None
            need = missing(judged(facts), rule.policy, asking.askable, by_usual=by_usual)
            if need is None:
                return facts, evidence
            if need is Need.WIDER:
                wider = self._with_wider(evidence, about.for_golden(), case, rule)
                if isinstance(wider, Question):
                    return wider
                evidence = wider
                continue
            answer = self._ask(need, about, cell, case, rule)
            if isinstance(answer, Question):
                return answer
            evidence = _with(evidence, need, answer)
            if need is Need.OWN_CPU and isinstance(answer, Golden) and asking.raised:
                evidence = msgspec.structs.replace(evidence, broken=broken_of(answer, case))
            if need is Need.REFERENCES:
                evidence = msgspec.structs.replace(evidence, doubts=self._doubts(about, case, rule))

    def goldens(self, about: Question, cell: Cell, case: Case) -> Sequence[NamedValues]:
        """Return the right outputs of each data set of a cell that has been measured; empty if unknown."""
        evidence = self._goldens(about, case, rule_of(self.plan, cell, case))
        return () if isinstance(evidence, Question) else goldens_of(case, evidence)

    def _with_others(self, first: _Asking, known: Evidence, outcome: Ran, facts: Facts) -> Facts | Question:
        """Return facts with what judges the run with other inputs, like that of the first ones.

        Nothing is asked if its bits are those of the CPU provider, or if the first answer is no pass already.
        """
        case, rule = first.case, first.rule
        own = self.references.find(first.about.for_golden(), case)
        right = own.other if own is not None else ()
        if right and not differs_for_others(case, right, outcome.other or ()):
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
        if not rule.policy.converted:
            evidence = self._with_known(evidence, others, run, rule, askable)
        goldens = judging_goldens(known, evidence)

        def measured(evidence: Evidence) -> Facts:
            found = measure(run, others, evidence, rule, facts.provider)
            return with_others(facts, found, outcome, goldens, rule.policy.tolerance_for)

        settled = self._settle(asking, evidence, measured, facts_for_other_inputs)
        return settled if isinstance(settled, Question) else settled[0]

    def _goldens(self, about: Question, case: Case, rule: Rule) -> Evidence | Question:
        """Return the golden; of a converted model also that of the given model."""
        own = about.for_golden()
        golden = self._find(own, case)
        if golden is None:
            return own
        if not rule.policy.converted:
            return Evidence(golden=golden)
        full = self._answered(own.for_golden(AS_IS))
        if isinstance(full, Question):
            return full
        rounded = self._answered(msgspec.structs.replace(own, kind=Kind.ROUNDED))
        if isinstance(rounded, Question):
            return rounded
        return Evidence(golden=rounded if rounded.status == "ok" else golden, full=full)

    def _with_known(
        self, evidence: Evidence, case: Case, outcome: Ran, rule: Rule, askable: frozenset[Need]
    ) -> Evidence:
        """Add known answers that will be needed, so that values are compared once.

        These are the noise, if bits differ, and the operators whose zeros would go unnoticed.
        """
        golden = evidence.golden
        unnoticed = self.references.unnoticed(case) if Need.ZEROED in askable else None
        if unnoticed is not None:
            evidence = _with(evidence, Need.ZEROED, unnoticed)
        if golden is None or golden.status != "ok":
            return evidence
        if not any(map(_differ, flat(golden.outputs), flat(outcome.outputs))):
            return evidence
        noise = self.references.spread(case, rule.policy.noise_at)
        return _with(evidence, Need.NOISE, noise) if isinstance(noise, Spread) else evidence

    def _askable(self, cell: Cell, case: Case, outcome: Judged, rule: Rule) -> frozenset[Need]:
        """Return what can be asked about a model on a target."""
        if case.frozen is not None:
            # The model is known to be good, and the golden to be right: no CPU provider excuses anything.
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

    def _ask(self, need: Need, about: Question, cell: Cell, case: Case, rule: Rule) -> "Answer | Question":
        own = about.for_golden()
        match need:
            case Need.OWN_CPU:
                return self._own_cpu(about, cell, case)
            case Need.NOISE:
                return self._noise(own, case, rule)
            case Need.REFERENCES:
                whose = own.for_golden(AS_IS) if rule.policy.converted else own
                return self._references(whose, cell, case)
            case Need.UNDEFINED:
                return self._undefined(own, case)
            case Need.ZEROED:
                return self._unnoticed(own, case)
            case _:
                return self._answered(msgspec.structs.replace(own, kind=Kind(need.value)))

    def _own_cpu(self, about: Question, cell: Cell, case: Case) -> Golden | Question:
        """Return the answer of the CPU EP of a target's own runtime; a refusal in the scenario counts."""
        runtime = self.plan.target(cell.target).runtime
        plain: Golden | None = None
        for session in dict.fromkeys((PLAIN, about.session)):
            scenario = about.scenario if SCENARIOS[about.scenario].other_data else session
            question = msgspec.structs.replace(about, runtime=runtime, scenario=scenario)
            answer = self.references.find(question, case)
            if answer is None:
                return question
            if answer.status == "refused" or answer.died:
                return answer
            plain = plain or answer  # a CPU EP that merely lacks the scenario excuses nothing
        assert plain is not None  # noqa: S101 - the first session is always there
        return plain

    def _noise(self, own: Question, case: Case, rule: Rule) -> Spread | str | Question:
        """Return the noise of the golden; for a converted model that of the given model, for information."""
        if not rule.policy.converted:
            return self._spread(own, case, rule.policy.noise_at)
        given = own.for_golden(AS_IS)
        return self._spread(given, self.cases.of(given), rule.policy.precision)

    def _with_wider(self, evidence: Evidence, own: Question, case: Case, rule: Rule) -> Evidence | Question:
        """Add the noise of what else may explain an error: one more than is known, which may be enough."""
        if rule.policy.converted:
            own = own.for_golden(AS_IS)
        following = next(one for one in rule.wider if one not in evidence.wider)
        of = self.cases.of(own) if rule.policy.converted else case
        noise = self._spread(own, of, following.noise_at)
        if isinstance(noise, Question):
            return noise
        known = {**evidence.wider, following: noise}
        answered = (Need.WIDER.value,) if len(known) == len(rule.wider) else ()
        return msgspec.structs.replace(evidence, wider=known, answered=(*evidence.answered, *answered))

    def _spread(self, own: Question, case: Found, noise_at: str) -> Spread | str | Question:
        """Return the noise of a model, or why it has none."""
        if not isinstance(case, Case):
            return why_not(case)
        spread = self.references.spread(case, noise_at)
        if spread is not None:
            return spread
        precision, _ = parts_of(noise_at)
        if precision not in PRECISIONS:
            return f"the noise of {precision} is not known"
        question = msgspec.structs.replace(own, kind=Kind.NOISE, noise_at=noise_at)
        noisy = self.cases.of(question)
        return question if isinstance(noisy, Case) else why_not(noisy)

    def _unnoticed(self, own: Question, case: Case) -> tuple[str, ...] | Question:
        """Return operators of nodes that could compute zeros without a difference in the golden."""
        known = self.references.unnoticed(case)
        if known is not None:
            return known
        question = msgspec.structs.replace(own, kind=Kind.ZEROED)
        return question if isinstance(self.cases.of(question), Case) else ()

    def _undefined(self, own: Question, case: Case) -> dict[str, str] | Question:
        """Return the outputs whose values ONNX leaves undefined for this input."""
        inside: Sequence[NamedValues] = ()
        if read_by_partials(case):
            answer = self._answered(msgspec.structs.replace(own, kind=Kind.UNDEFINED))
            if isinstance(answer, Question):
                return answer
            inside = answer.outputs
        found: dict[str, str] = {}
        for index, data_set in enumerate(case.data_sets):
            values = {**dict(data_set.inputs), **dict(inside[index] if inside else ())}
            undefined = undefined_outputs(case.facts.partials, values)
            defined = {name for name, _ in data_set.expected}  # by the suite
            found |= {
                numbered(index, name): why
                for name, why in undefined.items()
                if name not in defined or why in CONTESTED
            }
        return found

    def _references(self, own: Question, cell: Cell, case: Case) -> dict[Kind, Golden] | Question:
        """Return the answers of the references, by the kind of question."""
        found: dict[Kind, Golden] = {}
        target = self.plan.target(cell.target)
        if target.runtime != HOME and target.provider[0] != CPU_PROVIDER:
            own_cpu = self._own_cpu(own, cell, case)
            if isinstance(own_cpu, Question):
                return own_cpu
            found[Kind.ANSWER] = own_cpu
        for kind in (Kind.UNOPTIMIZED, Kind.EVALUATED, Kind.FLOAT64_EVALUATED, Kind.FLOAT64):
            if kind is Kind.FLOAT64 and found[Kind.FLOAT64_EVALUATED].status == "ok":
                break
            answer = self._answered(msgspec.structs.replace(own, kind=kind))
            if isinstance(answer, Question):
                return answer
            found[kind] = answer
        return found

    def _doubts(self, about: Question, case: Case, rule: Rule) -> dict[Kind, str]:
        """Return why answers of ``onnx.reference`` do not count alone, by the kind of question."""
        given = self.cases.of(about.for_golden(AS_IS)) if rule.policy.converted else case
        if not isinstance(given, Case):
            return {}
        own = doubt_about(given.facts.operators, given.facts.float_types)
        return {Kind.EVALUATED: own} if own else {}

    def _answered(self, question: Question) -> Golden | Question:
        """Return the answer, or the question if it is still to be asked."""
        case = self.cases.of(question)
        if not isinstance(case, Case):
            return Golden(status="lost", message=why_not(case))
        return self._find(question, case) or question

    def _find(self, question: Question, case: Case) -> Golden | None:
        """Return an answer; the golden for other inputs comes with that for the first ones."""
        found = self.references.find(question, case)
        if found is not None or not question.others or question.kind is not Kind.ANSWER:
            return found
        given = msgspec.structs.replace(question, others=False)
        plain = self.cases.of(given)
        golden = self.references.find(given, plain) if isinstance(plain, Case) else None
        if golden is None or not golden.other:
            return None
        other = Golden(status="ok", outputs=(golden.other,), disputed=golden.disputed)
        with contextlib.suppress(UsageError):  # it is known nevertheless, and the first golden has warned
            self.references.keep(question, case, other)
        return other


def broken_of(refused: Golden, case: Case) -> str | None:
    """Return what onnx's checker finds against a model; None if the refusal of a CPU provider says enough."""
    if refused.status != "refused" or lacks(own_cpu_of(refused)):
        return None
    return broken_rule(case.model_path, case.digest)


Answer = Golden | Spread | str | tuple[str, ...] | Mapping[Kind, Golden] | Mapping[str, str]
"""What meets a need."""


def _with(evidence: Evidence, need: Need, answer: Answer) -> Evidence:
    """Return evidence with the answer to a need, whose name is that of the field."""
    value: object = answer
    if isinstance(answer, Golden) and need is Need.REPEATED:
        value = answer.disputed
    return msgspec.structs.replace(evidence, answered=(*evidence.answered, need.value), **{need.value: value})


def _differ(golden: tuple[str, Value], actual: tuple[str, Value]) -> bool:
    """Return whether two outputs are tensors with different bits."""
    right, found = golden[1], actual[1]
    if not (isinstance(right, Tensor) and isinstance(found, Tensor)) or right.dtype == STRING:
        return False
    return right.array.tobytes() != found.array.tobytes()
