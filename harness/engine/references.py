"""The CPU provider's answers, and those of ``onnx.reference``: which are known, and where they are kept."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.core.scenario import PLAIN
from harness.core.spread import Spread
from harness.corpus.case import Case
from harness.engine.environments import contents
from harness.engine.question import HOME, Kind, Question
from harness.engine.recent import Recent
from harness.engine.uv import InstallError
from harness.golden.golden import Golden
from harness.golden.provenance import evaluator_provenance, provenance
from harness.golden.spreads import load_spread, save_spread
from harness.golden.store import GoldenStore
from harness.golden.unnoticed import load_unnoticed, save_unnoticed
from harness.plan.target import Runtime

KEPT = 4096
"""Goldens kept in memory at most, and noises of models; the store has the others."""


MOST_KEPT_BYTES = 1 << 20
"""Bytes of outputs up to which an answer without a store is kept with them. What the CPU provider of another
runtime gives is compared only where an EP of that runtime is about to fail."""


class Stores(msgspec.Struct, frozen=True):
    """Where answers outlive the run.

    Attributes:
        goldens: Those of the CPU provider.
        unoptimized: Those of the CPU provider without graph optimizations.
        evaluated: Those of ``onnx.reference``.
    """

    goldens: GoldenStore
    unoptimized: GoldenStore
    evaluated: GoldenStore

    @classmethod
    def of_here(cls, root: Path | None = None) -> "Stores":
        """Return those of this interpreter's onnxruntime and onnx; in the cache, or in another folder."""
        own = provenance()
        return cls(
            GoldenStore(own, root),
            GoldenStore(own | {"graph_optimization": "disabled"}, root),
            GoldenStore(evaluator_provenance(), root),
        )


