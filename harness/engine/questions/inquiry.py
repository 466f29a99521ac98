"""Answers that a judgement lacks, or the questions that have to be asked first."""

import contextlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.metrics import widen_tensor
from harness.core.noise.noise import PRECISIONS
from harness.core.noise.spread import Spread
from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.precision import BYTE_PRODUCTS, INTEGER_KERNELS
from harness.core.records.scenario import PLAIN, SCENARIOS
from harness.core.text.errors import UsageError
from harness.core.values.value import STRING, NamedValues, Tensor, Value, to_wire
from harness.core.verdicts.missing import Need
from harness.core.verdicts.own_cpu import lacks
from harness.corpus.case import Case
from harness.corpus.derived.inner_outputs import read_by_partials
from harness.corpus.derived.noisy import split_allowed
from harness.corpus.model.undefined import CONTESTED, can_be_settled, undefined_outputs
from harness.corpus.suites.model_check import broken_rule
from harness.engine.answers.cases import Cases, LoadedCase, why_no_model
from harness.engine.answers.compare_sets import numbered
from harness.engine.answers.evidence import CellRule, Evidence, NotDefined
from harness.engine.answers.references import References
from harness.engine.measuring.measure import own_cpu_of
from harness.engine.tasks.task import HOME, Question, QuestionKind
from harness.golden.golden_answer import Golden
from harness.golden.provenance import may_saturate
from harness.golden.trust import doubt_about
from harness.plan.plan import Plan

_ENOUGH = 0.5
"""Part of an output that has to be defined for it to be judged."""

_CLOSE = 1e-3
"""Relative: what is undefined changes an output by more, or one of two values of it changes another bit."""

Answer = Golden | Spread | str | tuple[str, ...] | Mapping[QuestionKind, Golden] | Mapping[str, NotDefined]
"""The answer to a need."""


