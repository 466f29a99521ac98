"""The known answers of the CPU provider and of ``onnx.reference``, in memory and in the stores."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.core.lru_cache import LruCache, Room
from harness.core.noise.spread import Spread
from harness.core.records.scenario import PLAIN
from harness.corpus.case import Case
from harness.engine.tasks.task import HOME, Question, QuestionKind
from harness.golden.golden_answer import Golden
from harness.golden.golden_cache import GoldenStore
from harness.golden.provenance import composed_provenance, evaluator_provenance, provenance
from harness.golden.spreads import load_spread, load_unnoticed, save_spread, save_unnoticed
from harness.plan.target import Runtime
from harness.runtimes.environments import answer_dependencies
from harness.runtimes.installer import InstallError

MORE_OF_SMALL = 16
"""Factor for entries without a store that take some hundred bytes: why a model has no noise, and answers
without outputs. A dropped entry would be asked for again."""

MOST_KEPT_BYTES = 1 << 20
"""Bytes of outputs up to which an answer without a store is kept with its outputs.

The outputs of another runtime's CPU provider are compared only if an EP of that runtime is about to fail.
"""


class Stores(msgspec.Struct, frozen=True):
    """Stores for answers of the CPU EP, optimized or not, of ``onnx.reference`` and in float64."""

    goldens: GoldenStore
    unoptimized: GoldenStore
    evaluated: GoldenStore
    composed: GoldenStore

    @classmethod
    def of_here(cls, root: Path | None = None) -> "Stores":
        """Return the stores of this interpreter's onnxruntime and onnx.

        In the cache, or in another folder.
        """
        own = provenance()
        return cls(
            GoldenStore(own, root),
            GoldenStore(own | {"graph_optimization": "disabled"}, root),
            GoldenStore(evaluator_provenance(), root),
            GoldenStore(composed_provenance(), root),
        )


class References:
    """Goldens by case, other answers by question and case, and the noises of models.

    Memory holds as many of each kind as there is room for; the stores have the others.
    """

    def __init__(self, stores: Stores, room: Room = Room()) -> None:  # noqa: B008 - it is frozen
        self._stores: Mapping[QuestionKind, GoldenStore] = {
            QuestionKind.ANSWER: stores.goldens,
            QuestionKind.FLOAT64: stores.goldens,  # another model, and so another entry
            QuestionKind.REVEALED: stores.goldens,
            QuestionKind.SETTLED_LOW: stores.goldens,
            QuestionKind.SETTLED_HIGH: stores.goldens,
            QuestionKind.UNDEFINED: stores.goldens,
            QuestionKind.ROUNDED: stores.goldens,
            QuestionKind.UNOPTIMIZED: stores.unoptimized,
            QuestionKind.EVALUATED: stores.evaluated,
            QuestionKind.FLOAT64_EVALUATED: stores.composed,
        }
        self._environments: dict[Runtime, GoldenStore] = {}
        small = MORE_OF_SMALL * room.count
        self._goldens: LruCache[tuple[int, str], Golden] = LruCache(room.count, room.nbytes)
        # Answers without a store: lost ones, those in scenarios, and those of runtimes that may change.
        self._others: LruCache[tuple[Runtime, str, str, QuestionKind], Golden] = LruCache(small, room.nbytes)
        # As large as goldens, and useless to another run, whose ways may differ.
        self._played: LruCache[str, Golden] = LruCache(room.count, room.nbytes)
        self._spreads: LruCache[tuple[str, str], Spread] = LruCache(room.count, room.nbytes)
        self._noiseless: LruCache[tuple[str, str], str] = LruCache(small, room.nbytes)
        self._unnoticed: LruCache[str, tuple[str, ...]] = LruCache(small, room.nbytes)
        self._unmade: LruCache[tuple[str, str], str] = LruCache(small, room.nbytes)

    def golden(self, case: Case) -> Golden | None:
        """Return the golden of a case; None if the CPU provider has to be asked."""
        if case.frozen is not None:
            return frozen_golden(case)
        return self._load(self._stores[QuestionKind.ANSWER], case)

    def find(self, question: Question, case: Case) -> Golden | None:
        """Return the answer to a question, or None if it has to be asked.

        The golden of a frozen case is in its files.
        """
        if case.frozen is not None and question.kind is QuestionKind.ANSWER and question.runtime == HOME:
            return frozen_golden(case)
        if question.kind is QuestionKind.PLAYED:
            return self._played.get(case.digest)
        known = self._others.get(_other(question, case)) if len(self._others) else None
        store = self._store(question) if known is None else None
        return known if store is None else self._load(store, case)

    def keep(self, question: Question, case: Case, golden: Golden) -> None:
        """Keep an answer; an answer that any run can use also goes to its store.

        Raises:
            UsageError: The store cannot be written. The answer is known nevertheless.
        """
        if question.kind is QuestionKind.PLAYED:
            self._played.put(case.digest, golden, golden.nbytes)
            return
        if golden.status == "lost" and question.kind.checks_golden:
            # No cell depends on a reference; one that was too slow is not waited for again.
            golden = msgspec.structs.replace(golden, status="refused")
        store = None if golden.status == "lost" else self._store(question)
        if store is None and golden.nbytes > MOST_KEPT_BYTES:
            golden = msgspec.structs.replace(golden, outputs=())  # too large for memory
        if store is None:
            self._others.put(_other(question, case), golden, golden.nbytes)
            return
        self._goldens.put((id(store), case.digest), golden, golden.nbytes)
        if no_room := store.save(case, golden):
            # Memory alone would drop it for the next large one, and it would be asked for again and again.
            self._goldens.drop((id(store), case.digest))
            unkept = Golden(status="lost", message=f"the CPU EP's answer: {no_room}")
            self._others.put(_other(question, case), unkept, 0)

    def spread(self, case: Case, noise_at: str) -> Spread | str | None:
        """Return a noise of a model, or why it has none; None if it has to be asked.

        For ``noise_at`` see ``harness.corpus.derived.noisy.with_allowed``.
        """
        if case.frozen is not None:
            return case.frozen.noise
        key = (case.digest, noise_at)
        if (why := self._noiseless.get(key)) is not None:
            return why
        spread = self._spreads.get(key)
        if spread is None:
            spread = load_spread(self._stores[QuestionKind.ANSWER].entry(case), noise_at)
            if spread is not None:
                self._spreads.put(key, spread, spread.nbytes)
        return spread

    def keep_spread(
        self, case: Case, noise_at: str, spread: Spread | str, amplitudes: tuple[float, ...] = ()
    ) -> None:
        """Keep a noise of a model, or why it has none; ``amplitudes`` are the amplitudes of the noisy runs.

        Raises:
            UsageError: The store cannot be written. The noise is known nevertheless.
        """
        if isinstance(spread, str):
            self._noiseless.put((case.digest, noise_at), spread, 0)
            return
        self._spreads.put((case.digest, noise_at), spread, spread.nbytes)
        save_spread(self._stores[QuestionKind.ANSWER].entry(case), noise_at, spread, amplitudes)

    def unnoticed(self, case: Case) -> tuple[str, ...] | None:
        """Return operators of nodes that could compute zeros unnoticed; None if it has to be asked."""
        known = self._unnoticed.get(case.digest)
        if known is None:
            known = load_unnoticed(self._stores[QuestionKind.ANSWER].entry(case))
            if known is not None:
                self._unnoticed.put(case.digest, known, 0)
        return known

    def keep_unnoticed(self, case: Case, operators: tuple[str, ...], *, for_ever: bool = True) -> None:
        """Keep these operators of a model; ``for_ever`` is false if a process was lost while finding them.

        Raises:
            UsageError: The store cannot be written. They are known nevertheless.
        """
        self._unnoticed.put(case.digest, operators, 0)
        if for_ever:
            save_unnoticed(self._stores[QuestionKind.ANSWER].entry(case), operators)

    def unmade(self, case: Case, precision: str) -> str:
        """Return why a model could not be converted to a precision; empty if no reason is known."""
        return self._unmade.get((case.digest, precision)) or ""

    def keep_unmade(self, case: Case, precision: str, why: str) -> None:
        """Keep why a model could not be converted to a precision."""
        self._unmade.put((case.digest, precision), why, 0)

    def _store(self, question: Question) -> GoldenStore | None:
        """Return the store of an answer; None if the answer must not outlive the run."""
        runtime = question.runtime
        if question.session != PLAIN or question.kind in (QuestionKind.REPEATED, QuestionKind.FUSED):
            return None
        if runtime == HOME:
            return self._stores[question.kind]
        if runtime not in self._environments and runtime.packages:
            with contextlib.suppress(InstallError):
                if packages := answer_dependencies(runtime):
                    self._environments[runtime] = GoldenStore(provenance() | packages)
        return self._environments.get(runtime)

    def _load(self, store: GoldenStore, case: Case) -> Golden | None:
        golden = self._goldens.get((id(store), case.digest))
        if golden is None:
            golden = store.load(case)
            if golden is not None:
                self._goldens.put((id(store), case.digest), golden, golden.nbytes)
        return golden


def frozen_golden(case: Case) -> Golden:
    """Return the golden of a frozen case."""
    return Golden(status="ok", outputs=tuple(one.expected for one in case.data_sets))


def _other(question: Question, case: Case) -> tuple[Runtime, str, str, QuestionKind]:
    return (question.runtime, case.digest, question.session, question.kind)
