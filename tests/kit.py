"""What tests of several floors build and read, each with no more in it than a test is about.

In this order: records, plans and runs, models and cases, engines on the fake onnxruntime, the command in a
process of its own, and what a run wrote.
"""

import glob
import hashlib
import importlib
import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.records.cell import AXIS_DEFAULTS, Cell
from harness.core.records.cell_end import CellEnd, How
from harness.core.records.facts import Facts, Placement
from harness.core.records.record import SCHEMA, Decision, Record, decode_record, encode_record
from harness.core.records.run_info import RunInfo
from harness.core.records.verdict import Family, Phase, Verdict
from harness.core.timing.latency import Latency, latency_of
from harness.core.values.value import NamedValues, Tensor, tensor
from harness.core.verdicts.decide import decide
from harness.corpus.case import Case
from harness.corpus.model.model_facts import ModelFacts
from harness.engine.engine import Engine
from harness.engine.prepare import open_suites
from harness.engine.tasks.events import Event, Finished
from harness.plan.expand import expand
from harness.plan.expectation import Expectation, is_expected
from harness.plan.matrix import Matrix, ModelSelection, matrix_from
from harness.plan.plan import Plan
from harness.plan.selector import Selector
from harness.plan.target import Target
from harness.report.runs.merge import merge
from harness.report.runs.merged_run import MergedRun
from harness.report.runs.read import RunData
from harness.report.site import write_site
from harness.report.view import Report

FAKE = Path(__file__).parent / "engine" / "fake_onnxruntime"
FAKE_ENV = {"PYTHONPATH": str(FAKE)}
"""What makes a target's process import the fake onnxruntime."""

Capture = pytest.CaptureFixture[str]
"""What a test that reads what is printed takes as ``capsys``."""

HEAD = '<ir_version: 9, opset_import: ["" : 17]> '
MODEL = """
agraph (float[4] x) => (float[4] y, int32[4] k, float[4] z) { y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }"""
TEXTS = {
    "": MODEL,
    "big": MODEL.replace("[4]", "[500000]"),
    "shaped": """
agraph (float[4] x) => (float[4] y, int32[4] k, float[4] z) {
    y = Relu(x) k = Cast<to=6>(x) s = Shape(x) r = Reshape(x, s) z = Neg(r) }""",
    "rounded": """
agraph (float[4] x) => (float[4] y, int32[4] k, float[4] z) <float minus = {-1}> {
    y = Relu(x) k = Cast<to=6>(x) z = Mul(x, minus) }""",
}
"""The model that the fake computes, and variants of it."""


def bare_record(
    model: str,
    verdict: Verdict = Verdict.PASS,
    *,
    suite: str = "s",
    target: str = "ep",
    provider: str = "AcmeExecutionProvider",
    **fields: Any,
) -> Record:
    """Return the record of a cell without measurements; its family and id are those of the other fields.

    Args:
        model: Name of the model in the suite.
        verdict: Its verdict.
        suite: Its suite.
        target: Its target.
        provider: The target's provider.
        fields: Other fields of ``Record``.
    """
    usual: dict[str, Any] = {"cell": f"{suite}/{model}[{target}]", "expected": True, "family": verdict.family}
    return Record(
        schema=SCHEMA,
        suite=suite,
        model=model,
        target=target,
        provider=provider,
        verdict=verdict,
        **(usual | fields),
    )


def cpu_record(model: str, verdict: Verdict = Verdict.PASS, **fields: Any) -> Record:
    """Return a bare record of a model of the folder ``m`` on the CPU EP; see ``bare_record``."""
    usual: dict[str, Any] = {"suite": "m", "target": "cpu", "provider": "CPUExecutionProvider"}
    return bare_record(model, verdict, **(usual | fields))


