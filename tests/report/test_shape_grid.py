"""The heat maps of a grid of sizes, and which sizes became slower between two runs."""

import msgspec
import numpy as np

from harness.core.records.record import Record
from harness.core.records.shape_times import ShapeTime
from harness.report.changes.diff import compare_merged
from harness.report.changes.shape_time_change import shape_time_changes
from harness.report.pages.shape_grid import grid_maps
from harness.report.pages.time_page import time_view
from harness.report.view import build_report
from tests.kit import merged, record


def time(ms: float, waiting: float = 0.0) -> ShapeTime:
    return ShapeTime(runs=50, p50_ms=ms, low_ms=ms * 0.99, high_ms=ms * 1.01, waiting_threads=waiting)


def timed(target: str, **ms: float) -> Record:
    """A record with the times of shapes: ``b2_s8`` is a batch of 2 and a sequence of 8."""
    names = [name.replace("b", "batch=").replace("_s", ", sequence=") for name in ms]
    return record(
        "llm",
        target=target,
        axes={"scenario": "dynamic_shapes"},
        scenario={"shapes": ("given", *names, "given")},
        shape_times=(time(1.0), *map(time, ms.values()), time(1.0)),
    )


def test_targets_are_compared_at_each_size_and_the_worst_is_told() -> None:
    records = [
        timed("cpu", b1_s8=1.0, b1_s64=4.0, b4_s8=2.0),
        timed("npu", b1_s8=0.5, b1_s64=12.0, b4_s8=2.1),
    ]
    (model,) = grid_maps(build_report(merged(records), lambda *_: "", {}))
    assert model.compared
    cpu, npu = model.maps
    assert cpu.sentence == "at worst 2 times the time of npu, at batch=1, sequence=8; slower at 1 of 3 shapes"
    assert (
        npu.sentence == "at worst 3 times the time of cpu, at batch=1, sequence=64; slower at 2 of 3 shapes"
    )
    assert (npu.across, npu.sizes, [row.label for row in npu.rows]) == (
        "sequence",
        (8, 64),
        ["batch=1", "batch=4"],
    )
    squares = [
        square and (square.ms, square.times, square.tone) for row in npu.rows for square in row.squares
    ]
    assert squares == [("0.5", "1", "heat-0"), ("12", "3", "heat-3"), ("2.1", "1.05", "heat-0"), None]


def test_a_single_target_is_compared_with_its_best_time_of_an_element() -> None:
    report = build_report(merged([timed("cpu", b1_s8=1.0, b1_s64=2.0)]), lambda *_: "", {})
    (model,) = grid_maps(report)
    assert not model.compared
    told = "an element takes 4 times as long at batch=1, sequence=8 as at the best shape"
    assert model.maps[0].sentence == told


def test_the_page_needs_no_time_of_nodes() -> None:
    (view,) = time_view(build_report(merged([timed("cpu", b1_s8=1.0)]), lambda *_: "", {}))
    assert (view.models, view.failed, len(view.grids)) == ((), (), 1)


def test_a_regression_that_hides_at_one_size_is_told_with_the_worst_ratio() -> None:
    before = {f"n={size}": time(float(size)) for size in (1, 2, 4, 8)}
    after = before | {"n=4": time(7.2), "n=8": time(8.1)}
    (told,) = shape_time_changes({"cell": (before, after)}).values()
    assert told == "1 of 4 shapes slower, 1.8 times at worst (n=4: 4 ms became 7.2 ms)"
    busy = after | {"n=4": time(7.2, waiting=0.4)}
    assert shape_time_changes({"cell": (before, busy)}) == {}


def test_equal_builds_give_no_sentence() -> None:
    chance = np.random.default_rng(1)

    def night() -> dict[str, ShapeTime]:
        own = chance.normal(0, 0.03)
        return {f"n={n}": time(n * (1 + own + chance.normal(0, 0.005))) for n in range(1, 21)}

    assert len(shape_time_changes({str(at): (night(), night()) for at in range(100)})) <= 1


def test_diff_tells_it_of_the_cell() -> None:
    old, new = timed("npu", b1_s8=1.0, b1_s64=4.0), timed("npu", b1_s8=1.0, b1_s64=8.0)
    sides = [merged([one], targets={"npu": {"machine": "x86_64"}}) for one in (old, new)]
    (change,) = compare_merged(sides[0], sides[1], names=("old", "new")).changes
    assert change.facts == (
        "1 of 2 shapes slower, 2 times at worst (batch=1, sequence=64: 4 ms became 8 ms)",
    )
    unnamed = msgspec.structs.replace(new, scenario={"shapes": ("given",)})
    sides[1] = merged([unnamed], targets={"npu": {"machine": "x86_64"}})
    assert not compare_merged(sides[0], sides[1], names=("old", "new")).changes
