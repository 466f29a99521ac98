"""A folder of strangers' models: one of each way in which a file can be good, odd, broken or hostile."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.values.value import STRING, Array, Tensor
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import Suite, open_folder
from harness.golden.golden_cache import GoldenStore
from harness.golden.provenance import provenance
from tests.kit import read_rows

pytestmark = pytest.mark.real_ep

WRITER = Path(__file__).parents[2] / "benchmarks" / "foreign_models.py"
MATRIX = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
workers = 2
"""
KILLERS = {"bottomless_tree", "divides_the_smallest", "no_groups"}
"""Kinds that take the CPU provider of onnxruntime 1.31 down, at least on x86-64."""

# What onnxruntime itself makes of models, without the harness: the paths of those that it runs.
BARE = """
import json, sys
import numpy, onnxruntime
runs = []
for path, inputs in json.load(sys.stdin):
    feed = {name: array.astype(object) if array.dtype.kind == "U" else array
            for name, array in numpy.load(inputs).items()}
    try:
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)
    except Exception:
        continue
    runs.append(path)
print(json.dumps(runs))
"""


def kind(model: str) -> str:
    return model.split("/", maxsplit=1)[0].rpartition("-")[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("foreign")


@pytest.fixture(scope="module")
def right(folder: Path) -> dict[str, list[str]]:
    """The models, and the verdicts that are right for each."""
    command = [sys.executable, str(WRITER), str(folder / "models")]
    written = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    found: dict[str, list[str]] = json.loads(written.stdout)
    return found


@pytest.fixture(scope="module")
def records(folder: Path, right: dict[str, list[str]], own_cache: Path) -> dict[str, dict[str, Any]]:
    assert own_cache.is_dir()
    assert right
    (folder / "m.toml").write_text(MATRIX, encoding="utf-8")
    command = [sys.executable, "-m", "harness", "run", "m.toml", "--out", "run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 1, done.stderr  # 1: there are crashes that nobody expects
    return {record["model"]: record for record in read_rows(folder / "run")}


def test_each_model_has_the_verdict_that_is_right_for_it(
    right: dict[str, list[str]], records: dict[str, dict[str, Any]]
) -> None:
    found = {model: (records[model]["verdict"], records[model].get("reason", "")) for model in right}
    wrong = {model: got for model, got in found.items() if got[0] not in right[model]}
    assert wrong == {}
    assert records.keys() == right.keys()
    counts = Counter(verdict for verdict, _ in found.values())
    assert {"pass", "invalid_model", "crash", "folded", "reference_disputed"} <= counts.keys()
    assert len(found) > 90


def test_each_verdict_but_a_pass_has_a_reason_of_one_line(records: dict[str, dict[str, Any]]) -> None:
    reasons = [record.get("reason", "") for record in records.values() if record["verdict"] != "pass"]
    assert all(reasons)
    assert [reason for reason in reasons if len(reason.splitlines()) > 1] == []


@pytest.fixture(scope="module")
def cases(folder: Path, records: dict[str, dict[str, Any]]) -> dict[str, Case]:
    """The models that the harness can read."""
    assert records
    suite: Suite = open_folder(folder / "models")
    readable = {}
    for model in suite.models():
        try:
            readable[model] = load_case(suite, model, {})
        except ModelError:
            continue
    return readable


def test_there_is_a_golden_for_all_that_the_cpu_provider_runs(cases: dict[str, Case], tmp_path: Path) -> None:
    store = GoldenStore(provenance())
    goldens = {
        str(case.model_path)
        for model, case in cases.items()
        if kind(model) not in KILLERS and (golden := store.load(case)) is not None and golden.status == "ok"
    }
    asked = []
    for number, (model, case) in enumerate(cases.items()):
        if kind(model) not in KILLERS:
            inputs = tmp_path / f"{number}.npz"
            arrays: dict[str, Any] = dict(_arrays(case))
            np.savez(inputs, **arrays)
            asked.append((str(case.model_path), str(inputs)))
    command = [sys.executable, "-c", BARE]
    bare = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, timeout=300, check=True
    )
    runs = set(json.loads(bare.stdout.splitlines()[-1]))
    assert goldens == runs
    assert len(runs) > 30


def _arrays(case: Case) -> Iterator[tuple[str, Array]]:
    for name, value in case.data_sets[0].inputs:
        assert isinstance(value, Tensor)
        yield name, value.array.astype(str) if value.dtype == STRING else value.array
