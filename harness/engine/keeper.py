"""Where answers go, so that whoever waits for them finds them."""

import msgspec

from harness.core.errors import UsageError, one_line
from harness.core.spread import spread_of
from harness.corpus.case import Case
from harness.corpus.noisy import amplitudes_of, discard_noisy
from harness.corpus.precision import keep_declined, keep_failed, keep_made
from harness.corpus.zeroed import discard_zeroed
from harness.engine.answer import fate, golden_of, is_of_program, lost, repeated, unnoticed
from harness.engine.cases import Cases, Found, Untold
from harness.engine.outcome import Ending, Made
from harness.engine.question import Kind, Question
from harness.engine.references import References
from harness.golden.golden import Golden

NOT_ASKED = "a model for whoever has not asked for one; the listener reads none"


class Keeper(msgspec.Struct, frozen=True):
    """Keeps answers.

    Attributes:
        cases: The models.
        references: The answers that are known.
    """

    cases: Cases
    references: References

    def take(self, question: Question, case: Found, outcome: Ending | Untold) -> None:
        """Keep an answer where whoever waits for it will look.

        Args:
            question: What was asked.
            case: The model that it was about.
            outcome: What came of it.

        Raises:
            UsageError: The cache cannot be written.
        """
        if not isinstance(case, Case):
            return  # its file has gone; what waits will find that out, too
        if question.kind is Kind.MADE:
            self._take_made(question, case, outcome)
            return
        if isinstance(outcome, Made):
            raise TypeError(NOT_ASKED)
        answer = lost(outcome) if isinstance(outcome, Untold) else golden_of(outcome, case)
        if question.kind is Kind.NOISE:
            self._take_noise(question, case, answer)
        elif question.kind is Kind.ZEROED:
            self._take_zeroed(question, case, answer)
        elif question.kind is Kind.REPEATED:
            golden = self.references.find(question.for_golden(), case)
            self.references.keep(question, case, answer if golden is None else repeated(golden, answer, case))
        else:
            self.references.keep(question, case, answer)
            if self.cases.refuses_shape(question):
                self.cases.forget(question)

    def _take_made(self, question: Question, case: Case, outcome: Ending | Untold) -> None:
        """Keep a converted model; where that fails, whatever the reason, nobody asks for it again."""
        precision = question.precision
        self.cases.forget(question)
        try:
            if not isinstance(outcome, Made):
                what = (
                    lost(outcome).message if isinstance(outcome, Untold) else f"the converter {fate(outcome)}"
                )
                self.references.keep_unmade(case, precision, one_line(f"{precision} does not apply: {what}"))
                if not isinstance(outcome, Untold) and is_of_program(outcome):
                    keep_failed(case, precision, what)
            elif outcome.content is None:
                keep_declined(case, precision, outcome.reason)
            else:
                keep_made(case, precision, outcome.content, outcome.rounded)
        except UsageError as error:
            self.references.keep_unmade(case, precision, one_line(error))
            raise

    def _take_noise(self, question: Question, noisy: Case, answer: Golden) -> None:
        plain = msgspec.structs.replace(question, kind=Kind.ANSWER, noise_at="")
        case = self.cases.of(plain)
        golden = self.references.find(plain, case) if isinstance(case, Case) else None
        if not isinstance(case, Case) or golden is None:
            return
        precision = question.noise_at
        if answer.status != "ok":
            if self.references.spread(case, precision) is not None:
                return  # another run was quicker, and has removed the model with noise
            why = one_line(f"the model does not run with noise: {answer.message}")
            self.references.keep_spread(case, precision, why)
            return
        amplitudes = amplitudes_of(noisy)
        spread = spread_of(golden.outputs, answer.outputs, amplitudes, precision)
        self.references.keep_spread(case, precision, spread, amplitudes)
        discard_noisy(case, precision)

    def _take_zeroed(self, question: Question, zeroed: Case, answer: Golden) -> None:
        """Keep which nodes could compute zeros; the outputs that show it are many.

        A model that does not run with zeros in it tells nothing about its golden.
        """
        plain = msgspec.structs.replace(question, kind=Kind.ANSWER, noise_at="")
        case = self.cases.of(plain)
        golden = self.references.find(plain, case) if isinstance(case, Case) else None
        if not isinstance(case, Case) or golden is None or self.references.unnoticed(case) is not None:
            return  # another run was quicker, and has removed the model with zeros
        operators = unnoticed(golden, answer, zeroed, case) if answer.status == "ok" else ()
        self.references.keep_unnoticed(case, operators, for_ever=answer.status != "lost")
        discard_zeroed(zeroed)