class Inquiry(msgspec.Struct, frozen=True, kw_only=True):
    """Finds the answer to a need: a known one, else the question that an agent has to answer."""

    plan: Plan
    cases: Cases
    references: References

    def with_answer(
        self, need: Need, evidence: Evidence, about: Question, cell: Cell, case: Case, rule: CellRule
    ) -> Evidence | Question:
        """Return evidence with what meets a need; arguments as for ``ask``."""
        if need is Need.WIDER:
            return self._with_wider(evidence, about.for_golden(), case, rule)
        answer = self.ask(need, about, cell, case, rule)
        if isinstance(answer, Question):
            return answer
        value: object = answer
        if isinstance(answer, Golden) and need is Need.REPEATED:
            value = answer.disputed
        # The name of a need is that of the field.
        fields = {need.value: value, "answered": (*evidence.answered, need.value)}
        if need is Need.REFERENCES:
            fields["doubts"] = self._doubts(about, case, rule)
        return msgspec.structs.replace(evidence, **fields)

    def ask(self, need: Need, about: Question, cell: Cell, case: Case, rule: CellRule) -> "Answer | Question":
        """Return the answer to a need, or its question.

        ``about`` is the model in the form that the cell runs.
        """
        own = about.for_golden()
        match need:
            case Need.OWN_CPU:
                return self._own_cpu_as_used(about, cell, case)
            case Need.NOISE:
                return self._noise(own, case, rule)
            case Need.REFERENCES:
                whose = self.cases.given(own) if rule.policy.converted else own
                return self._references(whose, cell, case)
            case Need.UNDEFINED:
                return self._undefined(own, case)
            case Need.ZEROED:
                return self._unnoticed(own, case)
            case _:
                chose = need is Need.REVEALED and rule.policy.converted  # the positions of the golden
                whose = self.cases.given(own) if chose else own
                return self.answered(msgspec.structs.replace(whose, kind=QuestionKind(need.value)))

    def _own_cpu_as_used(self, about: Question, cell: Cell, case: Case) -> Golden | Question:
        """Return the answer of that CPU EP, or its refusal of a session with the target's settings.

        A session for goldens fuses no quantized operators. Another EP's session has them on the CPU EP,
        fused, and fails where the CPU EP fails.
        """
        answer = self._own_cpu(about, cell, case)
        target = self.plan.target(cell.target)
        if isinstance(answer, Question) or target.provider[0] == CPU_PROVIDER:
            return answer
        if answer.status != "ok" or not _has_any(INTEGER_KERNELS, case):
            return answer
        fused = self._as_used(about, cell, case)
        if isinstance(fused, Question):
            return fused
        return fused if fused.status == "refused" or fused.died else answer

    def _as_used(self, about: Question, cell: Cell, case: Case) -> Golden | Question:
        """Return the answer of the target's own CPU EP in a session as applications create it."""
        question = msgspec.structs.replace(
            about,
            runtime=self.plan.target(cell.target).runtime,
            scenario=about.scenario if SCENARIOS[about.scenario].other_data else PLAIN,
            kind=QuestionKind.FUSED,
        )
        return self.references.find(question, case) or question

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

    def _noise(self, own: Question, case: Case, rule: CellRule) -> Spread | str | Question:
        """Return the noise of the golden.

        For a converted model that of the unconverted model, for information.
        """
        if not rule.policy.converted:
            return self._spread(own, case, rule.policy.noise_at)
        given = self.cases.given(own)
        return self._spread(given, self.cases.of(given), rule.policy.precision)

    def _with_wider(
        self, evidence: Evidence, own: Question, case: Case, rule: CellRule
    ) -> Evidence | Question:
        """Add the noise of what else may explain an error: one more than is known, which may be enough."""
        if rule.policy.converted:
            own = self.cases.given(own)
        following = next(one for one in rule.wider if one not in evidence.wider)
        of = self.cases.of(own) if rule.policy.converted else case
        noise = self._spread(own, of, following.noise_at)
        if isinstance(noise, Question):
            return noise
        known = {**evidence.wider, following: noise}
        answered = (Need.WIDER.value,) if len(known) == len(rule.wider) else ()
        return msgspec.structs.replace(evidence, wider=known, answered=(*evidence.answered, *answered))

    def _spread(self, own: Question, case: LoadedCase, noise_at: str) -> Spread | str | Question:
        """Return the noise of a model, or why it has none."""
        if not isinstance(case, Case):
            return why_no_model(case)
        spread = self.references.spread(case, noise_at)
        if spread is not None:
            return spread
        precision, _ = split_allowed(noise_at)
        if precision not in PRECISIONS:
            return f"the noise of {precision} is not known"
        question = msgspec.structs.replace(own, kind=QuestionKind.NOISE, noise_at=noise_at)
        noisy = self.cases.of(question)
        return question if isinstance(noisy, Case) else why_no_model(noisy)

    def _unnoticed(self, own: Question, case: Case) -> tuple[str, ...] | Question:
        """Return operators of nodes that could compute zeros without a difference in the golden."""
        known = self.references.unnoticed(case)
        if known is not None:
            return known
        question = msgspec.structs.replace(own, kind=QuestionKind.ZEROED)
        return question if isinstance(self.cases.of(question), Case) else ()

    def _undefined(self, own: Question, case: Case) -> dict[str, NotDefined] | Question:
        """Return the outputs of which ONNX leaves values undefined for this input."""
        inside: Sequence[NamedValues] = ()
        if read_by_partials(case):
            answer = self.answered(msgspec.structs.replace(own, kind=QuestionKind.UNDEFINED))
            if isinstance(answer, Question):
                return answer
            inside = answer.outputs
        found: dict[str, NotDefined] = {}
        for index, data_set in enumerate(case.data_sets):
            values = {**dict(data_set.inputs), **dict(inside[index] if inside else ())}
            undefined = undefined_outputs(case.facts.partials, values)
            lasting = undefined_outputs(
                (one for one in case.facts.partials if not can_be_settled(one)), values
            )
            defined = self._defined_anyway(own, index) if undefined != lasting else {}
            if isinstance(defined, Question):
                return defined
            by_suite = {name for name, _ in data_set.expected}
            for name, why in undefined.items():
                known = None if name in lasting else defined.get(name)
                if (known is None or not known.all()) and (name not in by_suite or why in CONTESTED):
                    enough = known is not None and known.mean() >= _ENOUGH
                    found[numbered(index, name)] = NotDefined(why=why, defined=known if enough else None)
        return found

    def _defined_anyway(self, own: Question, data_set: int) -> dict[str, NDArray[np.bool_]] | Question:
        """Return which elements of outputs stay the same whatever value undefined results have."""
        answers = []
        for kind in (QuestionKind.ANSWER, QuestionKind.SETTLED_LOW, QuestionKind.SETTLED_HIGH):
            answer = self.answered(msgspec.structs.replace(own, kind=kind))
            if isinstance(answer, Question):
                return answer
            if answer.status != "ok":
                return {}
            answers.append(dict(answer.outputs[data_set]))
        golden, low, high = answers
        return {name: _unchanged(value, low[name], high[name]) for name, value in golden.items()}

    def _references(self, own: Question, cell: Cell, case: Case) -> dict[QuestionKind, Golden] | Question:
        """Return the answers of the references, by the kind of question."""
        found: dict[QuestionKind, Golden] = {}
        target = self.plan.target(cell.target)
        if target.runtime != HOME and target.provider[0] != CPU_PROVIDER:
            own_cpu = self._own_cpu(own, cell, case)
            if isinstance(own_cpu, Question):
                return own_cpu
            found[QuestionKind.ANSWER] = own_cpu
        for kind in (
            QuestionKind.UNOPTIMIZED,
            QuestionKind.EVALUATED,
            QuestionKind.FLOAT64_EVALUATED,
            QuestionKind.FLOAT64,
        ):
            if kind is QuestionKind.FLOAT64 and found[QuestionKind.FLOAT64_EVALUATED].status == "ok":
                break
            if kind is QuestionKind.UNOPTIMIZED and may_saturate() and _has_any(BYTE_PRODUCTS, case):
                continue  # without optimizations there is no way around the saturation
            answer = self.answered(msgspec.structs.replace(own, kind=kind))
            if isinstance(answer, Question):
                return answer
            found[kind] = answer
        if target.provider[0] != CPU_PROVIDER and _has_any(INTEGER_KERNELS, case):
            used = self._as_used(own, cell, case)
            if isinstance(used, Question):
                return used
            found[QuestionKind.FUSED] = used
        return found

    def _doubts(self, about: Question, case: Case, rule: CellRule) -> dict[QuestionKind, str]:
        """Return why answers of ``onnx.reference`` do not count alone, by the kind of question."""
        given = self.cases.of(self.cases.given(about)) if rule.policy.converted else case
        if not isinstance(given, Case):
            return {}
        own = doubt_about(given.facts.operators, given.facts.float_types)
        return {QuestionKind.EVALUATED: own} if own else {}

    def answered(self, question: Question) -> Golden | Question:
        """Return the answer, or the question if it was not asked yet."""
        case = self.cases.of(question)
        if not isinstance(case, Case):
            return Golden(status="lost", message=why_no_model(case))
        return self.find(question, case) or question

    def find(self, question: Question, case: Case) -> Golden | None:
        """Return an answer; the golden for other inputs comes with the one for the first inputs."""
        found = self.references.find(question, case)
        if found is not None or not question.others or question.kind is not QuestionKind.ANSWER:
            return found
        given = msgspec.structs.replace(question, others=False)
        plain = self.cases.of(given)
        golden = self.references.find(given, plain) if isinstance(plain, Case) else None
        if golden is None or not golden.other:
            return None
        other = Golden(status="ok", outputs=(golden.other,), disputed=golden.disputed)
        # the answer is known nevertheless, and the first golden has warned
        with contextlib.suppress(UsageError):
            self.references.keep(question, case, other)
        return other