def record(
    model: str = "test_abs",
    verdict: Verdict = Verdict.PASS,
    *,
    suite: str = "onnx-node",
    target: str = "npu",
    bits: float | None = None,
    op: str = "Abs",
    axes: dict[str, str] | None = None,
    **fields: object,
) -> Record:
    """Return the record of a cell as a run writes it, with axes, placement, one output and times.

    Args:
        model: Name of the model in the suite.
        verdict: Its verdict; a failure is unexpected.
        suite: Its suite.
        target: Its target.
        bits: ``delivered_bits`` of the output; None where it is exact.
        op: The operator of its two nodes.
        axes: Axes that are not at their default.
        fields: Other fields of ``Record``, also as plain values.
    """
    cell_axes = {**AXIS_DEFAULTS, **(axes or {})}
    cell = Cell(suite=suite, model=model, target=target, axes=tuple(sorted(cell_axes.items())))
    base: dict[str, object] = {
        "schema": SCHEMA,
        "cell": cell.id,
        "suite": suite,
        "model": model,
        "target": target,
        "provider": "NpuExecutionProvider",
        "verdict": verdict,
        "family": verdict.family,
        "expected": verdict.family is not Family.FAILED,
        "axes": cell_axes,
        "started": "2026-11-20T10:00:00Z",
        "attempt": 1,
    }
    if verdict.family is Family.PASSED or verdict is Verdict.MISMATCH:
        partial = verdict is Verdict.PASS_PARTIAL
        base["placement"] = placement_of({op: 2}, {"Gather": 1} if partial else {})
        error = 0.0 if bits is None else 2.0**-bits
        base["outputs"] = (
            OutputMetrics(
                name="y",
                dtype="float32",
                shape=(3, 4),
                max_abs=error,
                max_rel=error,
                rmse=error,
                delivered_bits=bits,
                mismatched=3 if verdict is Verdict.MISMATCH else 0,
                elements=12,
                rtol=1e-4,
                atol=1e-5,
                headroom=25.0 if verdict is Verdict.MISMATCH else 0.0 if bits is None else 0.5,
            ),
        )
        base["timings_ms"] = {"create": 1.25, "first_run": 0.5}
    return msgspec.convert({**base, **fields}, Record, from_attributes=True)


def placement_of(
    ep_ops: Mapping[str, int], cpu_ops: Mapping[str, int] | None = None, **fields: Any
) -> Placement:
    """Return a placement of these operators on the EP, in one partition if any, and on the CPU EP."""
    usual: dict[str, Any] = {"partitions": int(bool(ep_ops)), "source": "assignment"}
    counts = {"ep_nodes": sum(ep_ops.values()), "cpu_nodes": sum((cpu_ops or {}).values())}
    return Placement(ep_ops=dict(ep_ops), cpu_ops=dict(cpu_ops or {}), **(usual | counts | fields))


def told_latency(samples_ns: Sequence[Any], **changes: Any) -> dict[str, Any]:
    """Return the message of an agent about runs of these times; ``changes`` are other fields of it."""
    return {
        "samples_ns": list(samples_ns),
        "warm_up": 0,
        "stopped_by": "budget",
        "io": "copied",
        "intra_op_threads": 1,
        "inter_op_threads": 1,
        "waiting_threads": None,
        "host_peak_mib": None,
        "device_mib": None,
    } | changes


def latency(*samples_ms: float, **changes: Any) -> Latency:
    """Return the latency of runs of these times; see ``told_latency``."""
    return latency_of(told_latency([round(ms * 1e6) for ms in samples_ms], **changes))


def with_facts(record: Record) -> Record:
    """Return a record with facts that give its verdict, so that a reader finds the same."""
    verdict = record.verdict
    if verdict in _ENDED:
        how, phase = _ENDED[verdict]
        ended = CellEnd(how=how, message=record.reason)
        return msgspec.structs.replace(record, ended=ended, phase=phase, golden="")
    exact, far = ((0.0, 0.0),), ((0.0, 1e6), (1e3, 1e3))
    rows = tuple(
        msgspec.structs.replace(row, frontier=far if verdict is Verdict.MISMATCH else exact)
        for row in record.outputs
    )
    placed = placement_of({}, {"Abs": 1}) if verdict is Verdict.FALLBACK else record.placement
    made = msgspec.structs.replace(record, golden="cpu", outputs=rows, placement=placed)
    assert decide(made, Policy()).verdict is verdict
    return made


