"""Goldens that cannot tell right from wrong, by suite: with the first inputs, and after the search.

Suites with test data are used as they are; a folder of models without any shows what the search for better
inputs gains. The CPU provider runs each model once.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from harness.core.comparison.tolerance import default_tolerance
from harness.core.comparison.weak_golden import why_weak
from harness.core.records.record import Record
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import Suite
from harness.engine.answers.references import References, Stores
from harness.engine.engine import Engine
from harness.engine.prepare import open_suites
from harness.engine.tasks.events import Finished
from harness.plan.expand import expand
from harness.plan.matrix import Matrix, matrix_from

DEFAULT = ["onnx-node", "onnx-simple", "zoo"]


def main(suites: list[str], folders: list[str]) -> None:
    """Print a table of suites."""
    models = {"suites": suites, "folders": folders}
    table = {"schema": 1, "models": models, "target": [{"name": "cpu", "provider": "CPUExecutionProvider"}]}
    with tempfile.TemporaryDirectory() as home:
        matrix = matrix_from(table, Path(home, "m.toml"))
        opened = open_suites(matrix)
        records = run(matrix, opened)
    references = References(Stores.of_here())
    print("| suite | models that run | weak with the first inputs | weak as they are judged | why |")
    print("| --- | --- | --- | --- | --- |")
    for name, suite in opened.items():
        ran = [record for record in records if record.suite == name and record.outputs]
        before = sum(bool(first_weakness(references, suite, record.model)) for record in ran)
        weak = [record for record in ran if record.weak_golden]
        reasons = Counter(record.weak_golden.partition(":")[0] for record in weak).most_common()
        told = "; ".join(f"{count} {why}" for why, count in reasons)
        print(f"| {name} | {len(ran)} | {before} | {len(weak)} | {told} |")


def run(matrix: Matrix, opened: dict[str, Suite]) -> list[Record]:
    """The records of all cells."""
    plan = expand(matrix, {name: suite.models() for name, suite in opened.items()})
    engine = Engine(plan, opened)
    try:
        engine.submit(plan.cells)
        engine.drain()
        return [event.record for event in engine.events() if isinstance(event, Finished)]
    finally:
        engine.close()


def first_weakness(references: References, suite: Suite, model: str) -> str:
    """Why the golden for the first inputs is weak; a model that does not run with them has none."""
    golden = references.golden(load_case(suite, model, {}))
    if golden is None or golden.status != "ok":
        return ""
    return why_weak(golden.outputs, lambda dtype: default_tolerance(dtype, "float32"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", nargs="*", help="default: onnx-node, onnx-simple, zoo")
    parser.add_argument("--folder", action="append", default=[], help="models without test data")
    given = parser.parse_args()
    main(
        given.suite or ["onnx-node", "onnx-simple", "zoo"],
        [str(Path(one).absolute()) for one in given.folder],
    )
    sys.exit(0)
