"""The workflow that the documentation offers: its form, its references, and its scripts, which really run."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruamel.yaml import YAML

from harness.cli.arguments.parser import parser
from harness.core.record import SCHEMA, Record, encode_record
from harness.core.run_info import RunInfo
from harness.core.verdict import Family, Verdict

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
                command = re.split(r"\|\||>>|;", line)[0].replace('"${baseline[@]}"', "").strip()
                commands.append(shlex.split(command)[1:])
    assert {command[0] for command in commands} == {"run", "report", "history", "diff", "gate"}
    for command in commands:
        parser().parse_args(command)


@pytest.fixture
def night(tmp_path: Path, workflow: Any) -> Callable[..., dict[str, int]]:
    """Run the scripts of the job that reports, over two shards, in a folder that the nights share."""

    def write(folder: Path, verdicts: dict[str, Verdict], started: str) -> None:
        folder.mkdir(parents=True)
        records = [
            Record(
                schema=SCHEMA,
                cell=f"s/{model}[cuda]",
                suite="s",
                model=model,
                target="cuda",
                provider="CUDAExecutionProvider",
                verdict=verdict,
                family=verdict.family,
                expected=verdict.family is not Family.FAILED,
                started=started,
            )
            for model, verdict in verdicts.items()
        ]
        plan = "".join(f"{cell}\n" for cell in sorted(each.cell for each in records))
        info = RunInfo(
            schema=SCHEMA,
            plan=hashlib.sha256(plan.encode()).hexdigest(),
            cells=len(records),
            matrix={},
            targets={"cuda": {}},
            complete=True,
        )
        (folder / "run.json").write_bytes(msgspec.json.encode(info))
        (folder / "records.jsonl").write_bytes(b"".join(encode_record(r) + b"\n" for r in records))

    def run(day: int, shards: list[dict[str, Verdict]]) -> dict[str, int]:
        shutil.rmtree(tmp_path / "tonight", ignore_errors=True)
        for number, verdicts in enumerate(shards, start=1):
            write(tmp_path / "tonight" / f"cuda-{number}", verdicts, f"2026-11-0{day}T02:00:00Z")
        (tmp_path / "gate.toml").write_text("schema = 1\n", "utf-8")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        summary = tmp_path / "summary.md"
        environment = {**os.environ, **workflow["env"], "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)}
        codes = {}
        for name, step in scripts(workflow):
            if name == "report" and "pip install" not in step["run"]:
                # As GitHub calls it: bash --noprofile --norc -eo pipefail {0}
                command = [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
                done = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=300
                )
                codes[step["name"]] = done.returncode
        return codes

    return run


@needs_bash
def test_two_nights(night: Callable[..., dict[str, int]], tmp_path: Path) -> None:
    good = [{"a": Verdict.PASS, "b": Verdict.CRASH}, {"c": Verdict.PASS}]
    assert night(1, good) == {"Report": 0, "History": 0, "Gate": 0}
    assert (tmp_path / "state" / "baseline" / "cuda-2" / "run.json").is_file()
    bad = [{"a": Verdict.MISMATCH, "b": Verdict.PASS}, {"c": Verdict.PASS}]
    assert night(2, bad) == {"Report": 0, "History": 0, "Gate": 1}
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert "1 regressed, 1 fixed" in summary
    for name in ("index.html", "report.md", "cells.csv", "report.json", "junit.xml", "badge.json"):
        assert (tmp_path / "site" / name).is_file(), name
    assert "a[cuda]" in (tmp_path / "site" / "history" / "index.html").read_text("utf-8")
    # The night that failed is nobody's measure: the next is held against the good one.
    baseline = tmp_path / "state" / "baseline" / "cuda-1" / "records.jsonl"
    assert '"mismatch"' not in baseline.read_text("utf-8")