_ENDED: dict[Verdict, tuple[How, Phase]] = {
    Verdict.CRASH: ("died", Phase.CREATE),
    Verdict.HANG: ("hung", Phase.RUN),
    Verdict.ERROR: ("raised", Phase.RUN),
    Verdict.UNSUPPORTED: ("unsupported", Phase.CREATE),
    Verdict.UNAVAILABLE: ("unavailable", Phase.REGISTER),
    Verdict.INVALID_MODEL: ("broken_model", Phase.CREATE),
}


def decided_record(facts: Facts, decision: Decision) -> Record:
    """Return the record of facts and what was decided from them, written and read once."""
    fields: dict[str, Any] = {name: getattr(facts, name) for name in Facts.__struct_fields__}
    decided = {name: getattr(decision, name) for name in ("outputs", "again", "adjudication", "reason")}
    return decode_record(encode_record(cpu_record("a", decision.verdict, **(fields | decided))))


def matrix_of(records: Sequence[Record], path: str = "m.toml", required: Sequence[str] = ()) -> Matrix:
    """Return a matrix by which each record is as expected, or not, as it tells."""
    targets = {record.target: record.provider for record in records}
    entries = (
        (one, one.verdict if one.expected else Verdict.CRASH)
        for one in records
        if one.expected is not is_expected(None, one.verdict)
    )
    return Matrix(
        path=path,
        schema=1,
        models=ModelSelection(suites=tuple(dict.fromkeys(record.suite for record in records))),
        targets=tuple(
            Target(name=name, provider=(provider,), required=name in required)
            for name, provider in targets.items()
        ),
        expect=tuple(
            Expectation(
                selector=Selector(model=(glob.escape(f"{one.suite}/{one.model}"),), target=(one.target,)),
                verdicts=(verdict,),
                reason="known",
            )
            for one, verdict in entries
        ),
    )


def make_matrix(matrix: str | Mapping[str, Any], path: Path = Path("m.toml")) -> Matrix:
    """Return a matrix, given as TOML or as its tables; ``schema`` may be left out."""
    return matrix_from({"schema": 1, **(tomllib.loads(matrix) if isinstance(matrix, str) else matrix)}, path)


def of_folder(*targets: Mapping[str, Any], **tables: Any) -> dict[str, Any]:
    """Return the tables of a matrix of the models in the folder ``models``, on these targets."""
    return {"models": {"folders": ["models"]}, "target": list(targets), **tables}


def is_intel() -> bool:
    """Return whether Intel made the processor, as OpenVINO's plugin needs it; asked of the system alone."""
    found = Path("/proc/cpuinfo")
    return found.is_file() and "GenuineIntel" in found.read_text(encoding="utf-8")


def fake_target(name: str = "t", **table: Any) -> dict[str, Any]:
    """Return the table of a target that runs the fake onnxruntime; ``env`` are further variables."""
    env = {**FAKE_ENV, **table.pop("env", {})}
    return {"name": name, "provider": "CUDAExecutionProvider", "env": env, **table}


def plan_of(matrix: str | Mapping[str, Any], models: Mapping[str, Sequence[str]] | None = None) -> Plan:
    """Return the plan of a matrix, as for ``make_matrix``, and of suites: ``m/a.onnx`` unless given."""
    return expand(make_matrix(matrix), {"m": ("a.onnx",)} if models is None else models)


