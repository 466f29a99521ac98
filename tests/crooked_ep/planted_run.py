"""One run over all faults: as few processes as possible, each fault on the smallest model that shows it."""

import functools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.catalog.option_points import OptionPoints
from harness.cli.main import main
from harness.core.findings.leak import cell_leaks
from harness.core.records.record import Record
from harness.core.records.run_info import RunInfo
from harness.core.records.verdict import Family
from harness.report.runs.read import read_run
from tests.crooked_ep.faults import COMPILED, LIFE, SCENARIOS, Planted, faults
from tests.crooked_ep.models import small_models, write_model
from tests.kit import read_records

PROVIDER = "CrookedExecutionProvider"
LIMITS = {"register": 10.0, "create": 10.0, "run": 10.0, "teardown": 10.0}
"""For faults that return: a busy machine takes its time."""
QUICK = {"register": 2.0, "create": 2.0, "run": 0.5, "teardown": 1.0}
"""For faults that do not return: each waits for its limit."""
FOLDERS = ["values", "ends", "precision", "compiled"]
NPU = {"type": "NPU"}
"""The library's second device, which has memory of its own."""
SESSIONS = 24
"""Enough for a leak to be told."""
_BY_OPTION: dict[str, tuple[str, dict[str, float], dict[str, list[str]]]] = {
    "ends": ("ends", LIMITS, {}),
    "endless": ("ends", QUICK, {}),
    "leaks": ("ends", LIMITS, {"scenario": ["sessions"]}),
    "compiled": ("compiled", LIMITS, {"scenario": ["ep_context"]}),
}
"""Target whose axis chooses its faults -> the folder of its models, its limits, its other axes."""


class PlantedRun(NamedTuple):
    """A finished run.

    Attributes:
        code: Its exit code.
        info: Its ``run.json``.
        records: Fault -> its cells; those without a fault as ``honest``.
    """

    code: int
    info: RunInfo
    records: dict[str, tuple[Record, ...]]

    def told(self, fault: str) -> set[str]:
        """Return what is told of a fault: verdicts of its cells and of its target, and marks beside them."""
        records = self.records[fault]
        points = OptionPoints()
        for record in records:
            points.add(record)
        marks = {
            "weak": any(record.weak_golden for record in records),
            "manners": any(record.manners for record in records),
            "leak": any(map(cell_leaks, records)),
            "inert": any(points.silent(fault)),
        }
        told = {str(record.verdict) for record in records} | {f"mark:{mark}" for mark in marks if marks[mark]}
        exits = self.info.exits.get(fault)  # of the target that has the fault's name, if any
        return told | ({str(exits.verdict)} if exits is not None and exits.verdict is not None else set())

    def worst(self, fault: str) -> Record:
        """Return the record that fails, if any: a fault may spoil one of several cells alone."""
        records = self.records[fault]
        failed = (record for record in records if record.verdict.family is Family.FAILED)
        return next(failed, records[0])


def run_planted(
    folder: Path,
    library: Path,
    chosen: Sequence[Planted] | None = None,
    runtime: Mapping[str, Any] | None = None,
) -> PlantedRun:
    """Run every fault, or the chosen ones, and every model without one; ``runtime`` is that of each target.

    The matrix is written into the folder.
    """
    planted = faults() if chosen is None else chosen
    models = small_models()
    for fault in planted:
        if fault.chosen_by == "graph":
            write_model(folder / "values" / fault.name, models[fault.model], fault.name)
    # Other constants than those of the session before.
    again = folder / "values" / "shared_constants" / "again"
    write_model(again, models["add_constant_again"], "shared_constants")
    write_model(folder / "ends" / "add", models["add"], "add")
    for name in ("matmul", "gemm", "add"):
        write_model(folder / "precision" / name, models[name], name)
    for name in ("add", "gemm", "chain"):
        write_model(folder / "compiled" / name, models[name], name)
    matrix = folder / "matrix.toml"
    matrix.write_text("\n".join(_matrix_text(library, planted, dict(runtime or {}))), encoding="utf-8")
    code = main(["run", str(matrix), "--out", str(folder / "run"), "--no-report"])
    records = defaultdict(list)
    for record in read_records(folder / "run"):
        records[_fault_of(record)].append(record)
    info = read_run(folder / "run").info
    return PlantedRun(code, info, {name: tuple(found) for name, found in records.items()})


