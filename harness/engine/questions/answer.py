"""Answers: what an outcome of the CPU provider proves, what contradicts it, and where it is kept."""

import functools

import msgspec

from harness.agent.launcher import exit_cause
from harness.core.comparison.tolerance import (
    EXACT,
    Tolerance,
    ToleranceFor,
    computing_precision,
    default_tolerance,
)
from harness.core.noise.spread import spread_of
from harness.core.records.facts import SIZED_BY_CHANCE, UNREPEATABLE
from harness.core.records.verdict import Phase
from harness.core.text.errors import UsageError, one_line
from harness.core.values.value import leaves_of
from harness.corpus.case import Case
from harness.corpus.derived.converted_models import keep_declined, keep_failed, keep_made
from harness.corpus.derived.noisy import amplitudes_of, discard_noisy, split_allowed
from harness.corpus.derived.zeroing import discard_zeroed, zeroed_operators
from harness.engine.answers.cases import Cases, LoadedCase, NoCase, why_no_model
from harness.engine.answers.compare_sets import compare_sets
from harness.engine.answers.references import References
from harness.engine.measuring.early_end import at_data_set, clean_error, ended
from harness.engine.measuring.output_kinds import output_kinds_of
from harness.engine.tasks.outcome import (
    Died,
    Ending,
    Hung,
    Made,
    Outcome,
    Raised,
    Ran,
    Rejected,
    Unavailable,
    Unfeedable,
    Unsupported,
)
from harness.engine.tasks.task import Question, QuestionKind
from harness.golden.golden_answer import Golden

NOT_REQUESTED = "received a model that was not requested"

OF_PROGRAM = frozenset(
    {
        *("SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL"),  # a full disk raises SIGBUS, too
        *map(exit_cause, (0xC0000005, 0xC000001D, 0xC0000094, 0xC00000FD, 0xC0000374, 0xC0000409)),
    }
)
"""Ends of a process by its own fault: signals, and codes of Windows."""


def golden_of(outcome: Outcome, case: Case) -> Golden:
    """Return an outcome of the CPU provider as an answer."""
    return msgspec.structs.replace(_answer(outcome, case), disputed=_dispute(outcome, case))


def keep_answer(
    question: Question, case: LoadedCase, outcome: Ending | NoCase, cases: Cases, references: References
) -> None:
    """Keep an answer where the waiting cells look for it.

    Raises:
        UsageError: The cache cannot be written.
    """
    if not isinstance(case, Case):
        return  # its file is gone, as the waiting cells will find
    if question.kind is QuestionKind.MADE:
        _keep_made(question, case, outcome, cases, references)
        return
    if isinstance(outcome, Made):
        raise TypeError(NOT_REQUESTED)
    if isinstance(outcome, NoCase):
        answer = Golden(status="lost", message=why_no_model(outcome))
    else:
        answer = golden_of(outcome, case)
    if question.kind is QuestionKind.NOISE:
        _keep_noise(question, case, answer, cases, references)
    elif question.kind is QuestionKind.ZEROED:
        _keep_zeroed(question, case, answer, cases, references)
    elif question.kind is QuestionKind.REPEATED:
        golden = references.find(question.for_golden(), case)
        references.keep(question, case, answer if golden is None else _repeated(golden, answer, case))
    else:
        references.keep(question, case, answer)
        if cases.refuses_shape(question):
            cases.forget(question)


def forgiving(case: Case, ours: ToleranceFor) -> ToleranceFor:
    """Return the wider of the suite's own tolerance and ours: a dispute must be beyond doubt."""

    def wider(dtype: str) -> Tolerance:
        default = ours(dtype)
        if default == EXACT:
            return default
        return Tolerance(rtol=max(default.rtol, case.rtol), atol=max(default.atol, case.atol))

    return wider


