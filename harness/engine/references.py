"""The CPU provider's answers: which are known, which are asked for, and which cells wait for them."""

import msgspec

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
            if golden is not None:
                self._goldens.put(case.digest, golden, golden.nbytes)
        return golden

    def keep(self, runtime: Runtime, case: Case, golden: Golden) -> None:
        """Take an answer; a golden goes to the store, too.

        Raises:
            UsageError: The store cannot be written. The answer is known nevertheless.
        """
        if runtime != HOME or golden.status == "lost":
            # Nobody compares with another runtime's outputs: whether it has any is all that is asked.
            self._others[runtime, case.digest] = msgspec.structs.replace(golden, outputs=())
            return
        self._goldens.put(case.digest, golden, golden.nbytes)
        self._store.save(case, golden)
