"""What an outcome of the CPU provider is worth as an answer, and what speaks against it."""

from collections.abc import Callable

import msgspec

from harness.core.compare import compare_all
from harness.core.errors import one_line
from harness.core.tolerance import Tolerance, computing_precision, default_tolerance
from harness.corpus.case import Case
from harness.engine.cases import Untold, why_not
from harness.engine.compare_sets import compare_sets
from harness.engine.essence import essence
from harness.engine.judge import at_data_set
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
from harness.golden.golden import Golden

RANDOM_OPERATORS = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators whose generator the standard leaves open, a seed or not: their values judge nobody."""

UNREPEATABLE = "the CPU EP itself gives another result each time"
"""Why a golden is disputed whose values lie apart, run for run."""


def golden_of(outcome: Outcome, case: Case) -> Golden:
    """What an outcome of the CPU provider is worth as an answer."""
    return msgspec.structs.replace(_answer(outcome, case), disputed=_dispute(outcome, case))


def lost(found: Untold) -> Golden:
    """The answer about a model that there is none of."""
    return Golden(status="lost", message=why_not(found))


def _answer(outcome: Outcome, case: Case) -> Golden:
    match outcome:
        case Ran():
            return Golden(status="ok", outputs=outcome.outputs)
        case Raised():
            message = essence(f"{outcome.kind}: {outcome.message}", case.model_path)
            message = one_line(at_data_set(case, outcome.data_set) + message)
            return Golden(status="refused", message=message, data_set=outcome.data_set)
        case Died():
            message = f"the CPU EP crashed: {outcome.cause}"
        case Hung():
            message = f"the CPU EP hung in phase {outcome.phase}"
        case Unfeedable() | Unsupported():
            message = outcome.message
        case Unavailable() | Rejected():
            message = f"there is no CPU EP: {outcome.reason}"
    return Golden(status="lost", message=message)


def _dispute(outcome: Outcome, case: Case) -> str:
    """Why the answer judges nobody; a matter of the references alone, whatever a matrix tolerates."""
    random = RANDOM_OPERATORS & case.facts.op_types.keys()
    if random:
        return f"{', '.join(sorted(random))} draws numbers; no two runtimes agree"
    if not isinstance(outcome, Ran):
        return ""
    precision = computing_precision(case.facts.float_types, "float32")
    ours = lambda dtype: default_tolerance(dtype, precision)  # noqa: E731
    if outcome.second is not None and compare_all(outcome.outputs[0], outcome.second, ours).verdict:
        return UNREPEATABLE
    expected = tuple(data_set.expected for data_set in case.data_sets)
    disagreement = compare_sets(expected, outcome.outputs, _forgiving(case, ours), only_known=True)
    if disagreement.verdict is None:
        return ""
    return one_line(f"golden and expected data disagree: {disagreement.message}")


def _forgiving(case: Case, ours: Callable[[str], Tolerance]) -> Callable[[str], Tolerance]:
    """The suite's own tolerance or ours, whichever is wider: a dispute must be beyond doubt."""

    def wider(dtype: str) -> Tolerance:
        default = ours(dtype)
        if default == Tolerance(rtol=0.0, atol=0.0):
            return default
        return Tolerance(rtol=max(default.rtol, case.rtol), atol=max(default.atol, case.atol))

    return wider