def _keep_made(
    question: Question, case: Case, outcome: Ending | NoCase, cases: Cases, references: References
) -> None:
    """Keep a converted model; if that fails, for whatever reason, do not ask for it again."""
    precision = question.precision
    cases.forget(question)
    try:
        if not isinstance(outcome, Made):
            what = why_no_model(outcome) if isinstance(outcome, NoCase) else f"the converter {_fate(outcome)}"
            references.keep_unmade(case, precision, one_line(f"{precision} does not apply: {what}"))
            if not isinstance(outcome, NoCase) and _is_of_program(outcome):
                keep_failed(case, precision, what)
        elif outcome.content is None:
            keep_declined(case, precision, outcome.reason)
        else:
            keep_made(case, precision, outcome.content, outcome.rounded)
    except UsageError as error:
        references.keep_unmade(case, precision, one_line(error))
        raise


def _keep_noise(
    question: Question, noisy: Case, answer: Golden, cases: Cases, references: References
) -> None:
    case, golden = _plain(question, cases, references)
    if case is None or golden is None:
        return
    noise_at = question.noise_at
    if answer.status == "ok":
        amplitudes = amplitudes_of(noisy)
        spread = spread_of(golden.outputs, answer.outputs, amplitudes, split_allowed(noise_at)[0])
        references.keep_spread(case, noise_at, spread, amplitudes)
        discard_noisy(case, noise_at)
    elif references.spread(case, noise_at) is None:  # else another run has removed the model with noise
        why = one_line(f"the model does not run with noise: {answer.message}")
        references.keep_spread(case, noise_at, why)


def _keep_zeroed(
    question: Question, zeroed: Case, answer: Golden, cases: Cases, references: References
) -> None:
    """Keep the operators of nodes that could compute zeros; the outputs that show it are large.

    A model that does not run with zeros in it shows nothing about its golden.
    """
    case, golden = _plain(question, cases, references)
    if case is None or golden is None or references.unnoticed(case) is not None:
        return  # another run has removed the model with zeros
    operators = _unnoticed(golden, answer, zeroed, case) if answer.status == "ok" else ()
    references.keep_unnoticed(case, operators, for_ever=answer.status != "lost")
    discard_zeroed(zeroed)


def _plain(question: Question, cases: Cases, references: References) -> tuple[Case | None, Golden | None]:
    """Return the model without noise or zeros, and its golden."""
    plain = msgspec.structs.replace(question, kind=QuestionKind.ANSWER, noise_at="")
    case = cases.of(plain)
    return (case, references.find(plain, case)) if isinstance(case, Case) else (None, None)


def _answer(outcome: Outcome, case: Case) -> Golden:
    match outcome:
        case Ran():
            text = outcome.generated.text if outcome.generated is not None else ()
            return Golden(status="ok", outputs=outcome.outputs, other=outcome.other or (), text=text)
        case Raised():
            message = clean_error(f"{outcome.kind}: {outcome.message}", case.model_path)
            message = one_line(at_data_set(case, outcome.data_set) + message)
            return Golden(status="refused", message=message, data_set=outcome.data_set)
        case Unfeedable() | Unsupported():
            return Golden(status="lost", message=outcome.message)
        case Died() | Hung():
            # A model that kills the CPU EP with these inputs may run with others.
            ran = isinstance(outcome, Died) and outcome.phase is Phase.RUN and _is_of_program(outcome)
            died = not (isinstance(outcome, Hung) and outcome.at_work)
            message = f"the CPU EP {_fate(outcome)}"
            return Golden(status="lost", message=message, died=died, data_set=0 if ran else None)
        case Unavailable() | Rejected():
            return Golden(status="lost", message=f"the CPU EP {_fate(outcome)}")


def _fate(outcome: Outcome) -> str:
    """Return how a process without an answer ended, in words that follow its name."""
    match outcome:
        case Ran():
            return "answered something else"
        case Raised():
            return f"failed: {outcome.kind}: {outcome.message}"
        case Unfeedable() | Unsupported():
            return f"failed: {outcome.message}"
        case Died():
            return f"crashed: {outcome.cause}"
        case Hung():
            how = "was still at work, without" if outcome.at_work else "found no"
            return f"{how} end of phase {outcome.phase} within {outcome.limit_s:g} s"
        case Unavailable() | Rejected():
            return f"is not there: {outcome.reason}"


