"""A new scenario takes one entry in the table and one module of the agent, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.records.scenario import SCENARIOS, agent_module
from tests.kit import read_rows, write_model

ROOT = Path(__file__).parents[2]
ENTRY = '    "twice": Scenario(meaning="the model runs twice", measurable=False, repeatable=False),\n'
MODULE = """
from harness.agent.plain import conclude

def play(job_run):
    job_run.create()
    job_run.result["outputs"] = [job_run.send(job_run.run(one)[1]) for one in job_run.job["data_sets"]]
    for inputs in job_run.job["data_sets"]:
        job_run.run(inputs)
    job_run.facts["runs"] = 2
    conclude(job_run)
"""
MATRIX = """
schema = 1
models = { folders = ["models"] }
axes = { scenario = ["plain", "twice"] }
target = [{ name = "cpu", provider = "CPUExecutionProvider" }]
"""


def test_an_entry_and_a_module_are_enough(tmp_path: Path) -> None:
    package = tmp_path / "changed" / "harness"
    shutil.copytree(ROOT / "harness", package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("matrices", "report_templates", "golden"):
        if (ROOT / folder).is_dir():
            (package.parent / folder).symlink_to(ROOT / folder)
    table = package / "core" / "records" / "scenario.py"
    head, found, tail = table.read_text(encoding="utf-8").partition('    "io_binding": Scenario(')
    table.write_text(head + ENTRY + found + tail, encoding="utf-8")
    (package / "agent" / "scenarios" / "twice.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "m.toml").write_text(MATRIX, encoding="utf-8")
    write_model(tmp_path / "models" / "one.onnx")

    command = [sys.executable, "-m", "harness", "run", "m.toml", "--out", "run", "--no-report"]
    env = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 0, done.stderr + done.stdout
    records = {
        record["axes"]["scenario"]: record for record in read_rows(tmp_path / "run") if "axes" in record
    }
    assert {name: record["verdict"] for name, record in records.items()} == {"plain": "pass", "twice": "pass"}
    assert records["twice"]["scenario"] == {"runs": 2}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_agent_has_a_module_for_each_scenario_that_is_not_a_plain_run(scenario: str) -> None:
    module = agent_module(scenario)
    assert not module or (ROOT / "harness" / "agent" / "scenarios" / f"{module}.py").is_file()


def test_every_module_of_the_agent_plays_a_scenario() -> None:
    files = {path.stem for path in (ROOT / "harness" / "agent" / "scenarios").glob("*.py")} - {"__init__"}
    assert files == {agent_module(scenario) for scenario in SCENARIOS} - {""}
