"""`ep-harness triage` and `run --triage` on a target with a planted fault."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest

from harness.annex.triage import command_triage as command
from harness.annex.triage.run_triage import Note, read_faults
from harness.cli import main
from harness.core.records.fault import FAULTS_FILE, Fault
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE
from tests.annex.triage.planted_faults import chain
from tests.kit import Capture

PLANTED = Path(__file__).parent / "planted_onnxruntime"
FAULT = {"kind": "scale", "op_type": "Tanh", "factor": 1.01}
WIDTH = 80
FIRST, SECOND, RIGHT = (f"models/{name}.onnx[planted]" for name in ("a", "b", "right"))

Models = dict[str, list[tuple[str, list[str], list[str], dict[str, Any]]]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    """A matrix, and its finished run: two models that fail and one that does not."""
    assert own_cache
    models: Models = {
        "a": [("Neg", ["x"], ["h"], {}), ("Tanh", ["h"], ["y"], {})],
        "b": [("Abs", ["x"], ["h"], {}), ("Tanh", ["h"], ["i"], {}), ("Neg", ["i"], ["y"], {})],
        "right": [("Neg", ["x"], ["y"], {})],
    }
    return run_of(tmp_path_factory.mktemp("planted"), FAULT, models)


def run_of(folder: Path, fault: dict[str, Any], models: Models) -> Path:
    """Run models on a target with a planted fault."""
    if os.name != "posix":
        pytest.skip("faults are planted by POSIX signals")
    (folder / "models").mkdir()
    for name, nodes in models.items():
        onnx.save(chain(nodes), folder / "models" / f"{name}.onnx")
    env = {"PYTHONPATH": str(PLANTED), "PLANTED_FAULT": json.dumps(fault)}
    (folder / "m.toml").write_text(
        'schema = 1\nmodels.folders = ["models"]\n[[target]]\nname = "planted"\n'
        'provider = "CPUExecutionProvider"\n'
        f"env = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in env.items())} }}\n",
        encoding="utf-8",
    )
    assert main(["run", str(folder / "m.toml"), "--out", str(folder / "run"), "--no-report"]) == 1
    return folder


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    return Path(shutil.copytree(home / "run", tmp_path / "run"))


def triage(run: Path, *more: str) -> int:
    return main(["triage", str(run), *more])


def one_line_error(capsys: Capture) -> str:
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert len(error.strip().splitlines()) <= 3
    return error


def representatives(run: Path) -> list[str]:
    return [fault.representative for fault in read_faults(run / "triage" / FAULTS_FILE)]


def test_every_failure_is_explained(run: Path, capsys: Capture) -> None:
    assert triage(run) == EXIT_OK
    out = capsys.readouterr().out
    assert "2 groups of failing cells" in out
    faults = read_faults(run / "triage" / FAULTS_FILE)
    assert {fault.representative for fault in faults} == {FIRST, SECOND}
    assert len({fault.id for fault in faults}) == 1  # both are the same fault
    assert "1 fault, 2 cells" in out
    for fault in faults:
        assert fault.location is not None
        assert fault.location.op_types == ("Tanh",)
        assert fault.id in out
        assert (run / "triage" / fault.bundle / "manifest.json").is_file()
        assert (run / "triage" / f"{fault.id}.zip").is_file()
    prose = [line for line in out.splitlines() if str(run) not in line and "models/" not in line]
    assert prose
    assert max(map(len, prose)) <= WIDTH

    assert triage(run) == EXIT_USAGE
    assert "--resume" in one_line_error(capsys)
    before = (run / "triage" / FAULTS_FILE).read_bytes()
    assert triage(run, "--resume") == EXIT_OK
    assert "1 fault, 2 cells" in capsys.readouterr().out
    assert (run / "triage" / FAULTS_FILE).read_bytes() == before


def test_one_cell_in_another_folder(
    run: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # both paths are relative
    assert triage(Path("run"), SECOND, "--out", "elsewhere", "--jobs", "1") == EXIT_OK
    (fault,) = read_faults(tmp_path / "elsewhere" / FAULTS_FILE)
    assert (fault.representative, fault.cells) == (SECOND, (SECOND,))
    assert fault.reduced is not None
    assert not (run / "triage").exists()
    assert "1 group of failing cells" in capsys.readouterr().out


def test_what_is_no_run(tmp_path: Path, capsys: Capture) -> None:
    assert triage(tmp_path / "nowhere") == EXIT_USAGE
    assert "nowhere" in one_line_error(capsys)
    assert triage(tmp_path) == EXIT_USAGE
    assert str(tmp_path) in one_line_error(capsys)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("models/c.onnx[planted]", "no record of this cell"),
        ("../../etc", "no record of this cell"),
        (RIGHT, "did not fail"),
    ],
)
def test_cells_that_cannot_be_triaged(run: Path, capsys: Capture, cell: str, words: str) -> None:
    assert triage(run, FIRST, cell) == EXIT_USAGE
    error = one_line_error(capsys)
    assert cell in error
    assert words in error
    assert not (run / "triage").exists()


@pytest.mark.parametrize(
    "arguments", [["--jobs", "0"], ["--jobs", "x"], ["--budget", "soon"], ["--budget", "-1s"], ["--nothing"]]
)
def test_wrong_arguments(run: Path, capsys: Capture, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        triage(run, *arguments)
    assert ended.value.code == EXIT_USAGE
    assert "Traceback" not in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(run: Path, capsys: Capture) -> None:
    (run / "file").write_text("", encoding="utf-8")
    assert triage(run, "--out", str(run / "file" / "below")) == EXIT_USAGE
    assert "--out" in one_line_error(capsys)


def test_interrupted_and_resumed(run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Any, fault: Fault) -> None:
        raise KeyboardInterrupt(fault.id)

    with monkeypatch.context() as patched:
        patched.setattr(command.Display, "fault", interrupt)
        assert triage(run, "--jobs", "1") == EXIT_INTERRUPTED
    assert "continue with --resume" in capsys.readouterr().out
    (first,) = representatives(run)
    (trials,) = (run / "triage" / "work").glob("*/trials.jsonl")
    known = trials.read_bytes()
    assert triage(run, "--resume") == EXIT_OK
    assert representatives(run)[0] == first
    assert sorted(representatives(run)) == [FIRST, SECOND]
    assert trials.read_bytes().startswith(known)
    keys = [json.loads(line)["key"] for line in trials.read_bytes().splitlines()]
    repeated = len(keys) - len(set(keys))
    assert repeated <= 2  # of each bundle, the trial whose outputs it holds


def test_long_notes_are_wrapped(capsys: Capture) -> None:
    shown = command.Display()
    shown.note(Note(about="models/a.onnx[planted]", text="learnt " + "much " * 40))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= WIDTH
    assert all(line.startswith("  ") for line in lines[1:])


def test_time_is_up(run: Path, capsys: Capture) -> None:
    assert triage(run, "--budget", "0.001s") == EXIT_INCOMPLETE
    assert "time is up: 2 groups left" in capsys.readouterr().out
    assert representatives(run) == []


def test_a_run_explains_its_failures_after_the_last_cell(home: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "run"
    assert main(["run", str(home / "m.toml"), "--out", str(out), "--no-report", "--triage"]) == 1
    assert sorted(representatives(out)) == [FIRST, SECOND]
    text = capsys.readouterr().out
    assert text.index("planted") < text.index("groups of failing cells")


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError("no room")])
def test_a_triage_that_fails_costs_the_run_nothing(
    home: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> int:
        raise error

    monkeypatch.setattr(command, "triage_records", fail)
    out = tmp_path / "run"
    arguments = ["run", str(home / "m.toml"), "--out", str(out), "--no-report", "--triage-budget", "1s"]
    assert main(arguments) == 1
    assert str(error) in capsys.readouterr().out
    assert (out / "records.jsonl").is_file()
