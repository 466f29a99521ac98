import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from harness.cli import main
from harness.cli.progress import Progress
from harness.core.records.record import Record
from harness.run.run_folder import RunFolder
from tests.kit import Capture, read_records, read_rows

Project = Callable[..., Path]


def records(folder: Path) -> list[dict[str, Any]]:
    return read_rows(folder)


def test_a_run_leaves_one_record_per_cell_and_a_report(
    project: Project, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "run"
    assert main(["run", str(project()), "--out", str(out)]) == 0
    assert sorted(record["cell"] for record in records(out)) == [
        "models/abs.onnx[cpu]",
        "models/neg.onnx[cpu]",
        "models/relu.onnx[cpu]",
    ]
    assert {record["verdict"] for record in records(out)} == {"pass"}
    info = json.loads((out / "run.json").read_text("utf-8"))
    assert (info["cells"], info["complete"]) == (3, True)
    assert info["targets"]["cpu"]["onnxruntime"]
    assert (out / "report" / "index.html").is_file()
    printed = capsys.readouterr().out
    assert "every verdict is as the matrix expects" in printed
    assert str(out / "report" / "index.html") in printed


def test_every_record_reads_back(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "run"
    main(["run", str(project()), "--out", str(out), "--no-report"])
    for record in read_records(out):
        assert record.placement is not None
        assert record.placement.ep_nodes == 1
        assert record.placement.source == "assignment"
    assert not (out / "report").exists()


def test_the_table_fits_80_columns(
    project: Project, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["run", str(project()), "--out", str(tmp_path / "run"), "--no-report"])
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("target", "cpu"))]
    assert len(table) == 2
    assert all(len(line) <= 80 for line in table)
    assert "unexp" in table[0]


def test_globs_narrow_the_run(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["run", str(project()), "--out", str(out), "--model", "*/a*", "--no-report"]) == 0
    assert [record["model"] for record in records(out)] == ["abs.onnx"]


def test_an_unexpected_verdict_is_exit_code_1(project: Project, tmp_path: Path, capsys: Capture) -> None:
    matrix = project('[[expect]]\nmodel = "models/abs.onnx"\nverdict = "crash"\nreason = "known bug"\n')
    assert main(["run", str(matrix), "--out", str(tmp_path / "run"), "--no-report"]) == 1
    shown = capsys.readouterr().out
    assert "expected crash (known bug); got: passed" in shown
    assert f" ep-harness run {matrix} --target cpu --model models/abs.onnx\n" in shown
    unexpected = [record for record in records(tmp_path / "run") if not record["expected"]]
    assert [record["cell"] for record in unexpected] == ["models/abs.onnx[cpu]"]


UNAVAILABLE = '[[target]]\nname = "npu"\nprovider = "XExecutionProvider"\nplugin = "no_such_plugin"\n'


def test_an_unavailable_target_costs_nothing_but_its_cells(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["run", str(project(UNAVAILABLE)), "--out", str(out)]) == 3  # no other provider was tried
    by_target = {(record["target"], record["verdict"]) for record in records(out)}
    assert by_target == {("cpu", "pass"), ("npu", "unavailable")}
    npu = [record for record in records(out) if record["target"] == "npu"]
    assert {record["cause"] for record in npu} == {"not_installed"}
    assert all("no_such_plugin" in record["reason"] for record in npu)


def test_cells_that_were_not_tried_are_no_success(project: Project, tmp_path: Path, capsys: Capture) -> None:
    matrix = str(project(UNAVAILABLE))
    assert main(["run", matrix, "--out", str(tmp_path / "both"), "--no-report"]) == 3
    assert "NO EVIDENCE  no cell of npu was judged" in capsys.readouterr().out
    assert main(["run", matrix, "--target", "npu", "--out", str(tmp_path / "one"), "--no-report"]) == 3
    shown = capsys.readouterr().out
    assert "NO EVIDENCE  no cell of npu was judged" in shown
    assert "unavailable  npu: not_installed: plugin package 'no_such_plugin' is not installed" in shown


def test_a_required_target_that_is_unavailable_is_exit_code_3(
    project: Project, tmp_path: Path, capsys: Capture
) -> None:
    matrix = project(UNAVAILABLE + "required = true\n")
    assert main(["run", str(matrix), "--out", str(tmp_path / "run"), "--no-report"]) == 3
    assert "required     npu is unavailable" in capsys.readouterr().out


