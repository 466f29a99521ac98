"""The workflow that the documentation offers: its form, its references, and its scripts, which really run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper
from ruamel.yaml import YAML

from harness.cli.parser import parser_for
from harness.core.records.verdict import Family, Verdict
from harness.report.history.history_file import History
from harness.report.runs.read import read_run
from tests.kit import bare_record, write_run

MATRIX = """\
schema = 1
models = { folders = ["models"] }
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""

WORKFLOW = Path(__file__).parents[2] / "docs" / "how-to" / "nightly.yml"
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None or os.name != "posix", reason="its scripts are for bash")


@pytest.fixture(scope="module")
def workflow() -> Any:
    return YAML(typ="safe").load(WORKFLOW.read_text("utf-8"))


def scripts(workflow: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in workflow["jobs"].items():
        yield from ((name, step) for step in job["steps"] if "run" in step)


def test_it_is_a_workflow() -> None:
    """The schema comes with check-jsonschema; nothing is fetched."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, str(WORKFLOW)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_reference_is_to_something(workflow: Any) -> None:
    for name, job in workflow["jobs"].items():
        needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        assert set(needs) <= set(workflow["jobs"])
        text = str(job)
        for found in re.findall(r"\bneeds\.(\w+)\.", text):
            assert found in needs, name
        for job_name, output in re.findall(r"\bneeds\.(\w+)\.outputs\.(\w+)", text):
            assert output in workflow["jobs"][job_name]["outputs"]
        for found in re.findall(r"\bsteps\.(\w+)\.", text):
            assert found in {step.get("id") for step in job["steps"]}, name
        for row in job.get("strategy", {}).get("matrix", {}).get("include", []):
            assert set(re.findall(r"\bmatrix\.(\w+)", text)) <= set(row)


def test_no_expression_stands_in_a_script(workflow: Any) -> None:
    """What comes from outside reaches a script as a variable, so that it cannot be a command."""
    for name, step in scripts(workflow):
        assert "${{" not in step["run"], name
        assert step["shell"] == "bash"


@needs_bash
def test_every_script_is_bash_and_every_command_ours(workflow: Any) -> None:
    commands = []
    for _, step in scripts(workflow):
        assert BASH is not None
        done = subprocess.run(
            [BASH, "-n"], input=step["run"], text=True, capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        for line in step["run"].replace("\\\n", " ").splitlines():
            if "ep-harness " in line and "pip install" not in line:
                alone = re.sub(r'"\$\{(show|earlier)\[@\]\}"', "", re.split(r"\|\||>>|;", line)[0])
                commands.append(shlex.split(alone)[1:])
    assert {command[0] for command in commands} == {"run", "report", "history", "diff", "gate"}
    for command in commands:
        parser_for(command).parse_args(command)


@pytest.fixture
def night(tmp_path: Path, workflow: Any) -> Callable[..., dict[str, int]]:
    """Run the scripts of the job that reports, over two shards, in a folder that the nights share."""

    def write(folder: Path, verdicts: dict[str, Verdict], started: str) -> None:
        records = [
            bare_record(
                model,
                verdict,
                target="cuda",
                provider="CUDAExecutionProvider",
                expected=verdict.family is not Family.FAILED,
                started=started,
            )
            for model, verdict in verdicts.items()
        ]
        write_run(folder, records, targets={"cuda": {}})

    def run(day: int, shards: list[dict[str, Verdict]], only: str = "") -> dict[str, int]:
        shutil.rmtree(tmp_path / "tonight", ignore_errors=True)
        for number, verdicts in enumerate(shards, start=1):
            write(tmp_path / "tonight" / f"cuda-{number}", verdicts, f"2026-11-0{day}T02:00:00Z")
        (tmp_path / "gate.toml").write_text("schema = 1\n", "utf-8")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        summary = tmp_path / "summary.md"
        environment = {**os.environ, **workflow["env"], "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)}
        environment["GITHUB_RUN_ID"] = str(1000 + day)
        codes = {}
        for name, step in scripts(workflow):
            if name == "report" and "pip install" not in step["run"] and only in step["name"]:
                # As GitHub calls it: bash --noprofile --norc -eo pipefail {0}
                command = [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
                done = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=300
                )
                codes[step["name"]] = done.returncode
                assert b"Traceback" not in done.stderr
        return codes

    return run


@needs_bash
def test_two_nights(night: Callable[..., dict[str, int]], tmp_path: Path) -> None:
    nights, database = tmp_path / "state" / "nights", tmp_path / "state" / "history.sqlite"
    good = [{"a": Verdict.PASS, "b": Verdict.CRASH}, {"c": Verdict.PASS}]
    assert night(1, good) == {"State": 0, "Report": 0, "History": 0, "Gate": 0}
    assert (nights / "1001" / "cuda-2" / "run.json").is_file()
    # A shard ran twice, into two folders, and a cell of it came out in two ways.
    bad = [{"a": Verdict.MISMATCH, "b": Verdict.PASS}, {"c": Verdict.PASS}, {"c": Verdict.CRASH}]
    assert night(2, bad) == {"State": 0, "Report": 0, "History": 1, "Gate": 1}
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert "1 regressed, 1 fixed" in summary
    assert "its runs hold different results" in summary
    for name in ("index.html", "report.md", "cells.csv", "report.json", "junit.xml", "badge.json"):
        assert (tmp_path / "site" / name).is_file(), name
    assert "a[cuda]" in (tmp_path / "site" / "history" / "index.html").read_text("utf-8")
    # The night that failed is nobody's measure: the next is held against the good one.
    assert [path.name for path in nights.iterdir()] == ["1001"]

    def added() -> list[tuple[Any, ...]]:
        with History(database) as history:
            return list(history.rows("SELECT not_run FROM run ORDER BY id"))

    assert added() == [(0,), (1,)]
    # A second attempt of that night begins where the first one did.
    assert night(2, good, only="State") == {"State": 0}
    assert added() == [(0,)]


@needs_bash
def test_the_step_that_runs_a_share(workflow: Any, tmp_path: Path) -> None:
    """On a tiny matrix."""
    graph = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    (tmp_path / "models").mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "models" / "a.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "m.toml").write_text(MATRIX, "utf-8")
    (step,) = [step for name, step in scripts(workflow) if name == "run" and step["name"] == "Run"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    names = {"NAME": "cpu", "SHARD": "1/1", "TARGET": "cpu*", "MATRIX": "m.toml"}
    done = subprocess.run(
        [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, **names},
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "tonight").iterdir()
    assert [record.verdict for record in read_run(run).records] == [Verdict.PASS]
    jobs = workflow["jobs"]["run"]["steps"]
    (kept,) = [one["with"] for one in jobs if "upload-artifact" in one.get("uses", "")]
    assert kept["overwrite"] is True
    (cache,) = [one["with"] for one in workflow["jobs"]["report"]["steps"] if "cache" in one.get("uses", "")]
    assert "${{ github.run_attempt }}" in cache["key"]
