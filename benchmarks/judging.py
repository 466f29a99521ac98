"""A run judged again by another policy: how long it takes, and whether a run under the policy gives the same.

The command is timed on a finished run. Then cells run once more on their providers under the policy: all that
were compared, or some drawn at random. A cell whose verdict differs from the judged one is repeated three
times, by the run's own matrix and under the policy. If a repetition varies, the provider gives other results
each time, or after other cells, and the cell proves nothing; it is named. The exit code is 1 if a limit is
missed or a verdict differs.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
from processes import FOUR, progress, timed, verdict

from harness.core.records.record import Record
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED
from harness.engine.engine import Engine
from harness.engine.prepare import open_suites
from harness.engine.tasks.events import Finished
from harness.plan.expand import expand
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.report.runs.read import read_run

LIMIT_S = 5.0
RECORDS = 10_000  # for which the limit holds, and for fewer
REPEATS = 3


def main(run: Path, policy: str, sample: int, seed: int) -> bool:
    """Print what was found; whether it is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        judged = Path(folder, "judged")
        command = ["-m", "harness", "judge", str(run.absolute()), "--policy", policy, "--out", str(judged)]
        codes = (EXIT_OK, EXIT_UNEXPECTED, EXIT_INCOMPLETE)
        took = timed([sys.executable, *command], codes=codes)
        given, data = read_run(run), read_run(judged)
    many = max(1.0, len(data.records) / RECORDS)
    times = f"{took.seconds:.2f} s, {took.processor_s:.2f} of a core"
    print(f"| {policy} | {len(data.records):,} records | {times} |")
    drawn = draw(data.records, sample, seed)
    before = {record.cell: record for record in given.records}
    own, under = (msgspec.convert(one.info.matrix, Matrix) for one in (given, data))
    again = computed(under, {record.cell for record in drawn})
    differing = [one for one in drawn if again[one.cell].verdict is not one.verdict]
    changed = sum(before[one.cell].verdict is not one.verdict for one in drawn)
    verdicts = Counter(record.verdict.value for record in drawn).most_common()
    print("|", ", ".join(f"{count} {one}" for one, count in verdicts), "|")
    steady = [one for one in differing if is_steady(before[one.cell], again[one.cell], own, under)]
    counts = f"{changed} changed by the policy | {len(steady)} differ | {len(differing) - len(steady)} vary"
    print(f"| {len(drawn)} cells run again | {counts} |", flush=True)
    for one in differing:
        show(one, run=before[one.cell], judged=one, again=again[one.cell])
    met = verdict(f"seconds to judge {RECORDS:,} records by {policy}", took.seconds / many, LIMIT_S)
    return met & verdict("cells with another verdict in a run under the policy", len(steady), 0)


def run_here(folder: Path) -> Path:
    """Run the four providers; return the run folder."""
    progress("a run of the four providers")
    command = [sys.executable, "-m", "harness", "run", FOUR, "--no-report", "--out", folder / "run"]
    timed(command, codes=(EXIT_OK, EXIT_UNEXPECTED))
    return folder / "run"


def is_steady(before: Record, again: Record, own: Matrix, under: Matrix) -> bool:
    """Whether a cell repeats its verdicts, so that a difference between them means something."""
    pairs = ((before, own), (again, under)) * REPEATS
    return all(computed(matrix, {one.cell})[one.cell].verdict is one.verdict for one, matrix in pairs)


def show(cell: Record, **records: Record) -> None:
    """What several runs say of one cell."""
    print(cell.cell)
    for name, record in records.items():
        print(f"    {name:<8} {record.verdict.value}: {record.reason}")


def draw(records: tuple[Record, ...], count: int, seed: int) -> list[Record]:
    """Cells whose values were compared: of others no policy says anything."""
    compared = [record for record in records if record.outputs and record.golden]
    chosen = min(count or len(compared), len(compared))
    return random.Random(seed).sample(compared, chosen)  # noqa: S311 - nobody is to be fooled


def computed(matrix: Matrix, wanted: set[str]) -> dict[str, Record]:
    """Cells of a matrix by id, run now."""
    suites = open_suites(matrix)
    plan = expand(matrix, {name: suite.models() for name, suite in suites.items()})
    cells = tuple(cell for cell in plan.cells if cell.id in wanted)
    engine = Engine(Plan(matrix=matrix, cells=cells), suites)
    try:
        engine.submit(cells)
        engine.drain()
        return {event.record.cell: event.record for event in engine.events() if isinstance(event, Finished)}
    finally:
        engine.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    help_text = "a finished run of any matrix whose providers are here; by default four_providers.toml is run"
    parser.add_argument("run", type=Path, nargs="?", help=help_text)
    parser.add_argument("--policy", default="polygraphy")
    parser.add_argument("--sample", type=int, default=200, help="cells that are run again; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        sys.exit(not main(given.run or run_here(Path(made)), given.policy, given.sample, given.seed))
