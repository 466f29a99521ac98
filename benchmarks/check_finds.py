"""What `check` finds of wrong values: each fault of the crooked EP, over all models of `check`.

The faults are those of `tests/crooked_ep` that change values, each by a provider option. One honest run shows
on which models the provider computes a node at all; only these can show a fault, and are run. A fault is
found by a suite in which a cell fails that does not fail without it. Faults that crash, hang or change the
process are shown by any model, and are not counted here: `tests/crooked_ep` has them.

Exit code 1 where `check` as it is by default misses a fault.
"""

import argparse
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness.cli.targets import Request, Tested
from harness.core.record import Record
from harness.core.verdict import Family
from harness.engine.engine import Engine
from harness.engine.events import Finished
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from
from tests.crooked_ep.build import build
from tests.crooked_ep.faults import Planted, faults
from tests.crooked_ep.planted_run import PROVIDER

SUITES = ("onnx-node", "corners", "fuzz-0", "zoo")
FAULT = "option.fault"
WRONG = {"mismatch", "nan_mismatch", "shape_mismatch", "nondeterministic"}


def main() -> int:
    """Print a row for each fault; 1 where one is found by none."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only these faults")
    named = set(parser.parse_args().names)
    chosen = [fault for fault in faults() if fault.chosen_by == "graph" and fault.told in WRONG]
    chosen = [fault for fault in chosen if not named or fault.name in named]
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        honest = run(library, Path(folder), [], ())
        failing = {(record.suite, record.model) for record in honest if record.family is Family.FAILED}
        models = sorted(
            {
                f"{record.suite}/{record.model}"
                for record in honest
                if record.placement is not None and record.placement.ep_nodes
            }
        )
        records = run(library, Path(folder), [fault.name for fault in chosen], models)
    found = Counter(
        (record.axes[FAULT], record.suite)
        for record in records
        if record.family is Family.FAILED and (record.suite, record.model) not in failing
    )
    print(f"{len(models)} models on which the provider computes; honest: {len(failing)} fail\n")
    print(f"| fault | {' | '.join(SUITES)} | --quick | default |\n|---|{'---:|' * len(SUITES)}---|---|")
    for fault in chosen:
        print(row(fault, [found[fault.name, suite] for suite in SUITES]))
    quick = sum(bool(found[fault.name, SUITES[0]]) for fault in chosen)
    all_of_it = sum(any(found[fault.name, suite] for suite in SUITES) for fault in chosen)
    print(f"\n{len(chosen)} faults: --quick finds {quick}, the default {all_of_it}")
    return 0 if all_of_it == len(chosen) else 1


def row(fault: Planted, cells: Sequence[int]) -> str:
    """A row of the table: failing cells of each suite."""
    words = ("found" if cells[0] else "-", "found" if any(cells) else "**missed**")
    return f"| {fault.sentence} | {' | '.join(map(str, cells))} | {words[0]} | {words[1]} |"


def run(library: Path, folder: Path, options: Sequence[str], models: Sequence[str]) -> list[Record]:
    """Run the models of `check`, all of them or some, with each value of the option `fault`."""
    text = Request(provider=PROVIDER, plugin=str(library), models=Tested(usual=True)).matrix_text()
    table = tomllib.loads(text)
    if options:
        table["target"][0]["axes"] = {FAULT: list(options)}
    matrix = matrix_from(table, folder / "check.toml")
    suites = open_suites(matrix)
    plan = expand(matrix, {name: suite.models() for name, suite in suites.items()}).only(models=models)
    engine = Engine(plan, suites)
    try:
        engine.submit(plan.cells)
        engine.drain()
        return [event.record for event in engine.events() if isinstance(event, Finished)]
    finally:
        engine.close()


if __name__ == "__main__":
    sys.exit(main())