def run_of(  # noqa: PLR0913 - each is one thing that a run may be like
    records: Sequence[Record],
    *,
    folder: str = "run",
    planned: int | None = None,
    plan: str | None = None,
    targets: dict[str, dict[str, object]] | None = None,
    complete: bool = True,
    torn: bool = False,
    missing: Sequence[str] | None = None,
    required: Sequence[str] = (),
    matrix: Matrix | None = None,
) -> RunData:
    """Return a run; ``missing`` names planned cells without a record, and makes the plan known by name.

    Without a whole ``matrix``, a reader leaves the verdicts of its records as they are.
    """
    cells = None if missing is None else tuple(sorted({record.cell for record in records} | {*missing}))
    if cells is not None:
        plan, planned = hashlib.sha256(_listing(cells)).hexdigest(), len(cells)
    if plan is None:
        whole = complete and planned in (None, len(records))
        own = _listing(sorted(record.cell for record in records))
        plan = hashlib.sha256(own).hexdigest() if whole else "sha256:1"
    info = RunInfo(
        schema=SCHEMA,
        plan=plan,
        cells=len(records) if planned is None else planned,
        matrix=msgspec.to_builtins(matrix)
        if matrix is not None
        else {
            "path": "matrices/local.toml",
            **({"targets": [{"name": name, "required": True} for name in required]} if required else {}),
        },
        targets={record.target: {} for record in records} if targets is None else targets,
        complete=complete,
    )
    return RunData(folder=Path(folder), info=info, records=tuple(records), torn=torn, planned=cells)


def merged(records: Sequence[Record], **fields: Any) -> MergedRun:
    """Return the merge of one run; see ``run_of``."""
    return merge([run_of(records, **fields)])


def site(folder: Path, report: Report) -> dict[str, str]:
    """Write the site of a report below a folder; name of a page -> its HTML."""
    index = write_site(report, folder / "site")
    return {path.name: path.read_text(encoding="utf-8") for path in index.parent.glob("*.html")}


def write_run(folder: Path, records: Sequence[Record], **fields: Any) -> Path:
    """Write the folder of a run, and return it; see ``run_of``."""
    folder.mkdir(parents=True, exist_ok=True)
    run = run_of(records, folder=str(folder), **fields)
    (folder / "run.json").write_bytes(msgspec.json.encode(run.info))
    (folder / "records.jsonl").write_bytes(b"".join(encode_record(record) + b"\n" for record in records))
    if run.planned is not None:
        (folder / "plan.txt").write_bytes(_listing(run.planned))
    return folder


def _listing(cells: Sequence[str]) -> bytes:
    return "".join(f"{cell}\n" for cell in cells).encode()


def make_model(text: str = "") -> onnx.ModelProto:
    """Return a model in ONNX's text form, or one of ``TEXTS``; with ``HEAD`` unless it has a head."""
    text = TEXTS.get(text, text)
    return onnx.parser.parse_model(text if text.lstrip().startswith("<") else HEAD + text)


def parse(graph: str, opset: int = 26, ir: int = 13) -> bytes:
    """Return a serialized model from ONNX's text form without a head."""
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}, "ai.onnx.ml" : 3]>'
    content: bytes = make_model(f"{head} {graph}").SerializeToString()
    return content


