"""Which attempt at inputs a model runs with, as far as the CPU provider's answers are known."""

import functools
from collections.abc import Callable, Iterator

import msgspec

from harness.core.comparison.tolerance import default_tolerance
from harness.core.comparison.weak_golden import holds_nan, is_faint, why_weak
from harness.core.text.errors import one_line
from harness.corpus.case import Case, at_attempt
from harness.corpus.inputs.attempts import STRONGER, InputAttempt
from harness.corpus.model.model_errors import ModelError
from harness.golden.golden_answer import Golden

FindGolden = Callable[[Case], Golden | None]
"""Return the golden of a case; None if the CPU provider has to be asked."""


class GoldenTrial(msgspec.Struct, frozen=True):
    """The state of the attempts.

    Attributes:
        case: With the inputs to use, or, if ``is_open``, with those to try next.
        is_open: Whether the CPU provider has to be asked.
        failure: Its error for the first attempt, if no attempt runs; else empty.
    """

    case: Case
    is_open: bool = False
    failure: str = ""


def try_inputs(first: Case, answer: FindGolden) -> GoldenTrial:
    """Go through the attempts as far as answers are known.

    Takes the first attempt that runs. If its golden cannot distinguish a right answer from a wrong one, takes
    the first other values of the same sizes whose golden can. A model with test data, or without any input,
    has no other attempt. Nothing but goldens decides, so that each run takes the same inputs.
    """
    if first.recipe is None or not first.ports:
        return GoldenTrial(first)
    failure, tried = "", 0
    for case in _cases(first, first.recipe.attempts()):
        golden = answer(case)
        if golden is None:
            return GoldenTrial(case, is_open=True)
        if golden.status == "ok":
            return _strongest(case, golden, answer)
        if golden.data_set is None:
            break  # no session can be made, or nothing is known: other inputs would not help
        failure, tried = failure or golden.message, tried + 1
    golden = answer(first)
    if golden is None or golden.status == "lost" or golden.data_set is None:
        return GoldenTrial(first)
    return GoldenTrial(
        first, failure=one_line(f"no generated input runs on the CPU EP ({tried} tried): {failure}")
    )


def _strongest(case: Case, golden: Golden, answer: FindGolden) -> GoldenTrial:
    """Return the first attempt of a case's sizes whose golden is strong, or else the least weak one."""
    weakness = _weakness(golden)
    if case.recipe is None or not weakness:
        return GoldenTrial(case)
    sizes, found = case.recipe.attempt.sizes, case.recipe.attempt.values
    others = [InputAttempt(sizes=sizes, values=values) for values in STRONGER if values != found]
    for other in _cases(case, others):
        golden_of_other = answer(other)
        if golden_of_other is None:
            return GoldenTrial(other, is_open=True)
        of_other = _weakness(golden_of_other) if golden_of_other.status == "ok" else weakness
        if of_other < weakness:
            case, weakness = other, of_other
        if not weakness:
            break
    return GoldenTrial(case)


def _weakness(golden: Golden) -> int:
    """Return how badly a golden distinguishes right from wrong answers.

    0 for a strong one, 1 for a faint one, 2 for a weak one or one that holds a NaN.
    """
    usual = functools.partial(default_tolerance, precision="float32")
    if why_weak(golden.outputs, usual) or holds_nan(golden.outputs):
        return 2
    return int(is_faint(golden.outputs))


def _cases(case: Case, attempts: "tuple[InputAttempt, ...] | list[InputAttempt]") -> Iterator[Case]:
    for attempt in attempts:
        try:
            yield at_attempt(case, attempt)
        except ModelError:
            continue  # too large at these sizes
