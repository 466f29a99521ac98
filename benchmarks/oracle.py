"""Verdicts beside an oracle that is no part of the harness: ONNX's operator tests, on the four providers.

The oracle is bare onnxruntime with ONNX's expected data and tolerances (oracle_loop.py). The harness runs the
same cells through its agent in C, or with ``--agent python`` through the other. Both say of each cell whether
the answer is right, wrong, or none. Cells of which one of them claims nothing are counted: those that the
harness excludes, and random numbers, of which ONNX has no expected ones.

Where the oracle says ``near``, an element is beyond ONNX's tolerances, and all are close to the expected ones
beside the output's largest number. Such data cannot say more, so either answer of the harness agrees with it.
They are counted, too.

Exit code 1: more than 0.1 % of the cells differ. Each of them is named.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from processes import (
    FOLDERS,
    HERE,
    MODELS,
    heading,
    progress,
    python_of,
    row,
    targets,
    timed,
    usable,
    verdict,
)

from harness.cli.matrix_text import toml
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.corpus.suites.suites import open_suite
from harness.report.runs.read import read_run
from harness.runtimes.native_agent import build_agent

MOST_PERCENT = 0.1
NO_ANSWER = {
    Verdict.CRASH,
    Verdict.HANG,
    Verdict.OUT_OF_MEMORY,
    Verdict.OPTION_REJECTED,
    Verdict.ERROR,
    Verdict.FALLBACK_AT_RUN,
    Verdict.UNSUPPORTED,
}
LIBRARY = "import onnxruntime, pathlib; print(pathlib.Path(onnxruntime.__file__).parent)"


class Compared(NamedTuple):
    """What a target's cells come to; of those that agree, the oracle calls some only ``near``."""

    agree: int
    differing: list[str]
    unclaimed: int
    near: int


def main() -> int:
    """Compare and print; 1 where too few agree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--target", action="append", choices=list(targets()), help="only this one; may be repeated"
    )
    parser.add_argument("--agent", choices=["c", "python"], default="c")
    given = parser.parse_args()
    heading("target", "cells", "agree", "of them `near`", "differ", "no claim")
    agree, differing = 0, []
    for name in given.target or usable():
        found = compare(name, given.agent)
        many = len(found.differing)
        row(name, found.agree + many + found.unclaimed, found.agree, found.near, many, found.unclaimed)
        agree += found.agree
        differing += [f"{name}, {line}" for line in found.differing]
    print(*differing, sep="\n", flush=True)
    percent = 100 * len(differing) / (agree + len(differing))
    return 0 if verdict("% of cells that differ from the oracle", percent, MOST_PERCENT) else 1


def compare(name: str, agent: str) -> Compared:
    """Run both over a target."""
    target = targets()[name]
    oracle = {line["model"]: line for line in answers(target)}
    progress(f"{name}: the oracle has {Counter(line['says'] for line in oracle.values())}")
    agree, unclaimed, near, differing = 0, 0, 0, []
    for record in records(target, agent):
        line, claim = oracle[record.model], claimed(record)
        if claim is None or line["says"] == "random":
            unclaimed += 1
        elif claim == line["says"] or (line["says"] == "near" and claim != "none"):
            agree += 1
            near += line["says"] == "near"
        else:
            says = f"oracle {line['says']}, {line['of_largest']} of the largest {line['why'][:80]!r}"
            differing.append(f"{record.model}: {says}; harness {record.verdict.value}: {record.reason[:120]}")
    return Compared(agree, differing, unclaimed, near)


def claimed(record: Record) -> str | None:
    """What a record claims of the answer: ``right``, ``wrong``, ``none``; None if it claims nothing."""
    if record.verdict in NO_ANSWER:
        return "none"
    if record.family in {Family.PASSED, Family.UNTESTED} or record.verdict is Verdict.WRONG_DEVICE:
        return "right"
    return "wrong" if record.family is Family.FAILED else None


def answers(target: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The oracle's lines; a model that ends its process gets one, too."""
    folder = open_suite(MODELS).root
    names = sorted(path.parent.name for path in folder.glob("*/test_data_set_0"))
    script: list[str | Path] = [*python_of(target), HERE / "oracle_loop.py", folder, json.dumps(target)]
    at = 0
    while at < len(names):
        after = ["--after", names[at - 1]] if at else []
        process = timed([*script, *after], env=target.get("env"), codes=tuple(range(-64, 256)))
        lines = [json.loads(one) for one in process.printed.splitlines() if one.startswith('{"model"')]
        yield from lines
        at += len(lines)
        if at < len(names):
            yield {"model": names[at], "says": "none", "why": "the process ended", "of_largest": None}
            at += 1


def records(target: Mapping[str, Any], agent: str) -> tuple[Record, ...]:
    """The harness's records of the target."""
    folder = Path(FOLDERS.name) / f"{target['name']}-{agent}"
    folder.mkdir()
    table = dict(target) if agent == "python" else through_c(target, folder)
    path = folder / "m.toml"
    lines = ("schema = 1", f"models = {toml({'suites': [MODELS]})}", f"target = [{toml(table)}]")
    path.write_text("\n".join(lines), encoding="utf-8")
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "harness",
        "run",
        path,
        "--out",
        folder / "run",
        "--no-report",
    ]
    timed(command, codes=(0, 1))
    return read_run(folder / "run").records


def through_c(target: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The same target for the agent in C: the same libraries, by their paths."""
    found = subprocess.run(
        [*python_of(target), "-c", LIBRARY], check=True, capture_output=True, text=True
    ).stdout.strip()
    library = next(Path(found).glob("capi/libonnxruntime.so.1.*"))
    agent = build_agent(folder / "agent").path
    table = {**target, "runtime": {"agent": [str(agent), "--library", str(library)]}}
    if plugin := target.get("plugin"):
        code = f"import {plugin}; print({plugin}.get_library_path())"
        ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        table["plugin"] = ran.stdout.strip()
    return table


if __name__ == "__main__":
    sys.exit(main())
