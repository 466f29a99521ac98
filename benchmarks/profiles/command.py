"""The commands: measure candidates, select cases, write the page."""

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec

from benchmarks.profiles.finding import read_findings
from benchmarks.profiles.measure import measure
from benchmarks.profiles.records import Key, admitted, read_records

HOME = Path(__file__).parent
SELECTION = HOME / "selection.json"
PAGE = Path("docs/reference/profiles.md")
FUZZ = "fuzz:1:2000"
"""The generated suite among the candidates; its records say ``fuzz-1``."""


def main() -> int:
    """Run one subcommand."""
    arguments = _arguments()
    return int(arguments.run(arguments))


def _measure(arguments: argparse.Namespace) -> int:
    """Append what is not yet in the file, so that an interrupted measurement goes on."""
    out: Path = arguments.findings
    done = {one.key for one in read_findings(out)} if out.exists() else set()
    wanted = [_opened(key) for key in admitted(read_records(arguments.records))]
    left = [key for key in wanted if key not in done]
    print(f"{len(left)} of {len(wanted)} candidates to measure", flush=True)
    with (
        ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as processes,
        out.open("ab") as file,
    ):
        suites, models = zip(*left, strict=True) if left else ((), ())
        for finding in processes.map(measure, suites, models, chunksize=8):
            file.write(msgspec.json.encode(finding) + b"\n")
            file.flush()
    return 0


def _opened(key: Key) -> Key:
    """Return the suite as ``open_suite`` takes it, with the model."""
    return (FUZZ if key[0] == "fuzz-1" else key[0]), key[1]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiles", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("measure", help="plant faults in every candidate")
    one.set_defaults(run=_measure)
    one.add_argument("records", nargs="+", type=Path, help="records of runs over the candidates")
    one.add_argument("--findings", type=Path, required=True, help="JSON lines, appended to")
    one.add_argument("--jobs", type=int, default=2, help="processes at once")
    return parser.parse_args()