def _matrix_text(library: Path, planted: Sequence[Planted], runtime: dict[str, Any]) -> Iterator[str]:
    yield f"""schema = 1
models = {{ folders = {json.dumps(FOLDERS)} }}
scenarios = {{ sessions = {{ count = {SESSIONS} }} }}"""
    target = functools.partial(_target, library, runtime=runtime)
    yield from target("honest", "values")
    yield from target("by-graph", "values", options={"fault": "graph"})
    axes = {"scenario": ["plain", "ep_context", "lifecycle"]}
    yield from target("honest-npu", "compiled", device=NPU, axes=axes)
    # It is about the library, and starts seven processes: one model will do.
    yield '[[exclude]]\ntarget = "honest-npu"\nscenario = "lifecycle"\nmodel = ["*/chain/*", "*/gemm/*"]'
    chosen: dict[str, list[str]] = {"ends": [], "endless": [], "leaks": [], "compiled": [], "devices": []}
    in_scenario: defaultdict[str, list[str]] = defaultdict(list)
    for fault in planted:
        alone = {"timeouts_s": QUICK if fault.action == "hang" else LIMITS}
        if fault.chosen_by == "environment":
            variable = {"CROOKED_EP_FAULT": fault.name}
            played = {"axes": {"scenario": ["lifecycle"]}} if fault.place in LIFE else {}
            yield from target(fault.name, "ends", env=variable, **alone, **played)
        elif fault.told == "mark:inert":
            axes = {"option.precision": ["fp32", "fp16"]}
            yield from target(fault.name, "precision", options={"fault": fault.name}, axes=axes)
        elif fault.told == "unclean_exit":  # of a target
            yield from target(fault.name, "ends", options={"fault": fault.name}, **alone)
        elif fault.place in SCENARIOS:
            in_scenario[SCENARIOS[fault.place]].append(fault.name)
        elif fault.chosen_by == "option":
            chosen[_run_of(fault)].append(fault.name)
    for scenario, names in in_scenario.items():
        axes = {"option.fault": ["none", *names], "scenario": [scenario]}
        options = {"options": {"enable_graph_capture": "0"}} if scenario == "capture" else {}
        yield from target(f"in-{scenario}", "ends", workers=2, axes=axes, **options)
    for name in filter(chosen.get, _BY_OPTION):
        suite, limits, scenario_axis = _BY_OPTION[name]
        axes = {"option.fault": chosen[name], **scenario_axis}
        yield from target(name, suite, workers=2, timeouts_s=limits, axes=axes)
    for fault_name in chosen["devices"]:
        device = {} if fault_name == "other_device" else {"device": NPU}
        yield from target(fault_name, "ends", options={"fault": fault_name}, **device)


def _run_of(fault: Planted) -> str:
    """Return which target shows a fault that an option switches on."""
    if fault.place == "COPY":
        return "devices"
    if fault.place in COMPILED:
        return "compiled"
    if fault.told == "mark:leak":
        return "leaks"
    return "endless" if fault.action in {"hang", "spin"} else "ends"


def _target(library: Path, name: str, suite: str, **fields: Any) -> Iterator[str]:
    """Yield a target, and that it runs the models of one folder alone."""
    table = {"name": name, "provider": PROVIDER, "plugin": str(library), "timeouts_s": LIMITS} | fields
    yield "[[target]]"
    yield from (f"{key} = {toml(value)}" for key, value in table.items())
    others = [other for other in FOLDERS if other != suite]
    yield f"[[exclude]]\ntarget = {toml(name)}\nsuite = {toml(others)}"


def toml(value: Any) -> str:
    """Return a value as TOML has it in one line."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return f"{{ {', '.join(f'{json.dumps(key)} = {toml(each)}' for key, each in value.items())} }}"


def _fault_of(record: Record) -> str:
    if record.target == "by-graph":
        return record.model.partition("/")[0]
    return record.axes.get("option.fault", record.target)
