"""Two builds in turns: who begins is by chance, a slower one fails, and noise gets minutes, no verdict."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.annex.speed import compare_builds
from harness.annex.speed.in_turns import Interleaved
from harness.annex.speed.looks import first_look
from harness.cli.main import main
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from tests import kit

MATRIX = """schema = 1
models = { suites = ["zoo"] }
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""
GPT, VIT = "zoo/gpt-small-op17", "zoo/vit-small-op17"


class Builds(Interleaved):
    """Builds of known times, in place of processes."""

    ms = {"base": 1.0, "new": 1.0}  # noqa: RUF012 - tests change it
    noise: Iterator[float] = itertools.repeat(1.0)
    ran: list[str] = []  # noqa: RUF012 - likewise
    failing = ""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.ran.clear()

    def once(self, side: str, cell: Cell) -> Record:
        self.ran.append(side)
        if cell.model == self.failing and side == "new":
            return kit.record(cell=cell.id, verdict=Verdict.MISMATCH, reason="3 of 12 elements differ")
        ms = self.ms[side] * next(self.noise)
        return kit.record(cell=cell.id, latency=kit.latency(ms, processor_ms=None))


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> type[Builds]:
    monkeypatch.setattr(compare_builds, "Interleaved", Builds)
    monkeypatch.setattr(Builds, "ms", {"base": 1.0, "new": 1.0})
    monkeypatch.setattr(Builds, "noise", itertools.cycle([1.0, 1.01, 0.99, 1.005, 0.995]))
    return Builds


def compare(folder: Path, *arguments: str, model: str = GPT) -> int:
    (folder / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    both = ["--base", "onnxruntime==1.31.1", "--new", "onnxruntime==1.32.0"]
    return main(["compare-speed", str(folder / "matrix.toml"), *both, "--model", model, *arguments])


def test_equal_builds_may_pass(
    tmp_path: Path, builds: type[Builds], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(tmp_path, "--seed", "7", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (cell,) = found["cells"]
    assert (cell["verdict"], cell["pairs"], found["seed"]) == ("not_slower", first_look(1), 7)
    assert len(builds.ran) == 2 * (1 + first_look(1))
    orders = [tuple(builds.ran[at : at + 2]) for at in range(2, len(builds.ran), 2)]
    assert set(orders) == {("base", "new"), ("new", "base")}
    compare(tmp_path, "--seed", "7")
    assert orders == [tuple(builds.ran[at : at + 2]) for at in range(2, len(builds.ran), 2)]


def test_a_slower_build_fails(
    tmp_path: Path, builds: type[Builds], capsys: pytest.CaptureFixture[str]
) -> None:
    builds.ms["new"] = 1.1
    out = tmp_path / "speed.json"
    assert compare(tmp_path, "--out", str(out)) == 1
    assert f"slower  {GPT}[cpu]" in capsys.readouterr().out
    assert json.loads(out.read_bytes())["cells"][0]["verdict"] == "slower"


def test_a_noisy_machine_gets_minutes_and_no_verdict(
    tmp_path: Path,
    builds: type[Builds],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(compare_builds, "MOST_PAIRS", 2 * first_look(1))
    monkeypatch.setattr(builds, "noise", itertools.cycle([1.0, 2.0, 0.5, 1.5, 0.7]))
    assert compare(tmp_path, "--seed", "7") == 3  # another order may give a verdict
    shown = capsys.readouterr().out
    assert "too noisy" in shown
    assert "minutes more" in shown


def test_a_wrong_answer_has_no_time(
    tmp_path: Path, builds: type[Builds], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(builds, "failing", "vit-small-op17")
    assert compare(tmp_path, model="zoo/[gv][pi]t-small-op17") == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 not slower, 1 not measured" in shown
    assert "with the new build: mismatch: 3 of 12 elements differ" in shown


def test_an_interrupt_keeps_what_is_known(
    tmp_path: Path, builds: type[Builds], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> Iterator[float]:
        yield from [1.0] * 5
        raise KeyboardInterrupt

    monkeypatch.setattr(builds, "noise", interrupt())
    assert compare(tmp_path) == 130
    assert "INCOMPLETE" in capsys.readouterr().out


@pytest.mark.long
def test_both_builds_are_the_runtime_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Real processes: each of them fresh, so that the first session of a process is timed."""
    import sys

    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    both = ["--base", sys.executable, "--new", sys.executable, "--for", "3m"]
    code = main(["compare-speed", str(tmp_path / "matrix.toml"), *both, "--model", GPT, "--json"])
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert cell["pairs"] >= first_look(1)
    assert (code == 1) == (cell["verdict"] == "slower")
    assert {"wall", "processor"} == set(cell["changes"])
