"""Baselines as a person uses them: a first run, its baseline, the next run, and another kind of machine."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED, EXIT_USAGE
from harness.report.runs.read import read_run
from tests.kit import Capture

Project = Callable[..., Path]

FAULTY = """\
import os

fault = os.environ.get("FAULT_OF_THE_TEST", "")
if fault:
    import onnxruntime

    run = onnxruntime.InferenceSession.run

    def wrong(*arguments, **options):
        return [value + 1 for value in run(*arguments, **options)]

    def die(*arguments, **options):
        os.abort()

    onnxruntime.InferenceSession.run = {"wrong": wrong, "die": die}[fault]
"""
"""Every Python runs this at its start, if it finds it."""

CELLS = [f"models/{name}.onnx[cpu]" for name in ("abs", "neg", "relu")]


@pytest.fixture
def ended(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> Callable[..., tuple[int, str]]:
    """``ended(fault, baseline)``: runs the three models with a fault; the code, and what was printed."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FAULTY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "base").mkdir()
    numbers = iter(range(100))

    def run(fault: str, *baselines: str, model: str = "") -> tuple[int, str]:
        monkeypatch.setenv("FAULT_OF_THE_TEST", fault)
        project("", f"env = {{ PYTHONPATH = {json.dumps(str(tmp_path / 'site'))} }}")
        words = [word for one in baselines for word in ("--baseline", one)]
        chosen = ["--model", model] if model else []
        code = main(["run", "m.toml", "--out", f"r{next(numbers)}", "--no-report", *words, *chosen])
        return code, capsys.readouterr().out

    return run


def proposed(printed: str) -> list[str]:
    """The arguments of the command that a run proposes."""
    (command,) = re.findall(r"^baseline ep-harness (.*)$", printed, re.MULTILINE)
    return str(command).split()


def test_a_first_run_is_compared_with_nothing_and_its_baseline_with_the_next(
    ended: Callable[..., tuple[int, str]], capsys: Capture
) -> None:
    code, printed = ended("wrong", "base")
    assert code == EXIT_OK
    assert (
        "first run    cpu: first run on this kind of machine: nothing to compare; 3 cells failed" in printed
    )
    assert "3 failures are compared with nothing" in printed
    # The run folder says the same to whoever reads it.
    read = read_run(Path("r0"))
    assert [record.expected for record in read.records] == [True] * 3
    assert read.told == ()
    assert set(read.known.values()) == {"first run on this kind of machine: nothing to compare"}

    assert main(proposed(printed)) == EXIT_OK
    (file,) = Path("base").glob("*.toml")
    assert "3 failures and 0 other results on onnxruntime" in capsys.readouterr().out
    listed = re.findall(r"^    (\".*\"),$", file.read_text("utf-8"), re.MULTILINE)
    assert [json.loads(one) for one in listed] == CELLS

    code, printed = ended("wrong", "base")
    assert code == EXIT_OK
    assert f"cpu: {file} fits: onnxruntime" in printed
    assert "3 known failures" in printed
    assert "as matrix and baselines expect, 3 known failures among them" in printed
    assert proposes_nothing(printed)
    assert set(read_run(Path("r1")).known.values()) == {f"as {file} knows"}

    # What is mended is told, with the command that renews the file.
    code, printed = ended("", str(file))
    assert code == EXIT_OK
    assert "3 known failures of cpu no longer there: models/abs.onnx[cpu], " in printed
    assert main(proposed(printed)) == EXIT_OK
    renewed = tomllib.loads(file.read_text("utf-8"))["target"][0]
    assert "failures" not in renewed
    assert renewed["results"] == {"pass": CELLS}

    # Nothing else is replaced, and a target that is not there is told.
    capsys.readouterr()
    for words, told in (
        (["--out", "m.toml"], "m.toml: there is a file that is no baseline"),
        (["--out", "b.toml", "--target", "gpu"], "no target of the run matches 'gpu'"),
    ):
        assert main(["baseline", "write", "r0", *words]) == EXIT_USAGE
        assert told in capsys.readouterr().err
    assert not Path("b.toml").exists()


def proposes_nothing(printed: str) -> bool:
    return "baseline ep-harness" not in printed


def test_a_crash_counts_on_any_machine(ended: Callable[..., tuple[int, str]]) -> None:
    code, printed = ended("die", "base", model="abs.onnx")
    assert code == EXIT_UNEXPECTED
    assert "expected no crash and no hang (first run on this kind of machine" in printed
    assert proposed(printed) == ["baseline", "write", "r0", "--out", "base"]


def test_nothing_judged_is_no_first_run_to_be_content_with(ended: Callable[..., tuple[int, str]]) -> None:
    """The only target cannot be used."""
    Path("site/sitecustomize.py").write_text("import sys; sys.modules['onnxruntime'] = None", "utf-8")
    assert ended("", "base", model="abs.onnx")[0] == EXIT_INCOMPLETE


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "no such file"),
        ("schema = 1", "the key 'target' is missing"),
        ("x", "not TOML"),
        ('schema = 2\n[[target]]\nname = "npu"\nprovider = "P"\nwhere = { os = "linux" }', "schema: got 2"),
        ('schema = 1\n[[target]]\nname = "npu"\nprovider = "P"\nwhere = { os = "linux" }', "knows no target"),
    ],
)
def test_a_wrong_file_is_told_in_two_lines(
    text: str | None, told: str, project: Project, capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "x" / "b.toml"
    if text is not None:
        file.parent.mkdir()
        file.write_text(text, encoding="utf-8")
    words = ["run", str(project()), "--out", str(tmp_path / "run"), "--baseline", str(file)]
    assert main(words) == EXIT_USAGE
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) <= 2
    assert not (tmp_path / "run").exists()


def test_a_run_goes_on_with_its_baselines(ended: Callable[..., tuple[int, str]], capsys: Capture) -> None:
    ended("wrong", "base")
    records = Path("r0/records.jsonl")
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:1]))
    assert main(["run", "m.toml", "--resume", "r0", "--no-report"]) == EXIT_USAGE
    assert "the matrix has changed since this run began: baselines: " in capsys.readouterr().err
    assert main(["run", "m.toml", "--resume", "r0", "--no-report", "--baseline", "base"]) == EXIT_OK
    assert "3 cells failed" in capsys.readouterr().out
