"""What ran before a finding in its process: remembered, written once, and used by triage."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.annex.fuzz.coverage import Coverage
from harness.annex.fuzz.fuzz_state import FuzzState, write_state
from harness.annex.made.fuzz_suite import fuzz_name
from harness.annex.triage import histories
from harness.annex.triage.histories import (
    HISTORIES,
    Histories,
    ProcessHistory,
    earlier_of_all,
    write_histories,
)
from harness.cli import main
from harness.core.records.cell import Cell
from harness.core.records.record import ProcessState, Record
from harness.core.records.verdict import Verdict
from tests.annex.triage.planted_faults import PLANTED
from tests.kit import bare_record

SEED = 3


def record_of(number: int, session: int, pid: int = 7, verdict: Verdict = Verdict.PASS) -> Record:
    cell = Cell(suite=f"fuzz-{SEED}", model=fuzz_name(SEED, number), target="gpu")
    return bare_record(
        cell.model,
        verdict,
        cell=cell.id,
        suite=cell.suite,
        target="gpu",
        process=ProcessState(pid=pid, session=session),
    )


def taken(held: Histories) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    return [(one.pid, one.cells) for one in held.take()]


def test_only_processes_with_a_finding_are_told_and_no_cell_twice() -> None:
    held = Histories()
    held.add(record_of(10, 1), is_finding=False)
    held.add(record_of(11, 1, pid=8), is_finding=False)
    assert taken(held) == []
    held.add(record_of(12, 2), is_finding=True)
    assert taken(held) == [(7, ((1, 10), (2, 12)))]
    held.add(record_of(13, 3), is_finding=False)
    assert taken(held) == []
    held.add(record_of(14, 4), is_finding=True)
    assert taken(held) == [(7, ((3, 13), (4, 14)))]


def test_processes_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "PROCESSES", 2)
    held = Histories()
    held.add(record_of(1, 1, pid=1), is_finding=False)
    held.add(record_of(2, 1, pid=2), is_finding=True)
    held.add(record_of(3, 2, pid=1), is_finding=False)
    held.add(record_of(4, 1, pid=3), is_finding=False)  # a finding is not forgotten before it is told
    assert taken(held) == [(2, ((1, 2),))]
    held.add(record_of(5, 1, pid=4), is_finding=False)
    held.add(record_of(6, 1, pid=5), is_finding=False)
    held.add(record_of(7, 3, pid=1), is_finding=True)
    assert taken(held) == [(1, ((3, 7),))]


def test_the_cells_before_one_are_those_of_its_process(tmp_path: Path) -> None:
    write_state(tmp_path, FuzzState(seed=SEED))
    cells = ((1, 10), (2, 11), (3, 12), (5, 14))
    lines = (
        ProcessHistory(target="gpu", pid=7, cells=cells),
        ProcessHistory(target="gpu", pid=8, cells=((2, 20),)),
        ProcessHistory(target="npu", pid=7, cells=((2, 21),)),
    )
    write_histories(tmp_path, iter(lines))
    with (tmp_path / HISTORIES).open("ab") as file:
        file.write(b'{"target": "gpu", "pid": 7, "ce')
    kept = (record_of(11, 2), record_of(13, 4, verdict=Verdict.MISMATCH))
    found = earlier_of_all(tmp_path, kept, kept[1])
    assert [int(one.model[:6]) for one in found] == [10, 11, 12]
    assert [one.verdict for one in found] == [Verdict.NOT_RUN, Verdict.PASS, Verdict.NOT_RUN]


@pytest.mark.long
def test_a_fault_that_needs_a_model_of_which_no_record_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that keeps something of every Sigmoid, and then computes Tanh wrongly."""
    planted: dict[str, Any] = {"kind": "bend", "op_type": "Tanh", "factor": 1.5}
    fault = json.dumps({**planted, "after": "Sigmoid", "long_after": True})
    (tmp_path / "m.toml").write_text(
        f"""schema = 1
        models = {{ suites = ["corners"] }}
        tolerance = [{{ noise = {{}} }}]
        [[target]]
        name = "planted"
        provider = "CPUExecutionProvider"
        env = {{ PYTHONPATH = '{PLANTED}', PLANTED_FAULT = '{fault}' }}
        """,
        encoding="utf-8",
    )
    monkeypatch.setattr(Coverage, "add", lambda *_: False)
    words = ["fuzz", str(tmp_path / "m.toml"), "--models", "6", "--ops", "Sigmoid,Tanh", "--no-report"]
    assert main([*words, "--triage", "20s", "--out", str(tmp_path / "run")]) == 1
    assert "Sigmoid" not in (tmp_path / "run" / "records.jsonl").read_text(encoding="utf-8")
    faults = [json.loads(line) for line in (tmp_path / "run" / "triage" / "faults.jsonl").open()]
    needing = [one for one in faults if "-Tanh-" in one["representative"] and "preceding" in one]
    assert needing, capsys.readouterr().out
    for found in needing:
        assert found["bundle"]
        assert [before.partition("-Sigmoid-")[1] for before in found["preceding"]] == ["-Sigmoid-"]