def test_an_equal_reason_of_all_cells_is_printed_once(
    project: Project, tmp_path: Path, capsys: Capture
) -> None:
    matrix = project('[[expect]]\nmodel = "*"\nverdict = "crash"\nreason = "known bug"\n')
    assert main(["run", str(matrix), "--out", str(tmp_path / "run"), "--no-report"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("expected crash (known bug)") == 1
    assert "unexpected   3 cells" in shown


def test_a_corrupt_model_costs_its_own_cells_only(project: Project, tmp_path: Path) -> None:
    matrix = project()
    (tmp_path / "models" / "broken.onnx").write_bytes(b"\xff" * 40)
    assert main(["run", str(matrix), "--out", str(tmp_path / "run"), "--no-report"]) == 0
    verdicts = {record["model"]: record["verdict"] for record in records(tmp_path / "run")}
    assert verdicts.pop("broken.onnx") == "invalid_model"
    assert set(verdicts.values()) == {"pass"}


def test_a_folder_with_a_run_is_not_overwritten(project: Project, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["run", str(project()), "--out", str(tmp_path / "run"), "--no-report"]
    assert main(arguments) == 0
    before = (tmp_path / "run" / "records.jsonl").read_bytes()
    assert main(arguments) == 2
    assert "there is a run in this folder already" in capsys.readouterr().err
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == before


def test_a_full_disk_keeps_what_was_written(
    project: Project, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file = Path.open

    def open_limited(path: Path, mode: str = "r", **more: Any) -> IO[Any]:
        if path.name == "records.jsonl" and mode == "ab":
            return io.BufferedWriter(_FullDisk(path, mode))
        return open_file(path, mode, **more)

    monkeypatch.setattr(Path, "open", open_limited)
    assert main(["run", str(project()), "--out", str(tmp_path / "run")]) == 2
    shown = capsys.readouterr().err
    assert "cannot be written: No space left on device" in shown
    assert "Traceback" not in shown
    assert len(records(tmp_path / "run")) == 2
    assert json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["complete"] is False


class _FullDisk(io.FileIO):
    """A file on a disk with room for two lines."""

    lines = 2

    def write(self, data: Any, /) -> int:
        fits = b"".join(bytes(data).splitlines(keepends=True)[: self.lines])
        if not fits:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.lines -= fits.count(b"\n")
        return super().write(fits)


def test_without_a_terminal_there_are_plain_lines(project: Project, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "run", str(project()), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "\x1b" not in done.stdout
    assert "ready        cpu" in done.stdout
    assert done.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="sends signals as POSIX does")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_leaves_a_valid_run_that_is_incomplete(
    project: Project, endless_model: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "run"
    matrix = project()
    shutil.copy(endless_model, tmp_path / "models")
    command = [sys.executable, "-m", "harness", "run", str(matrix), "--out", str(out)]
    before = signal.signal(getattr(signal, name), signal.SIG_DFL)  # nohup ignores SIGHUP, for all below it
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    finally:
        signal.signal(getattr(signal, name), before)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (out / "records.jsonl").exists():
        time.sleep(0.01)
    while time.monotonic() < deadline and not (out / "records.jsonl").stat().st_size:
        time.sleep(0.01)
    children = _descendants(process.pid)
    process.send_signal(getattr(signal, name))
    shown = process.communicate(timeout=30)[0]
    assert process.returncode == 130
    assert "Traceback" not in shown
    assert f"INCOMPLETE   {len(records(out))} of " in shown
    assert not (out / "run.lock").exists()
    assert f"resume   ep-harness run {matrix} --resume {out}" in shown
    info = json.loads((out / "run.json").read_text("utf-8"))
    assert info["complete"] is False
    assert 0 < len(records(out)) < info["cells"]
    assert children
    assert not [pid for pid in children if _alive(pid)]


def test_a_signal_during_the_imports_is_no_traceback() -> None:
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'msgspec': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder)\n"
        "from harness.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_signal_while_records_are_written_leaves_none_uncounted(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    add = RunFolder.add

    interrupted: list[bool] = []

    def interrupted_at_once(folder: RunFolder, *batch: Record) -> tuple[Record, ...]:
        written = add(folder, *batch)
        if batch and not interrupted:
            interrupted.append(True)
            signal.raise_signal(signal.SIGINT)
        return written

    monkeypatch.setattr(RunFolder, "add", interrupted_at_once)
    main(["run", str(project()), "--out", str(tmp_path / "run"), "--no-report"])
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("cpu "))
    passed = int(row.split()[2])
    assert passed == len(records(tmp_path / "run")) > 0


def test_ctrl_c_as_the_last_cell_ends_stops_nothing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    finished = Progress.finished
    interrupted: list[bool] = []

    def interrupted_at_three(shown: Progress, record: Record) -> None:
        finished(shown, record)
        if len(records(tmp_path / "run")) == 3 and not interrupted:  # three may be written at once
            interrupted.append(True)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Progress, "finished", interrupted_at_three)
    assert main(["run", str(project()), "--out", str(tmp_path / "run")]) == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["complete"] is True
    shown = capsys.readouterr().out
    assert "every verdict is as the matrix expects" in shown
    assert "resume" not in shown


@pytest.mark.skipif(os.name != "posix", reason="kills processes as POSIX does")
def test_a_killed_run_is_resumed_to_exactly_the_whole(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "run"
    matrix = project(target='axes = { graph_optimization = ["disabled", "basic", "all"] }')
    text = matrix.read_text("utf-8").replace('folders = ["models"]', 'suites = ["onnx-pytorch-converted"]')
    matrix.write_text(text, "utf-8")
    command = [sys.executable, "-m", "harness", "run", str(matrix), "--no-report"]
    announced: dict[str, str] = {}
    for wanted in (1, 50, 110):
        where = ["--resume", str(out)] if out.exists() else ["--out", str(out)]
        process = subprocess.Popen([*command, *where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and len(_lines(out)) < wanted:
            time.sleep(0.005)
        process.kill()
        process.wait()
        written = {json.loads(line)["cell"]: line for line in _lines(out)}
        assert announced.items() <= written.items()
        announced = written
    with (out / "records.jsonl").open("ab") as file:
        file.write(b'{"schema": 1, "cell": "onnx-py')
    done = subprocess.run([*command, "--resume", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"resuming     {len(announced)} of " in done.stdout
    assert "a torn last line is dropped" in done.stdout
    rows = records(out)
    info = json.loads((out / "run.json").read_text("utf-8"))
    assert len(rows) == len({row["cell"] for row in rows}) == info["cells"]
    assert info["complete"] is True
    assert announced.items() <= {json.loads(line)["cell"]: line for line in _lines(out)}.items()


def _lines(out: Path) -> list[str]:
    """The whole lines that are there."""
    try:
        text = (out / "records.jsonl").read_text("utf-8")
    except OSError:
        return []
    return text[: text.rfind("\n") + 1].splitlines()


def test_a_complete_run_has_nothing_to_resume(project: Project, tmp_path: Path, capsys: Capture) -> None:
    matrix = str(project())
    out = tmp_path / "run"
    assert main(["run", matrix, "--out", str(out), "--no-report"]) == 0
    before = (out / "records.jsonl").read_bytes()
    assert main(["run", matrix, "--resume", str(out), "--no-report"]) == 0
    assert "resuming     3 of 3 cells have a record" in capsys.readouterr().out
    assert (out / "records.jsonl").read_bytes() == before


def test_resuming_over_another_model_is_refused(project: Project, tmp_path: Path, capsys: Capture) -> None:
    matrix = str(project())
    out = tmp_path / "run"
    assert main(["run", matrix, "--out", str(out), "--no-report", "--model", "models/[an]*"]) == 0
    models = tmp_path / "models"
    (models / "neg.onnx").write_bytes((models / "relu.onnx").read_bytes())
    capsys.readouterr()
    assert main(["run", matrix, "--resume", str(out), "--model", "models/[an]*"]) == 2
    shown = capsys.readouterr().err
    assert "have changed since this run began: models/neg.onnx\n" in shown
    assert len(shown.splitlines()) == 2


def test_shards_make_the_whole(project: Project, tmp_path: Path, capsys: Capture) -> None:
    matrix = str(project())
    assert main(["run", matrix, "--out", str(tmp_path / "whole"), "--no-report"]) == 0
    balanced = ["--durations", str(tmp_path / "whole"), "--no-report"]
    for index in (1, 2):
        out = str(tmp_path / f"shard{index}")
        assert main(["run", matrix, "--out", out, "--shard", f"{index}/2", *balanced]) == 0
    cells = [record["cell"] for index in (1, 2) for record in records(tmp_path / f"shard{index}")]
    assert sorted(cells) == sorted(record["cell"] for record in records(tmp_path / "whole"))
    shards = [str(tmp_path / f"shard{index}") for index in (1, 2)]
    assert main(["report", *shards, "--out", str(tmp_path / "merged")]) == 0
    assert (tmp_path / "merged" / "index.html").is_file()
    assert main(["run", matrix, "--shard", "3/2"]) == 2
    assert "--shard: got '3/2'" in capsys.readouterr().err


def test_a_scheduler_numbers_the_shards(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    matrix = str(project())
    monkeypatch.setenv("CI_NODE_TOTAL", "2")
    for index in (1, 2):
        out = str(tmp_path / f"share{index}")
        monkeypatch.setenv("CI_NODE_INDEX", str(index))
        assert main(["run", matrix, "--out", out, "--shard", "auto", "--no-report"]) == 0
        info = json.loads(Path(out, "run.json").read_text("utf-8"))
        assert (info["shard"]["index"], info["shard"]["count"]) == (index, 2)
    monkeypatch.setenv("CI_NODE_INDEX", "3")
    capsys.readouterr()
    assert main(["run", matrix, "--shard", "auto"]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 2


def test_resuming_under_another_matrix_is_refused(project: Project, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "run"
    main(["run", str(project()), "--out", str(out), "--no-report"])
    matrix = project("[[tolerance]]\nrtol = 0.1\natol = 0.1\n")
    assert main(["run", str(matrix), "--resume", str(out)]) == 2
    shown = capsys.readouterr().err
    assert "the matrix has changed since this run began: tolerance" in shown
    assert len(shown.splitlines()) == 2


def _descendants(parent: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def _alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"