def _unchanged(golden: Value, low: Value, high: Value) -> NDArray[np.bool_]:
    """Return the elements that two values of what is undefined leave as they are in the golden.

    The golden is that of another graph, which may be rounded otherwise. What is no tensor of numbers is
    unchanged as a whole, or not at all.
    """
    if not isinstance(golden, Tensor) or not isinstance(low, Tensor) or not isinstance(high, Tensor):
        return np.array(to_wire(golden) == to_wire(low) == to_wire(high))
    forms = {(one.dtype, one.array.shape) for one in (golden, low, high)}
    if len(forms) > 1 or golden.dtype == STRING:
        return np.array(to_wire(golden) == to_wire(low) == to_wire(high))
    right, one, other = (widen_tensor(value) for value in (golden, low, high))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.asarray(same & np.isclose(right, one, rtol=_CLOSE, atol=0, equal_nan=True))


def _has_any(operators: frozenset[str], case: Case) -> bool:
    """Return whether a model has one of some operators, in whatever domain."""
    return not operators.isdisjoint(name.rpartition(".")[2] for name in case.facts.operators)


def broken_of(refused: Golden, case: Case) -> str | None:
    """Return what onnx's checker finds in a model; None if the CPU provider's refusal is clear enough."""
    if refused.status != "refused" or lacks(own_cpu_of(refused)):
        return None
    return broken_rule(case.model_path, case.digest)