def write_model(path: Path, text: str = "") -> Path:
    """Write a model and the folders above it; see ``make_model``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(make_model(text), path)
    return path


def model_facts(**fields: Any) -> ModelFacts:
    """Return what is known about a model without nodes; ``fields`` are what is special about it."""
    usual: dict[str, Any] = {"ir_version": 9, "opsets": {}, "nodes": 0, "op_types": {}}
    sets: dict[str, Any] = {"float_types": frozenset(), "shape_only_ops": frozenset()}
    return ModelFacts(**(usual | sets | fields))


def bare_case(**fields: Any) -> Case:
    """Return a case without inputs and outputs; ``fields`` are what is special about it."""
    usual: dict[str, Any] = {"model_path": Path("m.onnx"), "ports": (), "outputs": (), "output_types": ()}
    rest: dict[str, Any] = {"data_sets": (), "rtol": 0.0, "atol": 0.0, "digest": "d", "facts": model_facts()}
    return Case(**(usual | rest | fields))


def cpu_session(model: onnx.ModelProto | bytes | Path, *, optimized: bool = True) -> Any:
    """Return a session of a model on the CPU EP of this environment, with one thread."""
    onnxruntime: Any = importlib.import_module("onnxruntime")  # its types leave out what is used here
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    source = source if isinstance(source, bytes) else str(source)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_on_cpu(
    model: onnx.ModelProto | bytes | Path,
    feeds: Mapping[str, Any],
    names: Sequence[str] | None = None,
    *,
    optimized: bool = True,
) -> list[np.ndarray[Any, Any]]:
    """Return outputs of a model on the CPU EP of this environment, all of them or those of ``names``."""
    session = cpu_session(model, optimized=optimized)
    outputs: list[np.ndarray[Any, Any]] = session.run(None if names is None else list(names), dict(feeds))
    return outputs


def answers_on_cpu(case: Case, model: onnx.ModelProto | None = None) -> list[NamedValues]:
    """Return what the CPU EP computes for each data set of a case, from its model or another one.

    One session runs them all: a model that draws noise draws another one for each.
    """
    session = cpu_session(model or case.model_path)
    answers: list[NamedValues] = []
    for data_set in case.data_sets:
        feeds = {name: value.array for name, value in data_set.inputs if isinstance(value, Tensor)}
        answers.append(tuple(zip(case.outputs, map(tensor, session.run(None, feeds)), strict=True)))
    return answers


STARTED: list[Engine] = []
"""Engines that are closed at the end of the session."""


def start_engine(
    folder: Path,
    matrix: str | Mapping[str, Any],
    processes: int | None = 4,
    models: Mapping[str, Sequence[str]] | None = None,
) -> Engine:
    """Start an engine on the cells of a matrix; the session closes it.

    Args:
        folder: Where the matrix lies.
        matrix: It, as for ``make_matrix``.
        processes: Target processes at once; None for one for each processor.
        models: Suite -> its models that are run; None for all.
    """
    loaded = make_matrix(matrix, folder / "m.toml")
    suites = open_suites(loaded)
    uses = {name: suite.uses for name, suite in suites.items() if suite.uses}
    plan = expand(loaded, models or {name: suite.models() for name, suite in suites.items()}, uses)
    engine = Engine(plan, suites, processes=processes)
    engine.submit(plan.cells)
    engine.drain()
    STARTED.append(engine)
    return engine


def run_matrix(
    folder: Path,
    matrix: str | Mapping[str, Any],
    processes: int | None = 4,
    models: Mapping[str, Sequence[str]] | None = None,
) -> list[Event]:
    """Run a matrix to its end, as for ``start_engine``; all its events."""
    with closing(start_engine(folder, matrix, processes, models)) as engine:
        return list(engine.events())


def records_of(events: Iterable[Event]) -> list[Record]:
    """Return the records among events."""
    return [event.record for event in events if isinstance(event, Finished)]


def by_model(events: Iterable[Event]) -> dict[str, Record]:
    """Return the records among events, of one target: stem of the model's file -> record."""
    return {record.model.removesuffix(".onnx"): record for record in records_of(events)}


def harness(
    *arguments: str | Path, cwd: Path | None = None, timeout_s: float = 120, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Run ``ep-harness`` in a process of its own; ``env`` are further environment variables."""
    return subprocess.run(
        [sys.executable, "-m", "harness", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=timeout_s,
    )


def read_records(run: Path) -> list[Record]:
    """Return the records of the folder of a run, in the order in which they were written."""
    return [decode_record(line) for line in (run / "records.jsonl").read_bytes().splitlines()]


def read_rows(run: Path) -> list[dict[str, Any]]:
    """Return the records of the folder of a run as the plain JSON that other programs read."""
    return [json.loads(line) for line in (run / "records.jsonl").read_bytes().splitlines()]


def wait_for(condition: Callable[[], object], limit_s: float = 60.0) -> None:
    """Wait until a condition holds; an assertion fails if it does not in time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
