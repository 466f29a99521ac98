"""How the events of profiles become the times of nodes."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.agent.profiled_runs import events_of_runs, node_sums
from harness.core.timing.node_times import NodeTimes, by_operator, middle, time_words
from harness.core.values.value import tensor
from tests.kit import parse

NPU = {"npu"}


def node(
    name: str, ts: int, dur: int, provider: str = "npu", op: str = "Relu", **more: Any
) -> dict[str, Any]:
    arguments = {"provider": provider, "op_name": op, **more}
    return {
        "cat": "Node",
        "ph": "X",
        "tid": 1,
        "name": f"{name}_kernel_time",
        "ts": ts,
        "dur": dur,
        "args": arguments,
    }


def run(ts: int, dur: int, before: int = 0) -> list[dict[str, Any]]:
    inner = {"name": "SequentialExecutor::Execute", "ts": ts + before, "dur": dur - before}
    return [
        {"cat": "Session", "ph": "X", **each} for each in ({"name": "model_run", "ts": ts, "dur": dur}, inner)
    ]


def times_of(*sessions: list[dict[str, Any]], count: int = 1) -> NodeTimes:
    told = node_sums([events_of_runs(events, count, NPU) for events in sessions])
    return msgspec.convert(told, NodeTimes, strict=False)


def test_a_run_divides_into_its_parts_and_the_boundary_with_copies_is_found() -> None:
    events = [
        *run(0, 1000, before=100),
        node("first", 100, 300, output_size="64"),
        node("copy", 410, 200, op="MemcpyToHost", output_size="4096"),
        node("odd", 620, 80, "CPUExecutionProvider", "Det"),
        node("last", 705, 195),
    ]
    times = times_of(events, events)
    parts = {part: middle(ms) for part, ms in times.parts.items()}
    assert parts == {"ep": 0.495, "cpu": 0.08, "copy": 0.2, "outside": 0.1, "between": 0.125}
    assert sum(parts.values()) == pytest.approx(times.total_ms)
    assert times.boundary_count == 2
    first = times.boundaries[0]
    assert (first.after, first.before, first.ms, first.copies, first.nbytes) == (
        "first",
        "odd",
        (0.22, 0.22),
        1,
        4096,
    )


def test_runs_that_do_not_count_are_left_out() -> None:
    events = [*run(0, 900), node("a", 0, 900), *run(1000, 100), node("a", 1000, 90)]
    assert times_of(events).run_ms == (0.1,)


def test_a_loop_does_not_count_the_nodes_of_its_body_twice() -> None:
    events = [
        *run(0, 100),
        node("loop", 0, 100, op="Loop"),
        node("body", 10, 40),
        node("body", 55, 40),
    ]
    found = {one.node: one.ms for one in times_of(events).nodes}
    assert found == {"loop": (0.02,), "body": (0.08,)}


def test_kernels_of_a_partition_are_its_operators_and_the_rest_is_its_own() -> None:
    kernel = {"cat": "Kernel", "ph": "X", "name": "OV::c1", "ts": 20, "dur": 60}
    events = [
        *run(0, 100),
        node("npu_1234567_0_0", 0, 100, op="npu_1234567_0"),
        {
            **kernel,
            "args": {"ov_node_type": "Convolution", "parent_ort_event_name": "npu_1234567_0_0_kernel_time"},
        },
    ]
    sums = {name: ms for name, (ms, _) in by_operator(times_of(events)).items()}
    whole = "compiled partition, outside of its kernels"
    assert {name: round(ms[0], 6) for name, ms in sums.items()} == {"Convolution": 0.06, whole: 0.04}


def test_a_convolution_is_named_with_the_size_of_its_kernel() -> None:
    shapes = [{"float": [1, 8, 32, 32]}, {"float": [16, 8, 3, 5]}, {"float": [16]}]
    times = times_of([*run(0, 10), node("c", 0, 10, op="FusedConv", input_type_shape=shapes)])
    assert times.nodes[0].op == "FusedConv 3x5"


def test_a_provider_that_takes_everything_but_is_waited_for_outside_of_its_nodes() -> None:
    times = times_of([*run(0, 1000, before=900), node("a", 950, 20), node("b", 970, 20)])
    assert time_words(times) == "1 ms a run: 90% inputs, outputs and waiting"


def test_the_smallest_nodes_of_a_huge_model_are_one_sum() -> None:
    events = [*run(0, 5000), *(node(f"n{at}", 2 * at, 1 + (at >= 300)) for at in range(2300))]
    times = times_of(events)
    assert (len(times.nodes), times.left_out, times.left_out_ms) == (2000, 300, 0.3)


@pytest.mark.real_ep
def test_one_node_that_does_most_of_the_work_is_named_with_its_share(serve: Callable[..., Any]) -> None:
    text = "g (float[256, 256] x) => (float[256, 256] y) { a = Relu(x) b = MatMul(a, x) y = Neg(b) }"
    model = parse(text.replace("b = MatMul", "[heavy] b = MatMul"))
    values = {"x": tensor(np.ones((256, 256), np.float32))}
    result = serve(model, values, latency={"warm_up": 2, "repeats": 10, "budget_s": 60.0, "nodes": True})
    times = msgspec.convert(result["node_times"], NodeTimes)
    assert (times.problem, times.runs, len(times.run_ms), len(times.create_ms)) == ("", 30, 3, 3)
    assert times.first_processor_ms is not None
    largest = max(times.nodes, key=lambda one: middle(one.ms))
    assert (largest.node, largest.op) == ("heavy", "MatMul")
    assert middle(largest.ms) > 0.5 * times.total_ms
    assert "MatMul; the largest node is heavy (" in time_words(times)
