"""One run over all faults: as few processes as possible, each fault on the smallest model that shows it."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness.cli.main import main
from harness.core.record import Record, decode_record
from tests.crooked_ep.faults import faults
from tests.crooked_ep.models import small_models, write_model

PROVIDER = "CrookedExecutionProvider"
LIMITS = {"register": 10.0, "create": 5.0, "run": 5.0, "teardown": 2.0}
QUICK = {"register": 2.0, "create": 2.0, "run": 0.5, "teardown": 1.0}
"""For faults that do not return: each waits for its limit, and one that stays busy for ten times as long."""


class PlantedRun(NamedTuple):
    """A finished run."""

    code: int
    folder: Path
    records: dict[str, tuple[Record, ...]]
    """Fault -> its cells; those without a fault as ``honest``."""


def run_planted(folder: Path, library: Path) -> PlantedRun:
    """Run every fault, and every model without one; the matrix is written into the folder."""
    models = small_models()
    by_graph = [fault for fault in faults() if fault.chosen_by == "graph"]
    for fault in by_graph:
        write_model(folder / "values" / fault.name, models[fault.model], fault.name)
    # Its constants differ from those of the session before.
    write_model(
        folder / "values" / "shared_constants" / "again", models["add_constant_again"], "shared_constants"
    )
    write_model(folder / "ends" / "add", models["add"], "add")
    write_model(folder / "precision" / "matmul", models["matmul"], "precision_ignored")
    matrix = folder / "matrix.toml"
    matrix.write_text("\n".join(_matrix_text(library)), encoding="utf-8")
    code = main(["run", str(matrix), "--out", str(folder / "run"), "--no-report"])
    records = defaultdict(list)
    for line in (folder / "run" / "records.jsonl").read_bytes().splitlines():
        record = decode_record(line)
        records[_fault_of(record)].append(record)
    return PlantedRun(code, folder / "run", {name: tuple(found) for name, found in records.items()})


def _matrix_text(library: Path) -> Iterator[str]:
    yield 'schema = 1\nmodels = { folders = ["values", "ends", "precision"] }'
    by_option = [fault for fault in faults() if fault.chosen_by == "option"]
    endless = [fault.name for fault in by_option if fault.action in {"hang", "spin"}]
    yield from _target(library, "honest", "values")
    yield from _target(library, "by-graph", "values", options={"fault": "graph"})
    yield from _target(
        library,
        "by-option",
        "ends",
        workers=2,
        axes={"option.fault": [fault.name for fault in by_option if fault.name not in endless]},
    )
    yield from _target(
        library, "endless", "ends", workers=2, timeouts_s=QUICK, axes={"option.fault": endless}
    )
    yield from _target(
        library,
        "precision_ignored",
        "precision",
        options={"fault": "precision_ignored"},
        axes={"option.precision": ["fp32", "fp16"]},
    )
    for fault in faults():
        if fault.chosen_by == "environment":
            limits = QUICK if fault.action == "hang" else LIMITS
            variable = {"CROOKED_EP_FAULT": fault.name}
            yield from _target(library, fault.name, "ends", env=variable, timeouts_s=limits)


def _target(library: Path, name: str, suite: str, **fields: Any) -> Iterator[str]:
    """Yield a target, and that it runs the models of one folder alone."""
    table = {"name": name, "provider": PROVIDER, "plugin": str(library), "timeouts_s": LIMITS} | fields
    yield "[[target]]"
    yield from (f"{key} = {_toml(value)}" for key, value in table.items())
    others = [other for other in ("values", "ends", "precision") if other != suite]
    yield f"[[exclude]]\ntarget = {_toml(name)}\nsuite = {_toml(others)}"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ %s }" % ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items())
    return json.dumps(value)


def _fault_of(record: Record) -> str:
    if record.target == "by-graph":
        return record.model.partition("/")[0]
    return record.axes.get("option.fault", record.target)
