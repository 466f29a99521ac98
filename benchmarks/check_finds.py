"""What `check` finds of wrong values: each fault of the crooked EP, over the models of `check`.

The faults are those of `tests/crooked_ep` that change values, each by a provider option. One honest run shows
where the provider computes which operators; a fault is run over the models in which it computes the operator
of the fault's own small model, each plainly, since the thirty sessions of `check` look for leaks. A fault is
found by a suite in which a cell fails that does not fail without it. Faults that crash, hang or change the
process are shown by any model, and are not counted here: `tests/crooked_ep` has them.

Exit code 1 where `check` as it is by default misses a fault.
"""

import argparse
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import onnx
from processes import verdict

from harness.cli.targets import ProviderRequest, Tested
from harness.core.records.record import Record
from harness.core.records.scenario import PLAIN
from harness.core.records.verdict import Family
from harness.engine.engine import Engine
from harness.engine.prepare import open_suites
from harness.engine.tasks.events import Finished
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from
from tests.crooked_ep.build import build
from tests.crooked_ep.faults import Planted, faults
from tests.crooked_ep.models import small_models
from tests.crooked_ep.planted_run import PROVIDER

SUITES = ("onnx-node", "corners", "fuzz-0", "zoo")
FAULT = "option.fault"
Key = tuple[str, str]
"""Suite and model."""
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
        honest = run(library, Path(folder))
        failing = {(record.suite, record.model) for record in honest if record.family is Family.FAILED}
        computing = {
            (record.suite, record.model): record.placement.ep_ops.keys()
            for record in honest
            if record.placement is not None and record.placement.ep_nodes
        }
        records = run(library, Path(folder), {fault.name: shown_by(fault, computing) for fault in chosen})
    found = Counter(
        (record.axes[FAULT], record.suite)
        for record in records
        if record.family is Family.FAILED and (record.suite, record.model) not in failing
    )
    print(f"{len(computing)} models on which the provider computes; honest: {len(failing)} fail")
    print(f"{len(records)} cells with a fault\n")
    print(f"| fault | {' | '.join(SUITES)} | --quick | default |\n|---|{'---:|' * len(SUITES)}---|---|")
    for fault in chosen:
        print(row(fault, [found[fault.name, suite] for suite in SUITES]))
    quick = sum(bool(found[fault.name, SUITES[0]]) for fault in chosen)
    all_of_it = sum(any(found[fault.name, suite] for suite in SUITES) for fault in chosen)
    print(f"\n{len(chosen)} faults: --quick finds {quick}, the default {all_of_it}")
    missed = len(chosen) - all_of_it
    what = f"of {len(chosen)} kinds of planted faults, those that check misses"
    return 0 if verdict(what, missed, 0) else 1


def row(fault: Planted, cells: Sequence[int]) -> str:
    """A row of the table: failing cells of each suite."""
    words = ("found" if cells[0] else "-", "found" if any(cells) else "**missed**")
    return f"| {fault.sentence} | {' | '.join(map(str, cells))} | {words[0]} | {words[1]} |"


def shown_by(fault: Planted, computing: Mapping[Key, Collection[str]]) -> set[Key]:
    """Suite and model of those in which the provider computes the operator that a fault is about."""
    about = onnx.parser.parse_graph(f"g () => () {{ {small_models()[fault.model].nodes} }}").node[-1].op_type
    return {key for key, operators in computing.items() if about in operators}


def run(library: Path, folder: Path, chosen: Mapping[str, Collection[Key]] | None = None) -> list[Record]:
    """Run the models of `check`: all of them without a fault, or those chosen for each value of `fault`."""
    text = ProviderRequest(provider=PROVIDER, plugin=str(library), models=Tested(usual=True)).matrix_text()
    table = tomllib.loads(text)
    if chosen is not None:
        table["target"][0]["axes"] = {FAULT: list(chosen)}
    matrix = matrix_from(table, folder / "check.toml")
    suites = open_suites(matrix)
    plan = expand(matrix, {name: suite.models() for name, suite in suites.items()})
    engine = Engine(plan, suites)
    try:
        engine.submit(
            cell
            for cell in plan.cells
            if cell.axis("scenario") == PLAIN
            and (chosen is None or (cell.suite, cell.model) in chosen[cell.axis(FAULT)])
        )
        engine.drain()
        return [event.record for event in engine.events() if isinstance(event, Finished)]
    finally:
        engine.close()


if __name__ == "__main__":
    sys.exit(main())