def _is_of_program(outcome: Outcome) -> bool:
    """Return whether an outcome may be the fault of the program, not of the machine.

    A process that was killed from outside, or that found no memory or disk space, shows nothing about its
    program.
    """
    if isinstance(outcome, Died):
        how = ended(outcome).ended
        return outcome.cause in OF_PROGRAM and how is not None and not how.out_of_memory
    return isinstance(outcome, Hung) and not outcome.at_work


def _dispute(outcome: Outcome, case: Case) -> str:
    """Return why an answer cannot judge.

    This depends only on the references, not on a matrix's tolerances.
    """
    if drawn := ", ".join(case.facts.origins.by_chance):
        sized = isinstance(outcome, Ran) and _differ_in_shape(outcome)
        return f"{drawn} {SIZED_BY_CHANCE if sized else 'draws numbers; no two runtimes agree'}"
    if not isinstance(outcome, Ran):
        return ""
    ours = _table(case)
    kinds = output_kinds_of(case, outcome.outputs)
    # Compared with itself, only random numbers can be wrong.
    itself = compare_sets(outcome.outputs, outcome.outputs, ours, kinds=kinds) if kinds else None
    if itself and itself.verdict:
        return one_line(f"the CPU EP itself is wrong: {itself.message}")
    once, twice = outcome.outputs[:1], outcome.second
    if twice is not None and compare_sets(once, (twice,), ours, kinds=kinds[:1]).verdict:
        return UNREPEATABLE
    expected = tuple(data_set.expected for data_set in case.data_sets)
    wider = forgiving(case, ours)
    disagreement = compare_sets(expected, outcome.outputs, wider, kinds=kinds, only_known=True)
    if disagreement.verdict is None:
        return ""
    return one_line(f"golden and expected data disagree: {disagreement.message}")


def _differ_in_shape(outcome: Ran) -> bool:
    """Return whether two runs of one session give outputs of different shapes."""
    if outcome.second is None:
        return False
    once, twice = (
        [(name, part and part.array.shape) for name, part in leaves_of(one)]
        for one in (outcome.outputs[0], outcome.second)
    )
    return once != twice


def _repeated(golden: Golden, again: Golden, case: Case) -> Golden:
    """Return the outputs of another process, as far as they show whether a golden can be repeated.

    A process without outputs, because it is too slow or has no memory, is no evidence against the golden.
    """
    if golden.status != "ok" or again.status != "ok":
        return Golden(status="refused", message=again.message)
    kinds = output_kinds_of(case, golden.outputs)
    differs = compare_sets(golden.outputs, again.outputs, _table(case), kinds=kinds).verdict
    return Golden(status="refused", disputed=UNREPEATABLE if differs else "")


def _unnoticed(golden: Golden, zeroed: Golden, zeroed_case: Case, case: Case) -> tuple[str, ...]:
    """Return the operators of nodes whose results could be zeros without a difference in the outputs.

    ``zeroed`` has the outputs with zeros in place of each node's results; see
    ``harness.corpus.derived.zeroing``.
    """
    kinds = output_kinds_of(case, golden.outputs)[:1]
    first = golden.outputs[:1]
    found = {
        operator
        for operator, outputs in zip(zeroed_operators(zeroed_case), zeroed.outputs, strict=True)
        if compare_sets(first, (outputs,), _table(case), kinds=kinds).verdict is None
    }
    return tuple(sorted(found))


def _table(case: Case) -> ToleranceFor:
    """Return the default tolerances for the CPU provider's computing precision."""
    precision = computing_precision(case.facts.float_types, "float32")
    return functools.partial(default_tolerance, precision=precision)
