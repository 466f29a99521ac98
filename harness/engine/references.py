"""The CPU provider's answers: which are known, which are asked for, and which cells wait for them."""

from collections import OrderedDict

from harness.core.compare import compare_all
from harness.core.tolerance import computing_precision, default_tolerance
from harness.corpus.case import Case
from harness.engine.essence import essence
from harness.engine.outcome import Died, Hung, Outcome, Raised, Ran, Rejected, Unavailable, Unfeedable
from harness.golden.golden import Golden
from harness.golden.store import GoldenStore
from harness.plan.target import Runtime

KEPT = 512
"""Goldens kept in memory; the store has the others."""

HOME = Runtime()
"""The harness's own interpreter, whose CPU provider makes the goldens."""


class References:
    """Goldens by case, and second opinions by runtime and case.

    Args:
        store: Where goldens outlive the run.
    """

    def __init__(self, store: GoldenStore) -> None:
        self._store = store
        self._goldens: OrderedDict[str, Golden] = OrderedDict()
        # What no store can give back: lost goldens, and the answers of other runtimes.
        self._others: dict[tuple[Runtime, str], Golden] = {}

    def find(self, runtime: Runtime, case: Case) -> Golden | None:
        """The answer of a runtime's CPU provider, or None where it has to be asked."""
        known = self._others.get((runtime, case.digest))
        if known is not None or runtime != HOME:
            return known
        golden = self._goldens.get(case.digest)
        if golden is None:
            golden = self._store.load(case)
            if golden is None:
                return None
            self._remember(case, golden)
        self._goldens.move_to_end(case.digest)
        return golden

    def keep(self, runtime: Runtime, case: Case, golden: Golden) -> None:
        """Take an answer; a golden goes to the store, too.

        Raises:
            UsageError: The store cannot be written. The answer is known nevertheless.
        """
        if runtime != HOME or golden.status == "lost":
            self._others[runtime, case.digest] = golden
            return
        self._remember(case, golden)
        self._store.save(case, golden)

    def _remember(self, case: Case, golden: Golden) -> None:
        self._goldens[case.digest] = golden
        if len(self._goldens) > KEPT:
            self._goldens.popitem(last=False)


def golden_of(outcome: Outcome, model: Case) -> Golden:
    """What an outcome of the CPU provider is worth as an answer."""
    match outcome:
        case Ran():
            return Golden(status="ok", outputs=outcome.outputs, deterministic=_repeats(outcome, model))
        case Raised():
            return Golden(
                status="refused", message=essence(f"{outcome.kind}: {outcome.message}", model.model_path)
            )
        case Died():
            message = f"the CPU EP crashed: {outcome.cause}"
        case Hung():
            message = f"the CPU EP hung in phase {outcome.phase}"
        case Unfeedable():
            message = outcome.message
        case Unavailable() | Rejected():
            message = f"there is no CPU EP: {outcome.reason}"
    return Golden(status="lost", message=message)


def _repeats(outcome: Ran, case: Case) -> bool:
    if outcome.second is None:
        return True
    precision = computing_precision(case.facts.float_types, "fp32")
    again = compare_all(outcome.outputs[0], outcome.second, lambda dtype: default_tolerance(dtype, precision))
    return again.verdict is None
