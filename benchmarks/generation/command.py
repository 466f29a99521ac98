"""The whole benchmark: faults, healthy runs, the results and the section of the page."""

import argparse
import tempfile
from pathlib import Path

import msgspec

from benchmarks.generation.page import section, with_section
from benchmarks.generation.rows import Elsewhere, elsewhere_of, healthy_of, planned_in, records_of, rows_of
from benchmarks.generation.run import run

WANTED_FOUND = 0.97
WANTED_ACCUSED = 0.005

PAGE = Path("docs/reference/detection.md")


def main() -> int:
    """Exit code 1 where too few faults are found, or too many healthy runs fail."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as temporary:
        runs = arguments.run or [run(arguments.folder or Path(temporary))]
        # Runs of different faults may be put together; of a cell in several, the first counts.
        records = [*{one["cell"]: one for folder in runs[::-1] for one in records_of(folder)}.values()]
    rows, healthy = list(rows_of(records)), healthy_of(records)
    elsewhere = _elsewhere(arguments.others) if arguments.others else []
    results = {"rows": rows, "healthy": healthy, "elsewhere": elsewhere}
    arguments.out.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
    if arguments.page:
        text = section(rows, healthy, elsewhere)
        arguments.page.write_text(
            with_section(arguments.page.read_text(encoding="utf-8"), text), encoding="utf-8"
        )
    found = sum(row.found for row in rows) / max(1, len(rows))
    runs_without = len(healthy) + sum(one.cells - one.expected for one in elsewhere)
    alarms = sum(one.accused for one in healthy) + sum(one.accused for one in elsewhere)
    accused = alarms / max(1, runs_without)
    print(f"{len(rows)} faults: {found:.1%} found; {runs_without} healthy runs: {accused:.1%} accused")
    return 0 if rows and healthy and found >= WANTED_FOUND and accused <= WANTED_ACCUSED else 1


def _elsewhere(run: Path) -> list[Elsewhere]:
    return elsewhere_of(records_of(run), planned_in(run))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generation", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("generation.json"), help="where the results go")
    parser.add_argument("--page", type=Path, help=f"the page whose section is replaced, such as {PAGE}")
    parser.add_argument("--folder", type=Path, help="keeps the run")
    others = "a finished run of matrices/generate.toml, whose false alarms are counted, too"
    parser.add_argument("--others", type=Path, help=others)
    finished = "a finished run, in place of a new one; may be repeated"
    parser.add_argument("--run", type=Path, action="append", help=finished)
    return parser.parse_args()
