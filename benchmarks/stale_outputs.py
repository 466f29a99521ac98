"""Stale outputs: a provider that gives what it computed first, whatever it is fed, planted in every model.

The target is the CPU provider with a ``run`` that keeps its first outputs, so all that is wrong is planted.
Models whose outputs do not depend on what can be changed in their inputs are counted apart. Exit code 1 where
one is not found.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from processes import verdict

from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.engine.engine import Engine
from harness.engine.prepare import open_suites
from harness.engine.tasks.events import Finished
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from

KEEPS = """
import importlib.abc, importlib.util, sys

class Keeps(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "onnxruntime":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def keep(module):
            execute(module)
            session, first = module.InferenceSession, {}
            compute = session.run
            def run(self, names, feeds, options=None):
                if id(self) not in first:
                    first[id(self)] = (self, compute(self, names, feeds, options))
                return first[id(self)][1]
            session.run = run
        spec.loader.exec_module = keep
        return spec

sys.meta_path.insert(0, Keeps())
"""


def main(suites: list[str]) -> bool:
    """Print what was found; whether all was."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(KEEPS, encoding="utf-8")
        target = {"name": "keeps", "provider": "CPUExecutionProvider", "env": {"PYTHONPATH": folder}}
        table = {"schema": 1, "models": {"suites": suites}, "target": [target]}
        records = run(table, Path(folder))
    tested = [record for record in records if record.outputs and record.other]
    moved = [record for record in tested if any(row.details and row.details.stale for row in record.other)]
    found = [record for record in moved if record.family is Family.FAILED]
    verdicts = Counter(record.verdict.value for record in records)
    print(
        f"| {len(records)} models |",
        ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()),
        "|",
    )
    print(f"| stale outputs found: {len(found)} of {len(moved)} |")
    untested = [record for record in records if record not in moved and record.family is Family.PASSED]
    print(f"| models whose outputs other inputs do not change, or that have none: {len(untested)} |")
    for record in untested[:20]:
        print(f"{record.cell}: first run {record.timings_ms.get('first_run', 0.0):.0f} ms")
    for record in moved:
        if record not in found:
            print(f"{record.cell}: {record.verdict.value}: {record.reason}")
    missed = len(moved) - len(found)
    return verdict(f"of {len(moved)} models with stale outputs, those not found", missed, 0) and bool(moved)


def run(table: dict[str, object], folder: Path) -> list[Record]:
    """The records of a matrix."""
    matrix = matrix_from(table, folder / "m.toml")
    opened = open_suites(matrix)
    plan = expand(matrix, {name: suite.models() for name, suite in opened.items()})
    engine = Engine(plan, opened)
    try:
        engine.submit(plan.cells)
        engine.drain()
        return [event.record for event in engine.events() if isinstance(event, Finished)]
    finally:
        engine.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", nargs="*", default=["zoo"])
    sys.exit(not main(parser.parse_args().suite))