class References:
    """Goldens by case, other answers by question and case, and the noises of models.

    Args:
        stores: Where answers outlive the run.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores: Mapping[Kind, GoldenStore] = {
            Kind.ANSWER: stores.goldens,
            Kind.FLOAT64: stores.goldens,  # another model, and so another entry
            Kind.REVEALED: stores.goldens,
            Kind.UNDEFINED: stores.goldens,
            Kind.ROUNDED: stores.goldens,
            Kind.UNOPTIMIZED: stores.unoptimized,
            Kind.EVALUATED: stores.evaluated,
            Kind.FLOAT64_EVALUATED: stores.evaluated,
        }
        self._environments: dict[Runtime, GoldenStore] = {}
        self._goldens: Recent[tuple[int, str], Golden] = Recent(KEPT)
        # What no store can give back: lost answers, those in scenarios, those of runtimes that may change.
        self._others: dict[tuple[Runtime, str, str, Kind], Golden] = {}
        self._spreads: Recent[tuple[str, str], Spread] = Recent(KEPT)
        self._noiseless: dict[tuple[str, str], str] = {}
        self._unnoticed: dict[str, tuple[str, ...]] = {}
        self._unmade: dict[tuple[str, str], str] = {}

    def golden(self, case: Case) -> Golden | None:
        """The golden of a case; None where the CPU provider has to be asked."""
        return self._load(self._stores[Kind.ANSWER], case)

    def find(self, question: Question, case: Case) -> Golden | None:
        """The answer to a question, or None where it has to be asked.

        Args:
            question: What is asked.
            case: The model that it is about.
        """
        known = self._others.get(_other(question, case))
        store = self._store(question) if known is None else None
        return known if store is None else self._load(store, case)

    def keep(self, question: Question, case: Case, golden: Golden) -> None:
        """Take an answer; one that any run can use goes to its store, too.

        Raises:
            UsageError: The store cannot be written. The answer is known nevertheless.
        """
        if golden.status == "lost" and question.kind.checks_golden:
            # Nobody depends on a reference, and none is waited for once more that was too slow before.
            golden = msgspec.structs.replace(golden, status="refused")
        store = None if golden.status == "lost" else self._store(question)
        if store is None and golden.nbytes > MOST_KEPT_BYTES:
            golden = msgspec.structs.replace(golden, outputs=())  # there is no store that could give it back
        if store is None:
            self._others[_other(question, case)] = golden
            return
        self._goldens.put((id(store), case.digest), golden, golden.nbytes)
        if no_room := store.save(case, golden):
            # Memory alone would forget it for the next large one, and it would be asked for without end.
            self._goldens.drop((id(store), case.digest))
            self._others[_other(question, case)] = Golden(
                status="lost", message=f"the CPU EP's answer: {no_room}"
            )

    def spread(self, case: Case, precision: str) -> Spread | str | None:
        """The noise of a model at a precision, or why it has none; None where it has to be found out."""
        key = (case.digest, precision)
        if (why := self._noiseless.get(key)) is not None:
            return why
        spread = self._spreads.get(key)
        if spread is None:
            spread = load_spread(self._stores[Kind.ANSWER].entry(case), precision)
            if spread is not None:
                self._spreads.put(key, spread, spread.nbytes)
        return spread

    def keep_spread(
        self, case: Case, precision: str, spread: Spread | str, amplitudes: tuple[float, ...] = ()
    ) -> None:
        """Take the noise of a model, or why it has none.

        Args:
            case: The model, without noise.
            precision: Whose rounding makes the noise.
            spread: The noise.
            amplitudes: What it was drawn at; see ``harness.corpus.noisy.amplitudes_of``.

        Raises:
            UsageError: The store cannot be written. The noise is known nevertheless.
        """
        if isinstance(spread, str):
            self._noiseless[case.digest, precision] = spread
            return
        self._spreads.put((case.digest, precision), spread, spread.nbytes)
        save_spread(self._stores[Kind.ANSWER].entry(case), spread, amplitudes)

    def unnoticed(self, case: Case) -> tuple[str, ...] | None:
        """Operators of nodes that could compute zeros without being noticed; None where nobody has tried."""
        known = self._unnoticed.get(case.digest)
        if known is None:
            known = load_unnoticed(self._stores[Kind.ANSWER].entry(case))
            if known is not None:
                self._unnoticed[case.digest] = known
        return known

    def keep_unnoticed(self, case: Case, operators: tuple[str, ...], *, for_ever: bool = True) -> None:
        """Take such operators of a model.

        Args:
            case: The model.
            operators: Their names.
            for_ever: Whether they hold beyond this run; not where a process was lost over them.

        Raises:
            UsageError: The store cannot be written. They are known nevertheless.
        """
        self._unnoticed[case.digest] = operators
        if for_ever:
            save_unnoticed(self._stores[Kind.ANSWER].entry(case), operators)

    def unmade(self, case: Case, precision: str) -> str:
        """Why a model could not be converted to a precision; empty where nothing is known against it."""
        return self._unmade.get((case.digest, precision), "")

    def keep_unmade(self, case: Case, precision: str, why: str) -> None:
        """A model could not be converted to a precision."""
        self._unmade[case.digest, precision] = why

    def _store(self, question: Question) -> GoldenStore | None:
        """Where the answer to a question outlives the run, if it may."""
        runtime = question.runtime
        if question.session != PLAIN or question.kind is Kind.REPEATED:
            return None
        if runtime == HOME:
            return self._stores[question.kind]
        if runtime not in self._environments and runtime.packages:
            with contextlib.suppress(InstallError):
                if packages := contents(runtime):
                    self._environments[runtime] = GoldenStore(provenance() | packages)
        return self._environments.get(runtime)

    def _load(self, store: GoldenStore, case: Case) -> Golden | None:
        golden = self._goldens.get((id(store), case.digest))
        if golden is None:
            golden = store.load(case)
            if golden is not None:
                self._goldens.put((id(store), case.digest), golden, golden.nbytes)
        return golden


def _other(question: Question, case: Case) -> tuple[Runtime, str, str, Kind]:
    return (question.runtime, case.digest, question.session, question.kind)
