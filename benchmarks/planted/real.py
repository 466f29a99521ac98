"""The same faults in real sessions: targets whose onnxruntime has an import hook, through the whole engine.

It shows that the court of this bench says what a run says.
"""

import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.planted.models import models
from benchmarks.planted.rows import Provider, Row
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.engine.engine import Engine
from harness.engine.prepare import open_suites
from harness.engine.tasks.events import Finished
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from

HOOK = Path(__file__).with_name("hook")

LOCAL = Path(__file__).parents[2] / "matrices" / "local.toml"

UNHOOKED = frozenset({"to-bfloat16"})
"""Models whose outputs numpy has no type for: sessions give them by a method that the hook lacks."""

PLANTS = {
    "last row zero": "first:last row zero",
    "small half zero": "first:small half zero",
    "off by 1e-3": "first:off by 1e-3",
    "second run: off by 1e-3": "second:off by 1e-3",
    "second run: last row zero": "second:last row zero",
    "second run: one NaN": "second:one NaN",
    "other inputs: stale values": "other:stale values",
    "other inputs: off by 1e-3": "other:off by 1e-3",
    "other inputs: median element zero": "other:median element zero",
}
"""Fault of this bench -> what the hook is told."""

COARSE = ("bfloat16", "float16")

COMPUTES = {"openvino-default": "bfloat16", "qnn-htp": "float16"}
"""Target of ``matrices/local.toml`` -> the precision that it computes in by its own default."""

CPU = {"provider": "CPUExecutionProvider"}


def records_of(names: tuple[str, ...], provider: Mapping[str, object] = CPU) -> dict[tuple[str, str], Record]:
    """Return kind and model -> the record of a run, the honest target's under the kind ``""``.

    Args:
        names: The models.
        provider: What a target has beside its name and its environment.
    """
    asked = {"honest": "", **{f"fault-{index}": told for index, told in enumerate(PLANTS.values())}}
    kinds = dict(zip(asked, ("", *PLANTS), strict=True))
    own: Any = provider.get("env", {})
    targets = [
        {**provider, "name": name, "env": {**own, "PYTHONPATH": str(HOOK), "PLANTED": told}}
        for name, told in asked.items()
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for model in models():
            if model.name in names and model.name not in UNHOOKED:
                model.write(folder / "models")
        matrix = matrix_from(
            {"schema": 1, "models": {"folders": ["models"]}, "target": targets}, folder / "m.toml"
        )
        suites = open_suites(matrix)
        plan = expand(matrix, {name: suite.models() for name, suite in suites.items()})
        engine = Engine(plan, suites)
        try:
            engine.submit(plan.cells)
            engine.drain()
            records = [event.record for event in engine.events() if isinstance(event, Finished)]
        finally:
            engine.close()
        cells = {cell.id: (kinds[cell.target], cell.model.partition("/")[0]) for cell in plan.cells}
    return {cells[record.cell]: record for record in records}


def provider_of(rows: list[Row], names: tuple[str, ...], target: str) -> Provider:
    """Return what is said of a target of ``matrices/local.toml``, without and with faults."""
    table = tomllib.loads(LOCAL.read_text(encoding="utf-8"))
    found = records_of(names, next(one for one in table["target"] if one["name"] == target))
    precision = COMPUTES.get(target, "")
    known = {
        (row.kind, row.model): row
        for row in rows
        if row.effect == "visible" and (not precision or precision in row.visible_at)
    }
    honest = {model: record for (kind, model), record in found.items() if not kind}
    # Of an answer that is flushed to zeros the hook has no number to change.
    passed = {
        model
        for model, record in honest.items()
        if record.family is Family.PASSED
        if not any(row.details is not None and row.details.flushed for row in record.outputs)
    }
    visible = {key: record for key, record in found.items() if key in known and key[1] in passed}
    missed = {key: record for key, record in visible.items() if record.family is not Family.FAILED}
    documented = {
        key for key, record in missed.items() if known[key].allowed or (not precision and record.approximate)
    }
    # Names differ, so that no records are compared; cells end in any order.
    failed = sorted((name, one) for name, one in honest.items() if one.family is Family.FAILED)
    return Provider(
        name=target,
        passed=len(passed),
        failed=tuple((name, one.verdict.value, one.reason) for name, one in failed),
        precision=precision or "the model's own",
        visible=len(visible),
        missed=tuple((*key, record.verdict.value) for key, record in missed.items() if key not in documented),
        documented=len(documented),
    )


def differing(rows: list[Row], records: dict[tuple[str, str], Record]) -> tuple[int, list[str]]:
    """Return how many answers were judged both ways, and those that were judged otherwise."""
    both = [(row, records[row.kind, row.model]) for row in rows if (row.kind, row.model) in records]
    return len(both), [
        f"{row.kind} | {row.model} | here {row.verdict} | in a run {record.verdict.value}: {record.reason}"
        for row, record in both
        if record.verdict.value != row.verdict
    ]
