"""`ep-harness record`: an application as it is, and a run with what it fed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cli import main
from tests.cli.conftest import save_model
from tests.kit import read_rows

APPLICATION = """\
import numpy as np, onnxruntime as ort
session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
print(session.run(None, {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)})[0].tolist())
"""
PROCESSES = """\
import multiprocessing, sys
import sitecustomize
import numpy as np, onnxruntime as ort

def feed(value):
    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    session.run(None, {"x": np.full((1, 3), value, np.float32)})

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(feed, range(6), chunksize=1)
    print(sitecustomize.WHOSE, [path for path in sys.path if "record" in path.split("/")[-2:]])
    sys.exit(7)
"""


def recorded(folder: Path, text: str, *arguments: str, path: str = "") -> "subprocess.CompletedProcess[str]":
    (folder / "app.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "harness", "record", *arguments, "--", sys.executable, "app.py"]
    return subprocess.run(
        command,
        cwd=folder,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env=os.environ | {"PYTHONPATH": path},
    )


def test_an_application_of_three_lines_is_recorded_and_judged_as_by_its_own_arrays(tmp_path: Path) -> None:
    for name in ("recorded", "own"):
        save_model(tmp_path / "models" / name / "model.onnx", "Relu")
    home = tmp_path / "models" / "recorded"
    done = recorded(home, APPLICATION)
    assert done.returncode == 0
    assert json.loads(done.stdout) == [[0.0] * 3, pytest.approx([0.2, 0.6, 1.0])]
    assert done.stderr == f"ep-harness record: saved 1 data set of 1 model: {home / 'test_data_set_0'}\n"
    own = tmp_path / "models" / "own" / "test_data_set_0"
    own.mkdir()
    np.savez(own / "inputs.npz", x=np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        'schema = 1\n[models]\nfolders = ["models"]\n'
        '[[target]]\nname = "cpu"\nprovider = "CPUExecutionProvider"\n',
        encoding="utf-8",
    )
    assert main(["run", str(matrix), "--out", str(tmp_path / "run"), "--no-report"]) == 0
    by_model: dict[str, Any] = {one["model"]: one for one in read_rows(tmp_path / "run")}
    ours, theirs = by_model["recorded/model.onnx"], by_model["own/model.onnx"]
    same = ("verdict", "fed", "golden_digest", "model_digest", "outputs")
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}
    assert (ours["verdict"], ours["fed"]) == ("pass", "your data: test_data_set_0")


def test_processes_share_the_calls_and_keep_their_path_exit_code_and_own_customization(
    tmp_path: Path,
) -> None:
    save_model(tmp_path / "model.onnx", "Abs")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "sitecustomize.py").write_text("WHOSE = 'theirs'\n", encoding="utf-8")
    done = recorded(tmp_path, PROCESSES, "--calls", "4", path=str(tmp_path / "theirs"))
    assert (done.returncode, done.stdout) == (7, "theirs []\n")
    assert len(list(tmp_path.glob("test_data_set_*/inputs.npz"))) == 4
    assert done.stderr.startswith("ep-harness record: saved 4 data sets of 1 model: ")


def test_a_program_that_is_not_there_is_an_error_of_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--", "no-such-program"]) == 2
    assert "there is no program 'no-such-program'" in capsys.readouterr().err


def test_arguments_after_the_dashes_are_the_applications(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = "import sys; print(sys.argv[1:])"
    program = shutil.which(sys.executable)
    assert program is not None
    assert main(["record", "--", program, "-c", script, "--calls", "x", "--", "y"]) == 0
    assert capfd.readouterr().out == "['--calls', 'x', '--', 'y']\n"
