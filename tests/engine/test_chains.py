"""Chains of providers: which of them took which nodes, and what fell along the chain."""

import os

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from tests.kit import FAKE_ENV, of_folder, records_of, run_matrix, write_model

TENSORRT, CUDA, CPU = "TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"
SHARED = f"67% of the work, 2 of 3 nodes on the EP; left to {CUDA}: Cast; left to the CPU: Neg"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake is for POSIX systems")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Record]:
    home = tmp_path_factory.mktemp("chains")
    for number, fault in enumerate(("exact", "chained", "chained_partly", "placed_nowhere")):
        write_model(home / "models" / f"{number}_{fault}.onnx")
    env = {**FAKE_ENV, "FAKE_PROVIDERS": TENSORRT}
    chain = [TENSORRT, CUDA, CPU]
    targets = [
        {"name": "chain", "provider": chain, "env": env},
        {"name": "profiled", "provider": chain, "env": {**env, "FAKE_VERSION": "1.24.1"}},
        {"name": "two", "provider": [CUDA, CPU], "env": env},
    ]
    exclude = [{"target": "two", "model": "*chained*"}]
    matrix = of_folder(*targets, exclude=exclude)
    events = run_matrix(home, matrix)
    records = records_of(events)
    return {
        (record.target, record.model.partition("_")[2].removesuffix(".onnx")): record for record in records
    }


@pytest.mark.parametrize("target", ["chain", "profiled"])
@pytest.mark.parametrize(
    ("model", "nodes", "verdict", "reason"),
    [
        ("exact", [3, 0, 0], Verdict.PASS, ""),
        ("chained", [1, 2, 0], Verdict.PASS, f"left to {CUDA}: Cast, Neg"),
        ("chained_partly", [1, 1, 1], Verdict.PASS_PARTIAL, SHARED),
        ("placed_nowhere", [0, 0, 3], Verdict.FALLBACK, "no node ran on the EP; on the CPU: Cast, Neg, Relu"),
    ],
)
def test_each_provider_has_its_share(
    found: dict[tuple[str, str], Record],
    target: str,
    model: str,
    nodes: list[int],
    verdict: Verdict,
    reason: str,
) -> None:
    record = found[target, model]
    assert (record.verdict, record.reason) == (verdict, reason)
    assert record.placement is not None
    assert list(record.placement.providers.items()) == list(zip((TENSORRT, CUDA, CPU), nodes, strict=True))
    assert record.placement.ep_nodes == nodes[0] + nodes[1]
    assert record.placement.cpu_nodes == nodes[2]
    assert list(record.placement.chain_ops) == [TENSORRT, CUDA]
    assert sum(record.placement.chain_ops[CUDA].values()) == nodes[1]


def test_a_provider_alone_has_no_shares(found: dict[tuple[str, str], Record]) -> None:
    record = found["two", "exact"]
    assert record.placement is not None
    assert (record.placement.providers, record.placement.chain_ops) == ({}, {})
