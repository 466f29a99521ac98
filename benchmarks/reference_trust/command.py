"""Ask about every subject in processes that may die, and write the table and its page."""

import argparse
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.reference_trust.checked import table_of
from benchmarks.reference_trust.measure import Result, measure
from benchmarks.reference_trust.node_tests import node_tests
from benchmarks.reference_trust.page import PAGE, page_of
from benchmarks.reference_trust.specs import subjects_of
from benchmarks.reference_trust.specs_others import SPECS as OTHERS
from benchmarks.reference_trust.specs_values import SPECS as VALUES
from benchmarks.reference_trust.specs_windows import SPECS as WINDOWS
from benchmarks.reference_trust.subject import Subject, in_float64
from benchmarks.reference_trust.table import toml_of
from harness.golden.trust import TABLE

ROOT = Path(__file__).parents[2]
RESULTS = "results.jsonl"
SPECS = (*VALUES, *WINDOWS, *OTHERS)


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for what was measured; it is not asked again"
    )
    parser.add_argument("--only", default="", help="operators to ask about, separated by commas")
    parser.add_argument("--from", dest="first", type=int, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    only = frozenset(filter(None, arguments.only.split(",")))
    if arguments.first is not None:
        ask(only, arguments.first)
        return 0
    arguments.work.mkdir(parents=True, exist_ok=True)
    file = arguments.work / RESULTS
    if not file.exists():
        part = file.with_suffix(".part")
        with part.open("wb") as stream:
            stream.writelines(line + b"\n" for line in asked(arguments.only))
        part.replace(file)
    found = results(file)
    print(Counter(one.status for one in found))
    if not only:
        trust = table_of(found, len(SPECS))
        TABLE.write_text(toml_of(trust), "utf-8")
        PAGE.write_text(page_of(trust), "utf-8")
    return 0


def subjects(only: frozenset[str]) -> Iterator[Subject]:
    """Every subject once, in a fixed order; those of doubles follow those of singles."""
    seen = set()
    for source in (node_tests(), subjects_of(SPECS)):
        for one in source:
            if only and one.node.op_type not in only:
                continue
            for each in (one, in_float64(one)):
                if each is None:
                    continue
                key = (
                    each.key,
                    each.opset,
                    each.dtype,
                    each.node.SerializeToString(deterministic=True),
                    _digest(each),
                )
                if key not in seen:
                    seen.add(key)
                    yield each


def _digest(one: Subject) -> bytes:
    digest = hashlib.blake2b()
    for name, value in one.feeds.items():
        digest.update(name.encode())
        digest.update(
            value.tobytes()
            if isinstance(value, np.ndarray) and value.dtype != object
            else repr(value).encode()
        )
    return digest.digest()


def asked(only: str) -> Iterator[bytes]:
    """Results as JSON; after a death the next process goes on behind the subject that was at work."""
    first = 0
    while True:
        command = [
            sys.executable,
            "-m",
            "benchmarks.reference_trust",
            "--work",
            "-",
            "--only",
            only,
            "--from",
            str(first),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        at_work, ended = first, False
        for line in process.stdout:
            if line.startswith(b"{"):
                yield line.rstrip()
            elif line.startswith(b"at "):
                at_work = int(line[3:])
            elif line.startswith(b"end"):
                ended = True
        if process.wait() == 0 and ended:
            return
        print(f"a process died at subject {at_work}", file=sys.stderr)
        first = at_work + 1


def ask(only: frozenset[str], first: int) -> None:
    """Print a result for each subject from one on."""
    for number, one in enumerate(subjects(only)):
        if number < first:
            continue
        print(f"at {number}", flush=True)
        print(msgspec.json.encode(measure(one)).decode(), flush=True)
    print("end", flush=True)


def results(file: Path) -> list[Result]:
    """What was measured."""
    return [msgspec.convert(json.loads(line), Result) for line in file.read_text("utf-8").splitlines()]
