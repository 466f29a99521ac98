import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from harness.core.cell import AXIS_DEFAULTS, Cell
from harness.core.facts import Placement
from harness.core.fault import (
    Condition,
    Confirmation,
    Fault,
    GraphNode,
    GraphTensor,
    Location,
    ReducedModel,
    Signature,
    encode_fault,
)
from harness.core.output_metrics import OutputMetrics
from harness.core.record import SCHEMA, Record, encode_record
from harness.core.run_info import RunInfo
from harness.core.verdict import Family, Verdict
from harness.plan.matrix import Matrix
from harness.report.merge import MergedRun, merge
from harness.report.read import RunData
from harness.report.site import write_site
from harness.report.view import Report

MakeRecord = Callable[..., Record]
MakeRun = Callable[..., RunData]
MakeFault = Callable[..., Fault]
WriteRun = Callable[..., Path]
Site = Callable[[Report], dict[str, str]]


def make_record(
    model: str = "test_abs",
    target: str = "npu",
    verdict: Verdict = Verdict.PASS,
    *,
    suite: str = "onnx-node",
    bits: float | None = None,
    op: str = "Abs",
    axes: dict[str, str] | None = None,
    **fields: object,
) -> Record:
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
        base["placement"] = Placement(
            ep_nodes=2,
            cpu_nodes=int(partial),
            ep_ops={op: 2},
            cpu_ops={"Gather": 1} if partial else {},
            partitions=1,
            source="assignment",
        )
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


def make_run(  # noqa: PLR0913 - each is one thing that a run may be like
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
    """A run; ``missing`` names planned cells without a record, and makes the plan known by name.

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


def make_fault(identity: str = "F0000000001", *cells: str, **fields: object) -> Fault:
    """A fault with something of everything that is usual; ``fields`` replace its own."""
    told = cells or ("onnx-node/bad[npu]",)
    fault = Fault(
        id=identity,
        sentence="Npu 1.2 computes Conv wrongly for float32.",
        signature=Signature(verdict=Verdict.MISMATCH, message="first run"),
        target="npu",
        provider="NpuExecutionProvider",
        representative=told[0],
        cells=told,
        confirmation=Confirmation(outcome="always", trials=5, failures=5),
        location=Location(nodes=("conv_7",), op_types=("Conv",), exact=True, alone=True, cumulative=True),
        reduced=ReducedModel(
            nodes=(
                GraphNode(
                    name="n0",
                    op_type="Conv",
                    inputs=("x", "w"),
                    outputs=("t",),
                    attributes={"group": "2"},
                    guilty=True,
                ),
                GraphNode(name="n1", op_type="Relu", inputs=("t",), outputs=("y",)),
            ),
            tensors=(
                GraphTensor(name="x", role="input", dtype="float32", shape="1x4x5x5"),
                GraphTensor(name="w", role="initializer", dtype="float32", shape="4x2x3x3"),
                GraphTensor(name="t", role="inner", dtype="float32", shape="1x4x3x3"),
                GraphTensor(name="y", role="output", dtype="float32", shape="1x4x3x3"),
            ),
            bytes=500,
            nodes_before=70,
            bytes_before=1_000_000,
            opsets={"": 21},
            weights="single",
        ),
        conditions=(
            Condition(kind="graph_optimization", value="basic", fails=True),
            Condition(kind="graph_optimization", value="disabled", fails=False, verdict="pass"),
            Condition(kind="dtype", value="float16", verdict="invalid_model"),
        ),
        bundle=identity,
        trials=26,
        seconds=3.4,
        onnxruntime="1.31.1",
        library="1.2",
    )
    return msgspec.structs.replace(fault, **fields)


def write_triage(run: Path, *faults: Fault) -> Path:
    """Write the triage of a run, with an archive for each fault that names one."""
    folder = run / "triage"
    folder.mkdir(exist_ok=True)
    (folder / "faults.jsonl").write_bytes(b"".join(encode_fault(fault) + b"\n" for fault in faults))
    for fault in faults:
        if fault.bundle.isalnum():
            (folder / f"{fault.bundle}.zip").write_bytes(b"PK" + fault.bundle.encode())
    return folder


def _listing(cells: Sequence[str]) -> bytes:
    return "".join(f"{cell}\n" for cell in cells).encode()


@pytest.fixture
def record() -> MakeRecord:
    return make_record


@pytest.fixture
def fault() -> MakeFault:
    return make_fault


@pytest.fixture
def triaged() -> Callable[..., Path]:
    return write_triage


@pytest.fixture(scope="module")
def module_fault() -> MakeFault:
    """``fault``, for fixtures that serve a whole module."""
    return make_fault


@pytest.fixture(scope="module")
def module_triaged() -> Callable[..., Path]:
    """``triaged``, for fixtures that serve a whole module."""
    return write_triage


@pytest.fixture
def run_of() -> MakeRun:
    return make_run


@pytest.fixture
def merged() -> Callable[..., MergedRun]:
    def build(records: Sequence[Record], **fields: object) -> MergedRun:
        return merge([make_run(records, **fields)])  # type: ignore[arg-type]

    return build


def write_folder(folder: Path, records: Sequence[Record], **fields: object) -> Path:
    folder.mkdir(parents=True)
    run = make_run(records, folder=str(folder), **fields)  # type: ignore[arg-type]
    (folder / "run.json").write_bytes(msgspec.json.encode(run.info))
    lines = b"".join(encode_record(record) + b"\n" for record in records)
    (folder / "records.jsonl").write_bytes(lines)
    if run.planned is not None:
        (folder / "plan.txt").write_bytes(_listing(run.planned))
    return folder


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    return lambda name, records, **fields: write_folder(tmp_path / name, records, **fields)


@pytest.fixture(scope="module")
def module_record() -> MakeRecord:
    """``record``, for fixtures that serve a whole module."""
    return make_record


@pytest.fixture(scope="module")
def module_run(tmp_path_factory: pytest.TempPathFactory) -> WriteRun:
    """``write_run``, for fixtures that serve a whole module."""
    home = tmp_path_factory.mktemp("runs")
    return lambda name, records, **fields: write_folder(home / name, records, **fields)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Writes the site of a report; file -> content."""

    def write(report: Report) -> dict[str, str]:
        index = write_site(report, tmp_path / "site")
        return {path.name: path.read_text(encoding="utf-8") for path in index.parent.glob("*.html")}

    return write
