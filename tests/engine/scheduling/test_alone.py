"""Cells that run alone, and what must not run meanwhile."""

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from harness.core.records.verdict import Verdict
from harness.corpus.caches.cache import cache_root
from harness.engine.tasks.events import Warned
from harness.engine.workers import spares
from harness.engine.workers.device import Slots
from tests.kit import records_of

if TYPE_CHECKING:
    from tests.engine.scheduling.conftest import Bench

PASS, CRASH, ERROR = Verdict.PASS, Verdict.CRASH, Verdict.ERROR

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake needs POSIX")


@pytest.mark.usefixtures("goldens_unknown")
def test_nothing_else_is_at_work_beside_a_cell_that_runs_alone(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spares, "SPARE_AFTER_S", 0.0)
    bench.models(*(f"{number}_m" for number in range(6)))
    alone = {"alone": True, "workers": 3, "device_lock": "rig", "renew_after": {"sessions": 4}}
    found = bench.run(bench.target("x", **alone), bench.target("y", alone=True), bench.target("z"))
    assert bench.verdicts(found) == {PASS: 18}
    assert not any(isinstance(event, Warned) for event in found)
    assert bench.together
    assert all(len(names) == 1 for names in bench.together), bench.together
    of_targets = [target for target, _ in bench.handed if target not in {"cpu", "references"}]
    assert of_targets == ["z"] * 6 + ["x"] * 6 + ["y"] * 6
    assert Counter(target for target, _ in bench.handed)["cpu"] == 6
    # Neither a spare nor a second worker starts.
    assert sum(worker.is_spare for worker in bench.launched if worker.queue and worker.queue.alone) == 0
    assert Counter(worker.queue.name for worker in bench.launched if worker.queue)["x"] == 2


@pytest.mark.usefixtures("goldens_unknown")
def test_a_matrix_may_be_of_nothing_but_cells_that_run_alone(bench: "Bench") -> None:
    bench.models("0_m", "1_error_in_run", "2_segv_in_run", "3_m")
    axes = {"option.device_id": [0, 1]}
    found = bench.run(bench.target("x", alone=True, axes=axes, retries=1, unchecked_options=True))
    assert Counter(record.verdict for record in records_of(found)) == {
        PASS: 4,
        ERROR: 2,
        CRASH: 2,
    }
    assert all(len(names) == 1 for names in bench.together), bench.together


def test_a_cell_that_runs_alone_takes_its_place_on_the_device(bench: "Bench") -> None:
    slots = Slots(cache_root() / "locks")
    held = slots.take("rig 4", 1)
    assert held is not None
    bench.models("0_m")
    with bench.engine(bench.target("x", alone=True, device_lock="rig 4")) as engine:
        stream = engine.events()
        warned = next(event for event in stream if isinstance(event, Warned))
        assert "another run uses its device" in warned.message
        held.release()
        assert bench.verdicts(list(stream)) == {PASS: 1}


@pytest.mark.usefixtures("goldens_unknown")
def test_a_cell_whose_latency_is_measured_runs_alone_and_others_do_not(bench: "Bench") -> None:
    bench.models(*(f"{number}_m" for number in range(6)))
    latency = [{"model": "[12]_*", "target": "x", "warm_up": 1, "repeats": 3}]
    found = bench.run(bench.target("x", workers=2), bench.target("z"), latency=latency)
    assert bench.verdicts(found) == {PASS: 12}
    measured = {name for name, record in bench.records(found).items() if record.latency}
    assert measured == {"x 1_m", "x 2_m"}
    assert all(len(names) == 1 for names in bench.together), bench.together
    assert len([names for names in bench.together if names == {"x"}]) == 2
    of_targets = [handed for handed in bench.handed if handed[0] != "cpu"]
    assert of_targets[-2:] == [("x", "1_m"), ("x", "2_m")]
