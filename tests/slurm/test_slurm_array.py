"""Shares as tasks of a Slurm job array: the how-to word by word, a requeued task, a broken device."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from tests.kit import FAKE_ENV, write_model
from tests.slurm.running import until

if TYPE_CHECKING:
    from tests.slurm.slurm_cluster import Slurm

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
SCRIPT = HOW_TO / "slurm-array.sh"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the script, sixteen models, and a matrix for the fake device."""
    for number in range(16):
        write_model(tmp_path / "models" / f"{number:02}_fine.onnx")
    env = {**FAKE_ENV, "FAKE_MARKER": str(tmp_path / "marker")}
    lines = [f"{name} = {json.dumps(value)}" for name, value in env.items()]
    (tmp_path / "my.toml").write_text(
        "schema = 1\n[models]\nfolders = ['models']\n[[target]]\nname = 'npu'\n"
        "provider = 'CUDAExecutionProvider'\n[target.env]\n" + "\n".join(lines) + "\n",
        "utf-8",
    )
    shutil.copy(SCRIPT, tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def logs(project: Path) -> str:
    return "\n".join(
        f"{path.name}: {path.read_text('utf-8')}" for path in [*project.glob("*.log"), *project.glob("*.out")]
    )


def records(project: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(project.glob("results/*/records.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]


def test_the_how_to_word_by_word(slurm: "Slurm", project: Path) -> None:
    """The array of eight on four devices: its last four tasks wait for the first ones."""
    page = MarkdownIt("commonmark").parse((HOW_TO / "slurm.md").read_text("utf-8"))
    (commands,) = (
        token.content
        for token in page
        if token.type == "fence" and token.info == "sh" and "slurm-array.sh" in token.content
    )
    done = subprocess.run(["bash", "-euc", commands], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    report = project / "report" / "index.html"
    until(report.is_file, lambda: logs(project) + slurm.call("squeue"))
    slurm.wait_for_no_job(30.0)
    found = records(project)
    assert len(found) == 16
    assert len({record["cell"] for record in found}) == 16
    assert {record["verdict"] for record in found} == {"pass"}
    shares = [json.loads(path.read_text("utf-8"))["shard"] for path in project.glob("results/*/run.json")]
    assert sorted((share["index"], share["count"]) for share in shares) == [(n, 8) for n in range(1, 9)]


def test_a_requeued_task_goes_on_where_it_was(slurm: "Slurm", project: Path) -> None:
    write_model(project / "models" / "99_waitonce_in_run.onnx")
    job = slurm.call("sbatch", "--parsable", "--array=1-2", SCRIPT.name).strip()
    until((project / "marker").exists, lambda: logs(project))
    # The task that waits: the other one ends.
    until(lambda: len(slurm.jobs("RUNNING")) == 1, lambda: logs(project) + slurm.call("squeue"))
    task = slurm.call("squeue", "-h", "-r", "-t", "RUNNING", "-o", "%i").strip()
    assert task.startswith(f"{job}_")
    until(lambda: len(records(project)) == 16, lambda: logs(project) + slurm.call("squeue"))
    slurm.call("scontrol", "requeue", task)
    until(lambda: len(records(project)) == 17, lambda: logs(project) + slurm.call("squeue"), 180.0)
    slurm.wait_for_no_job(30.0)
    found = records(project)
    assert len({record["cell"] for record in found}) == 17
    assert {record["verdict"] for record in found} == {"pass"}
    assert "resuming" in (project / f"ep-harness-{task.partition('_')[2]}.log").read_text("utf-8")


def test_a_share_whose_device_is_broken_is_named(slurm: "Slurm", project: Path) -> None:
    for name, plugin in (("1", ""), ("2", "plugin = '/no/such/library.so'\n")):
        text = (project / "my.toml").read_text("utf-8")
        text = text.replace("[target.env]", f"{plugin}required = true\n[target.env]")
        (project / f"{name}.toml").write_text(text, "utf-8")
    script = (project / SCRIPT.name).read_text("utf-8")
    (project / SCRIPT.name).write_text(script.replace("my.toml", "$SLURM_ARRAY_TASK_ID.toml"), "utf-8")
    slurm.call("sbatch", "--array=1-2", SCRIPT.name)
    until((project / "results-failed").exists, lambda: logs(project))
    slurm.wait_for_no_job(60.0)
    done = subprocess.run(
        ["ep-harness", "report", "results", "--out", "report", "--format", "markdown"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "shard 2 of 2 is missing" in (project / "report" / "report.md").read_text("utf-8")
