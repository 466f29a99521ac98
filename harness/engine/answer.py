"""What an outcome of the CPU provider is worth as an answer, and what speaks against it."""

from collections.abc import Callable

import msgspec

from harness.core.errors import one_line
from harness.core.facts import UNREPEATABLE
from harness.core.tolerance import Tolerance, computing_precision, default_tolerance
from harness.core.verdict import Phase
from harness.corpus.case import Case
from harness.corpus.zeroed import operators_of
from harness.engine.cases import Untold, why_not
from harness.engine.clean_error import clean_error
from harness.engine.compare_sets import compare_sets
from harness.engine.measure import at_data_set, ended
from harness.engine.outcome import (
    Died,
    Hung,
    Outcome,
    Raised,
    Ran,
    Rejected,
    Unavailable,
    Unfeedable,
    Unsupported,
)
from harness.engine.output_kinds import output_kinds_of
from harness.golden.golden import Golden

OF_PROGRAM = frozenset(
    {
        *("SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL"),  # SIGBUS is a full disk, too
        *("0xC0000005", "0xC000001D", "0xC0000094", "0xC00000FD", "0xC0000374", "0xC0000409"),
    }
)
"""Ends of a process by its own fault: signals, and codes of Windows for access violation, illegal
instruction, division by zero, stack overflow, heap corruption, and fail-fast, which is its abort."""


def golden_of(outcome: Outcome, case: Case) -> Golden:
    """What an outcome of the CPU provider is worth as an answer."""
    return msgspec.structs.replace(_answer(outcome, case), disputed=_dispute(outcome, case))


def lost(found: Untold) -> Golden:
    """The answer about a model that there is none of."""
    return Golden(status="lost", message=why_not(found))


def _answer(outcome: Outcome, case: Case) -> Golden:
    match outcome:
        case Ran():
            return Golden(status="ok", outputs=outcome.outputs, other=outcome.other or ())
        case Raised():
            message = clean_error(f"{outcome.kind}: {outcome.message}", case.model_path)
            message = one_line(at_data_set(case, outcome.data_set) + message)
            return Golden(status="refused", message=message, data_set=outcome.data_set)
        case Unfeedable() | Unsupported():
            return Golden(status="lost", message=outcome.message)
        case Died() | Hung():
            # A model that kills the CPU EP with these inputs may be well with others.
            ran = isinstance(outcome, Died) and outcome.phase is Phase.RUN and is_of_program(outcome)
            message = f"the CPU EP {fate(outcome)}"
            return Golden(status="lost", message=message, died=True, data_set=0 if ran else None)
        case Unavailable() | Rejected():
            return Golden(status="lost", message=f"the CPU EP {fate(outcome)}")


def fate(outcome: Outcome) -> str:
    """What became of somebody who was asked and did not answer, to stand behind a name."""
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
            return f"found no end of phase {outcome.phase} within {outcome.limit_s:g} s"
        case Unavailable() | Rejected():
            return f"is not there: {outcome.reason}"


def is_of_program(outcome: Outcome) -> bool:
    """Whether what became of somebody may be the fault of the program that ran, and not of the machine.

    A process that is killed from outside, or finds no memory or no room on a disk, says nothing about it.
    """
    if isinstance(outcome, Died):
        how = ended(outcome).ended
        return outcome.cause in OF_PROGRAM and how is not None and not how.out_of_memory
    return isinstance(outcome, Hung)


def _dispute(outcome: Outcome, case: Case) -> str:
    """Why the answer judges nobody; a matter of the references alone, whatever a matrix tolerates."""
    if case.facts.origins.by_chance:
        return f"{', '.join(case.facts.origins.by_chance)} draws numbers; no two runtimes agree"
    if not isinstance(outcome, Ran):
        return ""
    precision = computing_precision(case.facts.float_types, "float32")
    ours = lambda dtype: default_tolerance(dtype, precision)  # noqa: E731
    kinds = output_kinds_of(case, outcome.outputs)
    # Held against itself, only numbers that are drawn by lot can be wrong.
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


def repeated(golden: Golden, again: Golden, case: Case) -> Golden:
    """What another process gave, as far as it says whether a golden can be repeated.

    A process that gives nothing, for it is too slow or has no memory, says nothing against the golden.
    """
    if golden.status != "ok" or again.status != "ok":
        return Golden(status="refused", message=again.message)
    precision = computing_precision(case.facts.float_types, "float32")
    ours = lambda dtype: default_tolerance(dtype, precision)  # noqa: E731
    kinds = output_kinds_of(case, golden.outputs)
    differs = compare_sets(golden.outputs, again.outputs, ours, kinds=kinds).verdict
    return Golden(status="refused", disputed=UNREPEATABLE if differs else "")


def unnoticed(golden: Golden, zeroed: Golden, zeroed_case: Case, case: Case) -> tuple[str, ...]:
    """The operators of nodes whose results could be zeros, and the outputs would agree all the same.

    Args:
        golden: Of the model.
        zeroed: Of the model with zeros in place of what each node computes; see ``harness.corpus.zeroed``.
        zeroed_case: The case of that.
        case: The model.

    Returns:
        Their names, each once.
    """
    precision = computing_precision(case.facts.float_types, "float32")
    ours = lambda dtype: default_tolerance(dtype, precision)  # noqa: E731
    kinds = output_kinds_of(case, golden.outputs)[:1]
    first = golden.outputs[:1]
    found = {
        operator
        for operator, outputs in zip(operators_of(zeroed_case), zeroed.outputs, strict=True)
        if compare_sets(first, (outputs,), ours, kinds=kinds).verdict is None
    }
    return tuple(sorted(found))


def forgiving(case: Case, ours: Callable[[str], Tolerance]) -> Callable[[str], Tolerance]:
    """The suite's own tolerance or ours, whichever is wider: a dispute must be beyond doubt."""

    def wider(dtype: str) -> Tolerance:
        default = ours(dtype)
        if default == Tolerance(rtol=0.0, atol=0.0):
            return default
        return Tolerance(rtol=max(default.rtol, case.rtol), atol=max(default.atol, case.atol))

    return wider
