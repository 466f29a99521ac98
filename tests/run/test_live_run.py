"""A run as an iterator of records: however it ends, its processes end, and its folder can be read."""

import asyncio
import itertools
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.engine.engine import Engine
from harness.plan.matrix import matrix_from
from tests.kit import FAKE_ENV, write_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake onnxruntime needs POSIX")
Planned = Callable[..., harness.RunnablePlan]


@pytest.fixture
def planned(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Planned:
    """``planned("a", "b")``: the plan of models of the fake onnxruntime; ``marker`` gets a process id."""
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))

    def make(*models: str) -> harness.RunnablePlan:
        for name in models:
            write_model(tmp_path / "models" / f"{name}.onnx")
        env = {**FAKE_ENV, "FAKE_MARKER": str(tmp_path / "marker")}
        target = {"name": "ep", "provider": "CUDAExecutionProvider", "env": env}
        table: dict[str, Any] = {"schema": 1, "models": {"folders": ["models"]}, "target": [target]}
        return harness.make_plan(matrix_from(table, tmp_path / "m.toml"))

    return make


def process_of(marker: Path) -> int:
    """The process that waits in a model."""
    deadline = time.monotonic() + 60
    while not (marker.exists() and marker.read_text("utf-8")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(marker.read_text("utf-8"))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_each_record_is_in_the_folder_before_it_comes(planned: Planned, tmp_path: Path) -> None:
    live = harness.run_plan(planned("a", "b"), out=str(tmp_path / "run"))
    for count, record in enumerate(live, 1):
        written = (tmp_path / "run" / "records.jsonl").read_text("utf-8")
        assert f'"{record.cell}"' in written
        assert written.count("\n") >= count
    assert live.folder == tmp_path / "run"
    assert live.tally.complete
    assert live.tally.exit_code() == 0
    assert list(live) == []
    live.close()  # harmless after the end
    assert {record.verdict for record in harness.read_run(live.folder).records} == {harness.Verdict.PASS}


def dropped(live: harness.LiveRun) -> None:
    """Nothing: the caller has no name for it either."""


def closed(live: harness.LiveRun) -> None:
    with live:
        pass


def interrupted(live: harness.LiveRun) -> None:
    def ctrl_c(_: Engine) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "_gather", ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            next(live)


@pytest.mark.parametrize("ends", [dropped, closed, interrupted])
def test_a_run_that_is_left_ends_its_processes_and_can_be_resumed(
    ends: Callable[[harness.LiveRun], None], planned: Planned, tmp_path: Path
) -> None:
    plan = planned("1_before", "2_waitonce_in_run")
    live = harness.run_plan(plan, out=tmp_path / "run")
    assert next(live).model == "1_before.onnx"
    process = process_of(tmp_path / "marker")
    ends(live)
    if ends is not dropped:
        assert list(live) == []
    del live
    assert not is_alive(process)
    begun = harness.read_run(tmp_path / "run")
    assert [record.model for record in begun.records] == ["1_before.onnx"]
    assert not begun.info.complete
    if ends is interrupted:
        with harness.run_plan(plan, resume=begun) as rest:
            assert [record.model for record in rest] == ["2_waitonce_in_run.onnx"]
        assert harness.read_run(tmp_path / "run").info.complete


def test_a_loop_that_is_left_ends_its_run(planned: Planned, tmp_path: Path) -> None:
    plan = planned("1_before", "2_waitonce_in_run")
    for record in harness.run_plan(plan, out=tmp_path / "run"):
        assert record.model == "1_before.onnx"
        process = process_of(tmp_path / "marker")
        break
    assert not is_alive(process)
    assert not (tmp_path / "run" / "run.lock").exists()


def test_a_run_that_nobody_looks_at_leaves_a_folder_that_can_be_read(
    planned: Planned, tmp_path: Path
) -> None:
    plan = planned("a")
    harness.run_plan(plan, out=tmp_path / "run")
    assert not (tmp_path / "run" / "run.lock").exists()
    with harness.run_plan(plan, resume=harness.read_run(tmp_path / "run")) as live:
        assert len(list(live)) == 1


def test_a_run_that_cannot_go_on_leaves_its_folder_to_others(planned: Planned, tmp_path: Path) -> None:
    plan = planned("1_before", "2_after")
    with harness.run_plan(plan, out=tmp_path / "run") as live:
        next(live)
    model = tmp_path / "models" / "1_before.onnx"
    before = model.read_bytes()
    model.write_bytes(before + b"\x72\x00")  # an empty field: another file, the same model
    with pytest.raises(harness.UsageError, match="valid: read_run of that path"):
        harness.run_plan(plan, resume=tmp_path / "run")  # type: ignore[arg-type]
    with pytest.raises(harness.UsageError, match="models or their data have changed"):
        harness.run_plan(plan, resume=harness.read_run(tmp_path / "run"))
    assert not (tmp_path / "run" / "run.lock").exists()


def test_the_end_of_the_process_ends_its_run(planned: Planned, tmp_path: Path) -> None:
    plan = planned("1_before", "2_waitonce_in_run")
    matrix = tmp_path / "m.toml"
    env = dict(plan.matrix.targets[0].env)
    pairs = ", ".join(f"{name} = '{value}'" for name, value in env.items())
    matrix.write_text(
        f'schema = 1\nmodels.folders = ["models"]\n'
        f'[[target]]\nname = "ep"\nprovider = "CUDAExecutionProvider"\nenv = {{ {pairs} }}\n',
        encoding="utf-8",
    )
    script = """
        import sys, time, harness
        from pathlib import Path
        live = harness.run_plan(harness.make_plan(harness.read_matrix(sys.argv[1])), out=sys.argv[2])
        print(next(live).model)
        while not Path(sys.argv[3]).exists():
            time.sleep(0.01)
    """
    arguments = [str(matrix), str(tmp_path / "run"), str(tmp_path / "marker")]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1_before.onnx\n", "")
    assert not is_alive(process_of(tmp_path / "marker"))
    assert not (tmp_path / "run" / "run.lock").exists()
    assert [record.model for record in harness.read_run(tmp_path / "run").records] == ["1_before.onnx"]


def test_a_running_event_loop_does_not_matter(planned: Planned, tmp_path: Path) -> None:
    """As in Jupyter, whose cells run inside of one."""
    plan = planned("a")

    async def cell_of_a_notebook() -> list[harness.Record]:
        return list(harness.run_plan(plan, out=tmp_path / "run"))

    (record,) = asyncio.run(cell_of_a_notebook())
    assert record.verdict is harness.Verdict.PASS


def test_a_folder_with_a_run_is_refused_before_anything_starts(
    planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned("a")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    monkeypatch.setattr("harness.run.live_run.Engine", lambda *_, **__: pytest.fail("it started"))
    with pytest.raises(harness.HarnessError, match="there is a run in this folder already"):
        harness.run_plan(plan, out=tmp_path / "run")


@pytest.mark.parametrize("one", ["models/a*", ["models/a*"]])
def test_a_part_of_a_matrix_is_planned(one: str | list[str], planned: Planned) -> None:
    whole = planned("a", "b")
    assert not whole.named
    part = harness.make_plan(whole.matrix, models=one, targets="ep")
    assert [cell.model for cell in part.cells] == ["a.onnx"]
    assert part.named  # the run is about this target: without a judged cell it proves nothing
    shares = [harness.make_plan(whole.matrix, shard=f"{index}/2").cells for index in (1, 2)]
    assert {cell.id for cell in itertools.chain(*shares)} == {cell.id for cell in whole.cells}
    wrong: list[dict[str, Any]] = [{"models": "c*"}, {"shard": "3/2"}, {"baselines": "nowhere.toml"}]
    for arguments in wrong:
        with pytest.raises(harness.UsageError):
            harness.make_plan(whole.matrix, **arguments)


def test_a_run_may_be_collected_in_the_thread_of_its_engine(planned: Planned, tmp_path: Path) -> None:
    live = harness.run_plan(planned("a"), out=tmp_path / "run")
    engine = live._engine  # noqa: SLF001 - where the collector runs is no user's choice
    engine._post(live.close)  # noqa: SLF001
    engine._thread.join(60)  # noqa: SLF001
    assert list(engine.events()) is not None  # what broke the engine would be raised
    assert not (tmp_path / "run" / "run.lock").exists()
