"""A run folder whose files are pipes, devices or endless: told in one line, and never waited for."""

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import harness
from harness.annex.fuzz.fuzz_state import STATE_FILE, planned_cells, read_state
from harness.annex.store.scan import content, scan
from harness.annex.triage.run_triage import read_faults
from harness.cli import main
from harness.core.files.reading import MOST_LINE
from harness.core.records.fault import decode_faults
from harness.core.text.errors import UsageError
from harness.engine.processes.prestarted import target_tables
from harness.plan.matrix import read_toml
from harness.pytest_plugin.matrices import is_matrix
from harness.report.runs.read import read_run
from harness.report.runs.side_by_side import is_over_time
from tests.kit import record, write_run

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has neither pipes nor devices in folders")


@pytest.fixture
def alarm() -> Iterator[None]:
    """Make a wait for a pipe an error; as long as nothing waits, it has no effect."""
    if os.name != "posix":
        yield
        return

    def ring(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def replace(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


@posix
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("kind", ["pipe", "endless"])
@pytest.mark.parametrize("file", ["run.json", "records.jsonl", "plan.txt"])
def test_every_command_refuses_them_in_a_line(
    file: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = write_run(tmp_path / "good", [record("a")]), write_run(tmp_path / "bad", [record("a")])
    replace(bad / file, kind)
    (tmp_path / "tolerance.toml").write_text("schema = 1\n[[tolerance]]\nrtol = 1e-3\natol = 1e-3\n", "utf-8")
    for command in (
        ["report", str(bad), "--out", str(tmp_path / "out")],
        ["diff", str(bad), str(good)],
        ["gate", str(good), str(bad)],
        ["triage", str(bad), "--budget", "1s"],
        ["judge", str(bad), "--policy", str(tmp_path / "tolerance.toml"), "--out", str(tmp_path / "judged")],
    ):
        assert main(command) == 2, command
        told = capsys.readouterr().err
        assert f"{file}: the file cannot be read: not a file" in told
        assert len(told.splitlines()) <= 2
    (run,) = scan(bad)
    if file != "plan.txt":
        with pytest.raises(OSError, match="not a file"):
            content(run)
    with pytest.raises(UsageError):
        planned_cells(bad)
    assert not is_over_time([tmp_path])


@posix
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_other_files_are_opened_the_same_way(kind: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record("a")])
    replace(run / "triage" / "faults.jsonl", kind)
    assert read_run(run).damaged_faults[0].what == "the file cannot be read: not a file"
    with pytest.raises(OSError, match="not a file"):
        read_faults(run / "triage" / "faults.jsonl")
    replace(tmp_path / STATE_FILE, kind)
    with pytest.raises(UsageError, match="not a file"):
        read_state(tmp_path)
    replace(tmp_path / "m.toml", kind)
    with pytest.raises(UsageError, match="not a file"):
        read_toml(tmp_path / "m.toml")
    assert target_tables(tmp_path / "m.toml") == []
    assert not is_matrix(tmp_path / "m.toml")


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record("a")])
    with (run / "records.jsonl").open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.truncate(file.tell() + MOST_LINE + 1)  # a hole of zeros, which takes no disk
    with pytest.raises(UsageError, match="line 2: longer than 16 MiB"):
        read_run(run)


def test_a_file_of_many_lines_without_records_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("harness.report.runs.read._MOST_DAMAGED", 3)
    run = write_run(tmp_path / "run", [record("a")])
    with (run / "records.jsonl").open("ab") as file:
        file.write(b"x\n" * 100)
    with pytest.raises(UsageError, match="3 more lines are damaged"):
        read_run(run)


def test_blank_lines_cost_no_memory(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record("a")])
    with (run / "records.jsonl").open("ab") as file:
        file.write(b"\n" * 100_000)
    assert len(read_run(run).records) == 1
    assert list(decode_faults(b"\n" * 100_000)) == []


def test_a_plan_of_too_many_lines_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record("a"), record("b")])
    plan = b"a\nb\n"
    (run / "plan.txt").write_bytes(plan)
    info = msgspec.json.decode((run / "run.json").read_bytes())
    (run / "run.json").write_bytes(msgspec.json.encode(info | {"plan": hashlib.sha256(plan).hexdigest()}))
    assert read_run(run).planned == ("a", "b")
    monkeypatch.setattr("harness.report.runs.read._MOST_PLANNED", 1)
    with pytest.raises(UsageError, match="more than 1 lines"):
        read_run(run)


OWN = {"conform.py", "profiles.py", "record.py", "site.py"}
"""Modules that read, besides, what the command itself has just written, or what was installed with it."""


@pytest.mark.parametrize("folder", ["report", "store", "plan", "cli", "pytest_plugin", "conformance/verify"])
def test_nothing_is_read_in_another_way(folder: str) -> None:
    home = Path(harness.__file__).parent / folder
    other = {
        path.name
        for path in home.rglob("*.py")
        if any(way in path.read_text("utf-8") for way in (".read_bytes()", ".read_text(", '.open("rb")'))
    }
    assert other <= OWN | {"verify.py"}, (
        "a file that somebody else may have made goes through core/files/reading.py"
    )
