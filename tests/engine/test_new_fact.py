"""A new fact takes one field, one place that measures it and one row of docs, and nothing else."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from harness.core.records.facts import Facts, RunFacts, ToldFacts
from harness.core.records.record import Decision, Record
from harness.engine.processes.messages import Completed
from harness.engine.tasks.outcome import Ran

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "records.md"

MEASURED = {
    "core/records/facts.py": ("    fixed: FixedSizes | None = None\n", "    values: int = 0\n"),
    "engine/measuring/measure.py": (
        "        reference_check=_references(outcome, case, answers, compared",
        "        values=sum(row.elements for row in compared.outputs),\n",
    ),
}
"""A fact that the harness measures: file -> the line that is there, and the line that is added before it."""

TOLD = {
    "core/records/facts.py": ("    timings_ms: Timings = {}\n", "    inputs_fed: int = 0\n"),
    "agent/job_run.py": (
        '        self.result["timings_ms"].setdefault("first_run", self.run_ms)\n',
        '        self.result["inputs_fed"] = len(feeds)\n',
    ),
}
"""A fact that the agent tells."""

MATRIX = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""
NEW = """
import sys
from harness.core.verdicts.decide import judged_again
from harness.core.comparison.policy import Policy
from harness.core.records.record import Record, decode_record, encode_record
(line,) = open(sys.argv[1], "rb")
record = judged_again(decode_record(line), Policy())
print(encode_record(record).decode())
"""


def changed_package(home: Path) -> Path:
    """Return a copy of the package with two more facts, made as CONTRIBUTING.md says."""
    package = home / "harness"
    shutil.copytree(ROOT / "harness", package, ignore=shutil.ignore_patterns("__pycache__", "_data"))
    for folder in ("matrices", "golden", "report_templates"):
        if (ROOT / folder).is_dir():
            (home / folder).symlink_to(ROOT / folder)
    for change in (MEASURED, TOLD):
        for name, (before, added) in change.items():
            path = package / name
            text = path.read_text(encoding="utf-8")
            assert text.count(before) == 1, name
            path.write_text(text.replace(before, added + before), encoding="utf-8")
    return package


def test_a_field_and_the_place_that_measures_it_are_enough(tmp_path: Path) -> None:
    home = changed_package(tmp_path / "changed").parent
    work = tmp_path / "work"
    (work / "models").mkdir(parents=True)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, ir_version=8), work / "models" / "relu.onnx")
    (work / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(home)}
    run = [sys.executable, "-m", "harness", "run", "matrix.toml", "--out", "out", "--no-report"]
    done = subprocess.run(run, cwd=work, env=env, capture_output=True, text=True, check=False, timeout=240)

    assert done.returncode == 0, done.stderr + done.stdout
    record = json.loads((work / "out" / "records.jsonl").read_text(encoding="utf-8"))
    assert record["verdict"] == "pass", record
    assert (record["values"], record["inputs_fed"]) == (6, 1)

    again = [sys.executable, "-c", NEW, "out/records.jsonl"]
    done = subprocess.run(again, cwd=work, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == record  # judged again, it keeps them


def test_every_field_of_a_record_has_its_row() -> None:
    part = PAGE.read_text("utf-8").partition("\n## Records\n")[2].partition("\n### ")[0]
    rows = [line.split("|")[1] for line in part.splitlines() if re.match(r"\| `", line)]
    published = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert published >= set(Record.__struct_fields__)


def test_a_fact_is_declared_once() -> None:
    """Message, outcome, facts, decision and record extend each other; only ``provider`` becomes required."""
    chain = (ToldFacts, RunFacts, Facts, Decision, Record)
    own = [set(inspect.get_annotations(kind)) for kind in chain]
    assert set().union(*own) == set(Record.__struct_fields__)
    twice = {name for index, names in enumerate(own) for name in names & set().union(*own[:index])}
    assert twice == {"provider"}
    assert issubclass(Completed, ToldFacts)
    assert issubclass(Ran, RunFacts)
