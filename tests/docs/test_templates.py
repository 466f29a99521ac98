"""Templates of the how-tos for many machines: their schemas, and their scripts, which really run.

Nothing here was on a cluster or at GitHub: a schema shows that fields have their names and types. The Slurm
script runs on a real Slurm in ``tests/slurm``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kubernetes_validate.utils import ValidationError
from kubernetes_validate.utils import validate as validate_resource
from markdown_it import MarkdownIt
from ruamel.yaml import YAML

from harness.core.records.run_info import RunInfo, ShardInfo

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
MANIFESTS = ("kubernetes.yml", "kubernetes-report.yml")
RELEASES = ("1.29", "1.33")
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None or os.name != "posix", reason="its scripts are for bash")
MATRIX = """
schema = 1
[models]
suites = ["onnx-node"]
exclude = ["onnx-node/test_[b-z]*", "onnx-node/test_a[e-z]*"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""


def documents(name: str) -> list[Any]:
    return list(YAML(typ="safe").load_all((HOW_TO / name).read_text("utf-8")))


def validate(schema: str, file: Path) -> None:
    """Check a file against a schema that comes with check-jsonschema; nothing is fetched."""
    transform = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *transform]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def run_script(script: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a script as GitHub and the manifests do."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [str(BASH), "--noprofile", "--norc", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


# --- Kubernetes ---


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_as_kubernetes_wants_it(name: str, release: str) -> None:
    for document in documents(name):
        validate_resource(document, release, strict=True)


def test_the_schema_refuses_what_is_misspelt() -> None:
    job = documents("kubernetes.yml")[1]
    job["spec"]["backoffLimitPerIndices"] = job["spec"].pop("backoffLimitPerIndex")
    with pytest.raises(ValidationError, match="backoffLimitPerIndices"):
        validate_resource(job, RELEASES[-1], strict=True)


def test_the_indexed_job_is_consistent() -> None:
    claim, job = documents("kubernetes.yml")
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["completionMode"] == "Indexed"
    assert {"name": "JOB_COMPLETIONS", "value": str(spec["completions"])} in container["env"]
    # Kubernetes demands it for a failure policy and for retries of each index.
    assert pod["restartPolicy"] == "Never"
    names = {rule["onExitCodes"]["containerName"] for rule in spec["podFailurePolicy"]["rules"][1:]}
    assert names == {container["name"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    (report,) = documents("kubernetes-report.yml")
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for one in (pod, report["spec"]["template"]["spec"])
        for volume in one["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert set(claims) == {claim["metadata"]["name"]}


@pytest.mark.long
@needs_bash
def test_the_pods_scripts_make_one_report(tmp_path: Path) -> None:
    """Those of the manifests, with their folders moved; an index that comes again goes on where it was."""
    (tmp_path / "my.toml").write_text(MATRIX, "utf-8")

    def moved(script: str) -> str:
        assert "/results" in script
        return script.replace("/results", f"{tmp_path}/results").replace("/matrix/", f"{tmp_path}/")

    (run,) = documents("kubernetes.yml")[1]["spec"]["template"]["spec"]["containers"]
    (report,) = documents("kubernetes-report.yml")[0]["spec"]["template"]["spec"]["containers"]
    for index in ("0", "1", "1"):
        done = run_script(
            moved(run["args"][0]), tmp_path, JOB_COMPLETION_INDEX=index, JOB_COMPLETIONS="2", COLUMNS="200"
        )
        assert done.returncode == 0, done.stderr
    assert "resuming" in done.stdout
    shards = [
        msgspec.json.decode((tmp_path / f"results/shares/share-{index}/run.json").read_bytes(), type=RunInfo)
        for index in range(2)
    ]
    assert [(info.shard.index, info.shard.count) for info in shards if info.shard] == [(1, 2), (2, 2)]
    done = run_script(moved(report["args"][0]), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cpu" in done.stdout
    # A target that cannot be used leaves nothing that the next try would take for done.
    (tmp_path / "my.toml").write_text(f'{MATRIX}plugin = "/no/such/library.so"\nrequired = true\n', "utf-8")
    shutil.rmtree(tmp_path / "results")
    done = run_script(moved(run["args"][0]), tmp_path, JOB_COMPLETION_INDEX="0", JOB_COMPLETIONS="1")
    assert done.returncode == 3, done.stderr
    assert not (tmp_path / "results/shares/share-0").exists()
    assert len(list((tmp_path / "results/failed").iterdir())) == 1


# --- GitHub Actions ---


@pytest.fixture(scope="module")
def workflow() -> Any:
    return documents("accelerators.yml")[0]


def steps(workflow: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in workflow["jobs"].items():
        yield from ((name, step) for step in job["steps"] if "run" in step)


def test_the_workflow_is_one() -> None:
    validate("github-workflows", HOW_TO / "accelerators.yml")


def test_no_expression_of_the_workflow_stands_in_a_script(workflow: Any) -> None:
    for name, step in steps(workflow):
        assert "${{" not in step["run"], name
        assert step["shell"] == "bash"


def test_references_of_the_workflow_are_to_something(workflow: Any) -> None:
    for name, job in workflow["jobs"].items():
        needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        assert set(needs) <= set(workflow["jobs"])
        for found, output in re.findall(r"\bneeds\.(\w+)\.outputs\.(\w+)", str(job)):
            assert found in needs, name
            assert output in workflow["jobs"][found]["outputs"]
        matrix = job.get("strategy", {}).get("matrix", {})
        assert set(re.findall(r"\bmatrix\.(\w+)", str(job))) <= set(matrix)


@needs_bash
def test_shards_of_runners_merge_and_a_broken_runner_is_named(workflow: Any, tmp_path: Path) -> None:
    scripts = {step.get("name", step.get("id")): step for _, step in steps(workflow)}
    (tmp_path / "my.toml").write_text(MATRIX, "utf-8")
    listed = tmp_path / "output"
    done = run_script(
        scripts["list"]["run"],
        tmp_path,
        GITHUB_OUTPUT=str(listed),
        RUNNERS=scripts["list"]["env"]["RUNNERS"],
    )
    assert done.returncode == 0, done.stderr
    runners = json.loads(listed.read_text("utf-8").partition("=")[2])
    assert runners == ["npu-1", "npu-2", "npu-3", "npu-4"]
    for index, runner in enumerate(runners):
        if runner != "npu-3":  # it is off
            done = run_script(
                scripts["Run"]["run"], tmp_path, MATRIX="my.toml", RUNNER=runner, INDEX=str(index), TOTAL="4"
            )
            assert done.returncode == 0, done.stderr
    summary = tmp_path / "summary.md"
    done = run_script(scripts["Report"]["run"], tmp_path, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0, done.stderr
    assert "shard 3 of 4 is missing" in summary.read_text("utf-8")
    told = run_script(scripts["Broken runners"]["run"], tmp_path, RUNNERS=json.dumps(runners))
    assert told.returncode == 1
    assert told.stdout.splitlines() == ["::error title=npu-3::it brought no results"]
    stopped = RunInfo(
        schema=1,
        plan="p",
        cells=9,
        matrix={},
        targets={},
        complete=False,
        shard=ShardInfo(index=3, count=4, plan="w", cells=36),
    )
    (tmp_path / "results" / "npu-3").mkdir()
    (tmp_path / "results" / "npu-3" / "run.json").write_bytes(msgspec.json.encode(stopped))
    told = run_script(scripts["Broken runners"]["run"], tmp_path, RUNNERS=json.dumps(runners))
    assert (told.returncode, told.stdout.splitlines()) == (
        1,
        ["::error title=npu-3::it stopped before its last cell"],
    )


# --- GitLab, Buildkite, CircleCI, Azure Pipelines ---


def test_the_snippets_of_other_systems_are_as_they_want_them(tmp_path: Path) -> None:
    page = (HOW_TO / "shards.md").read_text("utf-8")
    found = {}
    for token in MarkdownIt("commonmark").parse(page):
        if token.type == "fence" and token.info.startswith("yaml "):
            found[token.info.split()[1]] = token.content
    assert set(found) == {"gitlab-ci", "buildkite", "circle-ci", "azure-pipelines"}
    for schema, text in found.items():
        file = tmp_path / f"{schema}.yml"
        file.write_text(text, "utf-8")
        validate(schema, file)
        assert "--shard auto" in text
