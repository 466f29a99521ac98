"""Events that nobody takes yet: they do not pile up, and those that have piled up are handed out at once."""

import time
from typing import TYPE_CHECKING

import pytest

from harness.core.verdict import Verdict

if TYPE_CHECKING:
    from tests.engine.scheduling.conftest import Bench

IN_HAND = 4
MOST_UNTAKEN = 6
MODELS = tuple(f"{number:02}_m" for number in range(30))


def test_nobody_gets_more_to_do_until_some_are_taken(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    bench.models(*MODELS)
    bench.run(bench.target("t"))  # nothing waits for goldens from now on
    bench.handed.clear()
    monkeypatch.setattr("harness.engine.engine.MOST_UNTAKEN", MOST_UNTAKEN)
    with bench.engine(bench.target("t")) as engine:
        bench.wait_until(lambda: engine._is_ahead and not bench.launched[-1].hands)
        handed = len(bench.handed)
        time.sleep(0.5)
        assert MOST_UNTAKEN <= engine._outbox.qsize() <= MOST_UNTAKEN + 2 * IN_HAND
        assert len(bench.handed) == handed < len(MODELS)
        assert bench.verdicts(list(engine.events())) == {Verdict.PASS: len(MODELS)}


def test_events_gather_only_where_there_are_few(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engine.engine.BATCH", 5)
    monkeypatch.setattr("harness.engine.engine.MOST_UNTAKEN", 12)
    monkeypatch.setattr("harness.engine.engine.LINGER_S", 30.0)
    bench.models(*MODELS)
    with bench.engine(bench.target("t")) as engine:
        batches = engine.batches()
        bench.wait_until(lambda: engine._is_ahead)
        started = time.monotonic()
        assert [len(next(batches)) for _ in range(2)] == [5, 5]
        assert time.monotonic() - started < 15.0
        monkeypatch.setattr("harness.engine.engine.LINGER_S", 0.0)
        assert sum(map(len, batches)) >= len(MODELS) - 10
