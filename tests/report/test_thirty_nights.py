"""Thirty nights with planted events, and what `diff`, `gate` and `history` tell of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.timing.latency import Latency
from harness.report.changes.diff import compare_merged
from harness.report.changes.diff_text import gate_lines
from harness.report.changes.gate import GateLimits, Judgement, judge_changes
from harness.report.changes.run_comparison import read_side
from harness.report.changes.run_diff import CellChange, CellChangeKind, Diff
from harness.report.history.history_file import History
from harness.report.history.trend import cell_points, trends
from harness.report.history.trend_points import Trends
from harness.report.runs.merged_run import MergedRun
from tests.kit import latency, record, write_run

NIGHTS = range(1, 31)
K = CellChangeKind

REGRESSION = range(7, 12)
FLAKES = range(4, 31, 5)
AWAY, DRIVER, PARTIAL, CONFLICT, RERUN, MACHINE, SLOWER, ADDED, REMOVED = 15, 17, 20, 22, 23, 25, 26, 27, 28

Told = dict[str, CellChangeKind]

TOLD: dict[int, Told] = {
    4: {"flake": K.REGRESSED},
    5: {"flake": K.FIXED},
    7: {"a": K.REGRESSED},
    9: {"flake": K.REGRESSED},
    10: {"flake": K.FIXED},
    12: {"a": K.FIXED},
    14: {"flake": K.REGRESSED},
    15: {"flake": K.FIXED, "g1": K.GONE, "g2": K.GONE},
    16: {"g1": K.NEW, "g2": K.NEW},
    17: {"d": K.REGRESSED},
    19: {"flake": K.REGRESSED},
    20: {"flake": K.FIXED, "b": K.GONE, "c": K.GONE},
    21: {"b": K.NEW, "c": K.NEW},
    22: {"b": K.GONE},
    23: {"b": K.NEW},
    24: {"flake": K.REGRESSED},
    25: {"flake": K.FIXED},
    26: {"g1": K.CHANGED},
    27: {"added": K.NEW},
    28: {"removed": K.GONE},
    29: {"flake": K.REGRESSED},
    30: {"flake": K.FIXED},
}
"""Night -> cell -> the word for it; nothing is told of the other nights."""

FAILING: dict[int, set[str]] = {
    **{night: {"regressed", "enter.failed"} for night in (7, 17)},
    15: {"gone", "judged"},  # a whole target
    20: {"gone", "not_run", "judged"},
    22: {"gone", "not_run", "judged"},
    26: {"slower"},
    28: {"gone", "judged"},
}
"""Night -> the limits that fail it, where the policy names the flake."""

FLAKY: dict[str, Any] = {"retries": (Verdict.PASS,)}


def times(ms: float) -> Latency:
    return latency(*(ms + 0.001 * (at % 7) for at in range(20)))


def records_of(night: int) -> list[Record]:
    fields: dict[str, Any] = {"started": f"2026-11-{night:02}T02:00:00Z"}
    failing = {"a": night in REGRESSION, "d": night >= DRIVER, "flake": night in FLAKES}
    planned = {"added": night >= ADDED, "removed": night < REMOVED}
    of_npu = [
        record(
            model,
            verdict=Verdict.MISMATCH if failing.get(model) else Verdict.PASS,
            **(fields | FLAKY if model == "flake" and night in FLAKES else fields),
        )
        for model in ("a", "b", "c", "d", "flake", "added", "removed")
        if planned.get(model, True)
    ]
    of_gpu = [
        record(model, target="gpu", verdict=Verdict.UNAVAILABLE, cause="no_device", **fields)
        if night == AWAY
        else record(model, target="gpu", **fields, latency=times(14.0 if night >= SLOWER else 10.0))
        for model in ("g1", "g2")
    ]
    if night >= SLOWER:  # one of the two cells only
        of_gpu[1] = record("g2", target="gpu", **fields, latency=times(10.0))
    return of_npu + of_gpu


def write_night(night: int, home: Path) -> Path:
    """Write the run folders of a night, and return the folder that has them."""
    targets: dict[str, Any] = {
        "npu": {"drivers": {"npu": "560" if night >= DRIVER else "550"}},
        "gpu": {"processor": {"model": "new" if night >= MACHINE else "old"}},
    }
    records = records_of(night)
    folder = home / f"night-{night:02}"
    if night == PARTIAL:
        lost = [one.cell for one in records if one.model in ("b", "c")]
        here = [one for one in records if one.cell not in lost]
        return write_run(folder / "one", here, targets=targets, missing=lost, complete=False).parent
    if night == RERUN:  # the first attempt died after a cell
        dead = [one.cell for one in records[1:]]
        write_run(folder / "one", records[:1], targets=targets, missing=dead, complete=False)
    if night == CONFLICT:
        write_run(
            folder / "one", [record("b", verdict=Verdict.CRASH, started=records[0].started)], targets=targets
        )
    return write_run(folder / "two", records, targets=targets, missing=[]).parent


def known_flake(change: CellChange) -> str:
    return "https://example.org/1" if change.model == "flake" and change.after is Verdict.MISMATCH else ""


class Night(msgspec.Struct, frozen=True):
    """What is told of a night; the first has none before it."""

    run: MergedRun
    diff: Diff | None
    judgement: Judgement | None
    trends: Trends


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[int, Night], History]]:
    found: dict[int, Night] = {}
    home = tmp_path_factory.mktemp("nights")
    with History(tmp_path_factory.mktemp("history") / "h.sqlite", create=True) as history:
        for night in NIGHTS:
            path = write_night(night, home)
            run = read_side(path)
            assert history.add(path, run=run)
            diff = judgement = None
            if before := found.get(night - 1):
                earlier = [found[each].run for each in range(max(1, night - 5), night - 1)]
                diff = compare_merged(before.run, run, names=("before", "now"), earlier=earlier)
                judgement = judge_changes(diff, GateLimits(), known_flake)
            found[night] = Night(run, diff, judgement, trends(history))
        yield found, history


Nights = tuple[dict[int, Night], History]


def test_diff_tells_each_event_in_its_word_and_nothing_else(nights: Nights) -> None:
    told = {
        night: {change.model: change.kind for change in one.diff.changes}
        for night, one in nights[0].items()
        if one.diff
    }
    assert {night: words for night, words in told.items() if words} == TOLD


def test_the_gate_fails_on_the_nights_that_got_worse_and_no_other(nights: Nights) -> None:
    judged = {night: one.judgement for night, one in nights[0].items() if one.judgement}
    failing = {
        night: {breach.limit for breach in one.breaches} for night, one in judged.items() if not one.passed
    }
    assert failing == FAILING
    excused = {night for night, one in judged.items() if one.excused}
    assert excused == {*FLAKES}


def test_history_tells_the_same_words(nights: Nights) -> None:
    told = {night: {one.cell: one.kind for one in its.trends.turned} for night, its in nights[0].items()}
    assert {
        night: {cell.split("/")[1].partition("[")[0]: kind for cell, kind in words.items()}
        for night, words in told.items()
        if words
    } == {night: words for night, words in TOLD.items() if night != SLOWER}  # history compares verdicts


def test_history_tells_since_when_and_what_changed_then(nights: Nights) -> None:
    found, history = nights
    (failing,) = found[30].trends.failing
    assert (failing.cell, failing.since.first, failing.runs) == (
        "onnx-node/d[npu]",
        "2026-11-17T02:00:00Z",
        14,
    )
    assert failing.changed == ("drivers.npu: 550 -> 560",)
    (points,) = cell_points(history, "onnx-node/flake[npu]").values()
    assert [at for at, point in enumerate(points, 1) if point.verdict is Verdict.MISMATCH] == [*FLAKES]
    (points,) = cell_points(history, "onnx-node/b[npu]").values()
    assert [at for at, point in enumerate(points, 1) if point.verdict is Verdict.NOT_RUN] == [
        PARTIAL,
        CONFLICT,
    ]
    assert [one.id for one in found[30].trends.runs if not one.complete] == [PARTIAL, CONFLICT]


def test_what_else_a_night_was_is_told(nights: Nights) -> None:
    found, _ = nights

    def lines(night: int) -> str:
        diff, judgement = found[night].diff, found[night].judgement
        assert diff is not None
        assert judgement is not None
        return " ".join(" ".join(gate_lines(diff, judgement)).split())

    assert "(flaky)" in lines(FLAKES[0])
    assert "known flakes, not counted: 1 cell" in lines(FLAKES[0])
    assert "unavailable: target gpu, 2 cells had a result before, and none now" in lines(AWAY)
    assert "not tried: 2 of 2 cells of target gpu in the new run" in lines(AWAY)
    assert "driver changed" in lines(DRIVER)
    assert "INCOMPLETE: 2 not run" in lines(PARTIAL)
    assert "its runs hold different results: crash in one, pass in two" in lines(CONFLICT)
    assert "INCOMPLETE" not in lines(RERUN).partition("new before")[0].partition("new now")[2]
    assert "processor.model: old -> new" in lines(MACHINE)
    assert "1 slower, 0 faster, 0 unclear" in lines(SLOWER)
    assert "slower: 10 ms became 14 ms" in lines(SLOWER)
    assert "latency:" not in lines(MACHINE)  # another machine
    assert "no longer planned" in lines(REMOVED)
    assert found[RERUN].run.complete
    assert not found[CONFLICT].run.complete
