"""The weight of a report of 10,000 and of 100,000 cells: kB of HTML of the heaviest file of each page.

The records are made, not run (tests/heavy.py): ten columns, verdicts of every look, a triage of 200 faults,
and a baseline in which nearly every verdict is another.

Exit code 1: a file is above the limit.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from processes import heading, row, verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.report.cells.paging import FILE_BYTES
from harness.report.report_files import write_report
from tests.heavy import heavy_runs, weights


def main() -> int:
    """Measure and print; 1 if a file is above the limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cells", type=int, nargs="*", default=[10_000, 100_000])
    heading("cells", "page", "files", "heaviest")
    met = True
    for cells in parser.parse_args().cells:
        with tempfile.TemporaryDirectory() as folder:
            run, older = heavy_runs(Path(folder), cells)
            write_report([run], Path(folder, "site"), baseline=older)
            found = weights(Path(folder, "site"))
        for page, (files, heaviest) in found.items():
            row(f"{cells:,}", page, f"{files}", f"{heaviest / 1000:.0f} kB")
        largest = max(heaviest for _, heaviest in found.values())
        met &= verdict(f"kB of the heaviest file, {cells:,} cells", largest / 1000, FILE_BYTES / 1000)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
