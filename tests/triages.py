"""Faults, and the triage of a run as ``ep-harness triage`` writes it."""

from pathlib import Path

import msgspec

from harness.core.records.fault import (
    Condition,
    Fault,
    GraphNode,
    GraphTensor,
    Location,
    ReducedModel,
    Repetition,
    Signature,
    encode_fault,
)
from harness.core.records.verdict import Verdict


def fault(identity: str = "F0000000001", *cells: str, **fields: object) -> Fault:
    """Return a fault with something of everything that is usual; ``fields`` replace its own."""
    told = cells or ("onnx-node/bad[npu]",)
    usual = Fault(
        id=identity,
        sentence="Npu 1.2 computes Conv wrongly for float32.",
        signature=Signature(verdict=Verdict.MISMATCH, message="first run"),
        target="npu",
        provider="NpuExecutionProvider",
        representative=told[0],
        cells=told,
        confirmation=Repetition(outcome="always", trials=5, failures=5),
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
    return msgspec.structs.replace(usual, **fields)


def write_triage(run: Path, *faults: Fault) -> Path:
    """Write the triage of a run, with an archive for each fault that names one."""
    folder = run / "triage"
    folder.mkdir(exist_ok=True)
    (folder / "faults.jsonl").write_bytes(b"".join(encode_fault(one) + b"\n" for one in faults))
    for one in faults:
        if one.bundle.isalnum():
            (folder / f"{one.bundle}.zip").write_bytes(b"PK" + one.bundle.encode())
    return folder
