"""A folder of many runs of one matrix, night after night: the same bytes for the same numbers.

Each run has ten targets with a tenth of the cells each. Records are those of real runs with fewer fields, of
some 750 bytes. A fiftieth of the cells fail now and then, a hundredth from some night on.
"""

import hashlib
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.cell import AXIS_DEFAULTS, Cell
from harness.core.records.facts import Placement
from harness.core.records.record import SCHEMA, Record, encode_record
from harness.core.records.verdict import Family, Verdict

TARGETS = 10
FIRST = datetime(2024, 1, 1, 2, tzinfo=UTC)
HEADROOM = b'"headroom":0.5'
STARTED = b'"started":"?"'


def make_runs(folder: Path, runs: int, cells: int, first: int = 0) -> None:
    """Write ``runs`` run folders, the first of which has the number ``first``."""
    named = [_cell(number) for number in range(cells)]
    plan = "".join(f"{cell}\n" for cell in sorted(cell.id for cell in named)).encode()
    lines = [_lines(cell) for cell in named]
    for number in range(first, first + runs):
        run = folder / f"night-{number:04}"
        run.mkdir(parents=True)
        (run / "plan.txt").write_bytes(plan)
        (run / "records.jsonl").write_bytes(b"".join(_drawn(number, lines)))
        (run / "run.json").write_text(json.dumps(_info(number, plan, cells)), encoding="utf-8")


def _cell(number: int) -> Cell:
    target = f"npu-{number % TARGETS}"
    model = f"test_{number // TARGETS:05}"
    return Cell(suite="onnx-node", model=model, target=target, axes=tuple(sorted(AXIS_DEFAULTS.items())))


def _lines(cell: Cell) -> dict[Verdict, bytes]:
    return {
        verdict: encode_record(_record(cell, verdict)) + b"\n"
        for verdict in (Verdict.PASS, Verdict.MISMATCH, Verdict.UNSUPPORTED)
    }


def _record(cell: Cell, verdict: Verdict) -> Record:
    compared = verdict is not Verdict.UNSUPPORTED
    output = OutputMetrics(
        name="y",
        dtype="float32",
        shape=(3, 4),
        max_abs=0.0001,
        delivered_bits=20.5,
        elements=12,
        rtol=1e-4,
        atol=1e-5,
        headroom=0.5,
    )
    placed = Placement(
        ep_nodes=1, cpu_nodes=0, ep_ops={"Abs": 1}, cpu_ops={}, partitions=1, source="assignment"
    )
    return Record(
        schema=SCHEMA,
        cell=cell.id,
        suite=cell.suite,
        model=cell.model,
        target=cell.target,
        provider="NpuExecutionProvider",
        axes=dict(cell.axes),
        verdict=verdict,
        family=verdict.family,
        expected=verdict.family is not Family.FAILED,
        reason="" if compared else "the EP refuses the operator",
        placement=placed if compared else None,
        outputs=(output,) if compared else (),
        golden="cpu" if compared else "",
        timings_ms={"create": 1.25, "first_run": 0.5},
        started="?",
        attempt=1,
    )


def _drawn(number: int, lines: list[dict[Verdict, bytes]]) -> list[bytes]:
    """Return the lines of one run, with its time and its errors."""
    draw = random.Random(number)  # noqa: S311 - no secret
    started = b'"started":"' + (FIRST + timedelta(days=number)).strftime("%Y-%m-%dT%H:%M:%SZ").encode() + b'"'
    found = []
    for index, line in enumerate(lines):
        chance = draw.random()
        flaky = index % 50 == 1 and chance < 0.2  # noqa: PLR2004
        broken = index % 100 == 2 and number > index // 100 * 10  # noqa: PLR2004
        verdict = Verdict.MISMATCH if flaky or broken else Verdict.PASS
        chosen = line[Verdict.UNSUPPORTED if index % 7 == 0 else verdict]
        used = b'"headroom":%.3f' % (1.0 + chance if verdict is Verdict.MISMATCH else chance / 2)
        found.append(chosen.replace(HEADROOM, used, 1).replace(STARTED, started, 1))
    return found


def _info(number: int, plan: bytes, cells: int) -> dict[str, object]:
    fingerprint = {"onnxruntime": f"1.{20 + number // 100}", "driver": f"{number // 30}.0"}
    return {
        "schema": SCHEMA,
        "plan": hashlib.sha256(plan).hexdigest(),
        "cells": cells,
        "matrix": {"path": "matrices/nightly.toml"},
        "targets": {f"npu-{target}": fingerprint for target in range(TARGETS)},
        "complete": True,
    }
