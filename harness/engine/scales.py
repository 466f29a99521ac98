"""The scales: an outcome and all that it is held against, weighed as soon as that is known."""

from collections.abc import Callable

import msgspec

from harness.core.cell import Cell
from harness.core.precision import AS_IS
from harness.core.scenario import OTHER_DATA, PLAIN
from harness.core.spread import PRECISIONS, Spread
from harness.core.value import STRING, Tensor, Value
from harness.corpus.case import Case
from harness.engine.cases import Cases, why_not
from harness.engine.compare_sets import flat
from harness.engine.evidence import Evidence
from harness.engine.judge import (
    Judgement,
    fails,
    hides_ties,
    is_inexact,
    judge,
    loses,
    needs_witnesses,
)
from harness.engine.outcome import Raised, Ran
from harness.engine.question import (
    EVALUATED,
    FLOAT64,
    FLOAT64_EVALUATED,
    NOISE,
    REVEALED,
    ROUNDED,
    UNOPTIMIZED,
    Question,
)
from harness.engine.references import References
from harness.engine.rule import rule_of
from harness.golden.golden import Golden
from harness.plan.plan import Plan


class Scales:
    """Judges outcomes, and says what has to be asked first.

    Args:
        plan: Where the cells come from.
        cases: The models.
        references: The answers that are known.
    """

    def __init__(self, plan: Plan, cases: Cases, references: References) -> None:
        self._plan = plan
        self._cases = cases
        self._references = references

    def weigh(self, about: Question, cell: Cell, case: Case, outcome: Ran | Raised) -> Judgement | Question:
        """The judgement, or a question that has to be answered before."""
        own = about.for_golden()
        golden = self._references.find(own, case)
        if golden is None:
            return own
        evidence = Evidence(golden=golden, reference=golden, converted=about.precision != AS_IS)
        rule = rule_of(self._plan, cell, case)
        if isinstance(outcome, Raised):
            # Only an error raises the question what the CPU EP of the *same* runtime says.
            reference = self._second_opinion(about, cell, case)
            if isinstance(reference, Question):
                return reference
            evidence = msgspec.structs.replace(evidence, reference=reference)
        elif about.precision != AS_IS:
            goldens = self._of_converted(own, golden)
            if isinstance(goldens, Question):
                return goldens
            evidence = msgspec.structs.replace(evidence, full=goldens[0], golden=goldens[1])
        else:
            noise = self._known_noise(golden, case, outcome, rule.noise_precision)
            evidence = msgspec.structs.replace(evidence, spread=noise)
        judgement = judge(outcome, case, evidence, rule)
        asks_noise = evidence.spread is None
        further: tuple[tuple[str, Callable[[Judgement], bool], Callable[[], object]], ...] = (
            (
                "spread",
                lambda so_far: asks_noise and is_inexact(so_far),
                lambda: self._spread(own, case, rule.noise_precision),
            ),
            ("revealed", lambda so_far: hides_ties(so_far, case), lambda: self._revealed(own)),
            ("witnesses", needs_witnesses, lambda: self._witnesses(own)),
        )
        if about.precision != AS_IS:
            # The golden is that of the model as it came. Its noise is told, and judges nobody.
            given = about.for_golden(AS_IS)
            further = (
                ("spread", loses, lambda: self._told_noise(given, rule.precision)),
                ("witnesses", fails, lambda: self._witnesses(given)),
            )
        for name, is_needed, find in further:
            if is_needed(judgement):
                found = find()
                if isinstance(found, Question):
                    return found
                evidence = msgspec.structs.replace(evidence, **{name: found})
                judgement = judge(outcome, case, evidence, rule)
        return judgement

    def _known_noise(self, golden: Golden, case: Case, outcome: Ran, precision: str) -> Spread | None:
        """The noise of a model, where it is known and some bits differ: so values are compared only once."""
        if golden.status != "ok" or not any(map(_differ, flat(golden.outputs), flat(outcome.outputs))):
            return None
        noise = self._references.spread(case, precision)
        return noise if isinstance(noise, Spread) else None

    def _of_converted(self, own: Question, golden: Golden) -> tuple[Golden, Golden] | Question:
        """The golden of a model as it came, and that of the converted one with all its roundings."""
        answers = []
        for question in (own.for_golden(AS_IS), msgspec.structs.replace(own, kind=ROUNDED)):
            answer = self._answered(question)
            if isinstance(answer, Question):
                return answer
            answers.append(answer)
        full, rounded = answers
        return full, rounded if rounded.status == "ok" else golden

    def _told_noise(self, given: Question, precision: str) -> Spread | str | Question:
        """The noise of a model as it came, or why it is not known."""
        model = self._cases.of(given)
        return self._spread(given, model, precision) if isinstance(model, Case) else why_not(model)

    def _second_opinion(self, about: Question, cell: Cell, case: Case) -> Golden | Question:
        """What the CPU EP of a target's own runtime makes of a model; a refusal in the scenario counts."""
        runtime = self._plan.target(cell.target).runtime
        plain: Golden | None = None
        for session in dict.fromkeys((PLAIN, about.session)):
            scenario = about.scenario if about.scenario in OTHER_DATA else session
            question = msgspec.structs.replace(about, runtime=runtime, scenario=scenario)
            answer = self._references.find(question, case)
            if answer is None:
                return question
            if answer.status == "refused":
                return answer
            plain = plain or answer  # a CPU EP that merely lacks the scenario excuses nobody
        assert plain is not None  # noqa: S101 - the first session is always there
        return plain

    def _spread(self, own: Question, case: Case, precision: str) -> Spread | str | Question:
        """The noise of a model, or why it has none."""
        spread = self._references.spread(case, precision)
        if spread is not None:
            return spread
        if precision not in PRECISIONS:
            return f"the noise of {precision} is not known"
        question = msgspec.structs.replace(own, kind=NOISE + precision)
        noisy = self._cases.of(question)
        return question if isinstance(noisy, Case) else why_not(noisy)

    def _revealed(self, own: Question) -> Golden | Question:
        """The golden with what its positions were chosen by."""
        return self._answered(msgspec.structs.replace(own, kind=REVEALED))

    def _witnesses(self, own: Question) -> dict[str, Golden] | Question:
        """What others make of a model, by the kind of question."""
        witnesses: dict[str, Golden] = {}
        for kind in (UNOPTIMIZED, EVALUATED, FLOAT64, FLOAT64_EVALUATED):
            if kind == FLOAT64_EVALUATED and witnesses[FLOAT64].status == "ok":
                break
            answer = self._answered(msgspec.structs.replace(own, kind=kind))
            if isinstance(answer, Question):
                return answer
            witnesses[kind] = answer
        return witnesses

    def _answered(self, question: Question) -> Golden | Question:
        """The answer, or the question where it is still to be asked."""
        case = self._cases.of(question)
        if not isinstance(case, Case):
            return Golden(status="lost", message=why_not(case))
        return self._references.find(question, case) or question


def _differ(golden: tuple[str, Value], actual: tuple[str, Value]) -> bool:
    """Whether two outputs are tensors with other bits."""
    right, found = golden[1], actual[1]
    if not (isinstance(right, Tensor) and isinstance(found, Tensor)) or right.dtype == STRING:
        return False
    return right.array.tobytes() != found.array.tobytes()
