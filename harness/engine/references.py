"""The CPU provider's answers: which are known, which are asked for, and which cells wait for them."""

import msgspec

from harness.core.scenario import PLAIN
from harness.corpus.case import Case
from harness.engine.recent import Recent
from harness.golden.golden import Golden
from harness.golden.store import GoldenStore
from harness.plan.target import Runtime

KEPT = 512
"""Goldens kept in memory at most; the store has the others."""

HOME = Runtime()
"""The harness's own interpreter, whose CPU provider makes the goldens."""


class References:
    """Goldens by case, and second opinions by runtime and case.

    Args:
        store: Where goldens outlive the run.
    """

    def __init__(self, store: GoldenStore) -> None:
        self._store = store
        self._goldens: Recent[str, Golden] = Recent(KEPT)
        # What no store can give back: lost goldens, and the answers of other runtimes and in scenarios.
        self._others: dict[tuple[Runtime, str, str], Golden] = {}

    def find(self, runtime: Runtime, case: Case, scenario: str = PLAIN) -> Golden | None:
        """The answer of a runtime's CPU provider, or None where it has to be asked.

        Args:
            runtime: Whose CPU provider.
            case: The model with the data of its scenario.
            scenario: What was done with the session; goldens are those of ``plain``.
        """
        known = self._others.get((runtime, case.digest, scenario))
        if known is not None or runtime != HOME or scenario != PLAIN:
            return known
        golden = self._goldens.get(case.digest)
        if golden is None:
            golden = self._store.load(case)
            if golden is not None:
                self._goldens.put(case.digest, golden, golden.nbytes)
        return golden

    def keep(self, runtime: Runtime, case: Case, golden: Golden, scenario: str = PLAIN) -> None:
        """Take an answer; a golden goes to the store, too.

        Raises:
            UsageError: The store cannot be written. The answer is known nevertheless.
        """
        if runtime != HOME or scenario != PLAIN or golden.status == "lost":
            # Nobody compares with these outputs: whether there are any is all that is asked.
            self._others[runtime, case.digest, scenario] = msgspec.structs.replace(golden, outputs=())
            return
        self._goldens.put(case.digest, golden, golden.nbytes)
        self._store.save(case, golden)
