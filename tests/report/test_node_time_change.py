"""Which operators are told as slower or faster between two runs: never equal ones."""

import re

import msgspec
import numpy as np

from harness.core.timing.node_times import NodeTime, NodeTimes
from harness.report.changes.diff import compare_merged
from harness.report.changes.node_time_change import node_time_changes
from harness.report.runs.merged_run import MergedRun
from tests.kit import latency, merged, record

SIZES = {"Conv 3x3": (0.9, 0.5), "Conv 1x1": (0.4, 0.3), "Relu": (0.1, 0.08), "MatMul": (1.2,)}
"""Operator -> the times of its nodes, in milliseconds."""


def times(
    chance: np.random.Generator,
    factors: dict[str, float] | None = None,
    noise: float = 0.01,
    **changes: object,
) -> NodeTimes:
    """The times of a run: three sessions of one process, which itself differs by the usual 3 %."""
    nodes = []
    for op, sizes in SIZES.items():
        own = chance.normal(0, 0.03)
        for index, ms in enumerate(sizes):
            factor = (factors or {}).get(f"{op}/{index}", (factors or {}).get(op, 1.0))
            sessions = tuple(ms * factor * (1 + own + chance.normal(0, noise)) for _ in range(3))
            node = NodeTime(node=f"{op}/{index}", op=op, side="ep", ms=sessions, low_ms=ms, high_ms=ms)
            nodes.append(node)
    run = tuple(map(sum, zip(*(node.ms for node in nodes), strict=True)))
    told = NodeTimes(runs=90, run_ms=run, parts={"ep": run}, nodes=tuple(nodes), waiting_threads=0.0)
    return msgspec.structs.replace(told, **changes)


def sentence(before: NodeTimes, after: NodeTimes) -> str:
    return node_time_changes({"cell": (before, after)}).get("cell", "")


def test_one_slower_operator_is_named_and_the_others_are_equal() -> None:
    chance = np.random.default_rng(1)
    found = sentence(times(chance), times(chance, {"Conv 3x3": 1.3}))
    assert re.fullmatch(
        r"Conv 3x3 \d\d% slower \(1\.\d+ ms became 1\.\d+ ms\), all others equal within noise", found
    ), found


def test_the_node_that_makes_most_of_it_is_named() -> None:
    chance = np.random.default_rng(2)
    assert ", most of it at Conv 3x3/0" in sentence(times(chance), times(chance, {"Conv 3x3/0": 1.6}))


def test_everything_slower_is_one_sentence() -> None:
    chance = np.random.default_rng(3)
    assert sentence(times(chance), times(chance, dict.fromkeys(SIZES, 1.5))).startswith(
        "all 4 operators slower, by "
    )


def test_equal_builds_give_no_sentence() -> None:
    chance = np.random.default_rng(4)
    cells = {f"cell {index}": (times(chance), times(chance)) for index in range(100)}
    assert len(node_time_changes(cells)) <= 1


def test_a_slower_run_that_other_programs_disturbed_gives_no_sentence() -> None:
    chance = np.random.default_rng(5)
    assert sentence(times(chance), times(chance, {"MatMul": 1.5}, waiting_threads=0.5)) == ""
    assert "faster" in sentence(times(chance), times(chance, {"MatMul": 0.6}, waiting_threads=0.5))


def test_noise_of_the_sessions_hides_a_change() -> None:
    chance = np.random.default_rng(6)
    assert sentence(times(chance, noise=0.3), times(chance, {"MatMul": 1.3}, noise=0.3)) == ""


def test_a_fusion_that_is_gone_is_told_beside_a_change() -> None:
    chance = np.random.default_rng(7)
    after = times(chance, {"Conv 3x3": 1.5})
    renamed = [msgspec.structs.replace(one, op="Gemm") if one.op == "MatMul" else one for one in after.nodes]
    after = msgspec.structs.replace(after, nodes=tuple(renamed))
    assert sentence(times(chance), after).endswith("; now with Gemm, no longer with MatMul")


def test_diff_tells_it_of_the_cell() -> None:
    chance = np.random.default_rng(8)

    def run(factor: float, machine: str = "x86_64") -> MergedRun:
        told = record("a", latency=latency(*[2.0] * 20), node_times=times(chance, {"MatMul": factor}))
        return merged([told], targets={"npu": {"machine": machine}})

    diff = compare_merged(run(1.0), run(1.4), names=("old", "new"))
    (change,) = diff.changes
    (fact,) = change.facts
    assert fact.startswith("MatMul 4")
    assert not compare_merged(run(1.0), run(1.4, "aarch64"), names=("old", "new")).changes
