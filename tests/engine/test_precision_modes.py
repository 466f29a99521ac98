"""The precision axis in a run: modes reach the process and decide the tolerance, or are declared."""

import os
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.engine.tasks.configuration import Configuration, configuration
from harness.engine.tasks.events import Event, TargetReady
from harness.engine.workers.process_pool import ProcessPool
from harness.engine.workers.queues import TaskQueue
from tests.kit import (
    FAKE_ENV,
    fake_target,
    of_folder,
    plan_of,
    records_of,
    run_matrix,
    start_engine,
    write_model,
)

CPU, CUDA, DNNL = "CPUExecutionProvider", "CUDAExecutionProvider", "DnnlExecutionProvider"
posix = pytest.mark.skipif(os.name != "posix", reason="the fake is for POSIX systems")


def configured(**target: Any) -> list[Configuration]:
    table = {"schema": 1, "models": {"suites": ["s"]}, "target": [{"name": "t", **target}]}
    plan = plan_of(table, {"s": ["m"]})
    return [configuration(plan.target("t"), cell) for cell in plan.cells]


def test_a_mode_becomes_part_of_the_configuration() -> None:
    (cpu,) = configured(provider=CPU, axes={"precision": ["ep:bf16-fastmath"]})
    assert cpu.session == (("mlas.enable_gemm_fastmath_arm64_bfloat16", "1"),)
    assert cpu.message([])["session"] == dict(cpu.session)
    (dnnl,) = configured(provider=DNNL, env={"A": "1"}, axes={"precision": ["ep:bf16-on-AVX512"]})
    assert dnnl.env == (("A", "1"), ("ORT_DNNL_USE_ALL_BF16_HW", "1"))
    plain, strict = configured(
        provider=CUDA, options={"device_id": 1}, axes={"precision": ["fp32", "ep:fp32-strict"]}
    )
    assert plain.options == (("device_id", "1"),)
    assert strict.options == (("device_id", "1"), ("use_tf32", "0"))


def test_an_option_axis_wins_over_the_mode() -> None:
    axes = {"precision": ["ep:fp32-strict"], "option.use_tf32": ["1"]}
    (found,) = configured(provider=CUDA, options={"use_tf32": "0"}, axes=axes)
    assert found.options == (("use_tf32", "1"),)


@posix
def test_the_axis_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_workers, started = ProcessPool.start_workers, set()

    def watched(pool: ProcessPool, queue: TaskQueue) -> None:
        started.add(queue.name)
        start_workers(pool, queue)

    monkeypatch.setattr(ProcessPool, "start_workers", watched)
    write_model(tmp_path / "models" / "1_rounds.onnx")
    targets = [
        {"name": "cpu", "provider": CPU, "env": FAKE_ENV},
        fake_target("cuda"),
        fake_target("nothing", axes={"precision": ["ep:int8"]}),
    ]
    axes = {"precision": ["fp32", "ep:bf16-fastmath"]}
    by_table = [{"table_only": True}]
    matrix = of_folder(*targets, axes=axes, tolerance=by_table)
    engine = start_engine(tmp_path, matrix)
    events: list[Event] = list(engine.events())
    found = {(record.target, record.axes["precision"]): record for record in records_of(events)}
    assert found["cpu", "fp32"].verdict is Verdict.PASS
    fast = found["cpu", "ep:bf16-fastmath"]
    # An error of 0.4 % would be a mismatch in float32.
    assert (fast.verdict, output(fast).rtol) == (Verdict.PASS, 1e-2)
    assert output(found["cpu", "fp32"]).rtol == 1e-4
    assert fast.effect is not None
    assert (fast.effect.options, fast.effect.seen) == (("ep:bf16-fastmath",), True)
    for declared in (found["cuda", "ep:bf16-fastmath"], found["nothing", "ep:int8"]):
        assert (declared.verdict, declared.family) == (Verdict.DECLARED, Family.SKIPPED)
        assert declared.expected
        assert declared.reason.startswith("CUDAExecutionProvider has no ep:")
        assert (declared.attempt, declared.started, declared.process) == (0, "", None)
    # Nothing is started for a target of which nothing can be tried.
    assert {event.target for event in events if isinstance(event, TargetReady)} == {"cpu", "cuda"}
    # References are asked only where the cache has no answer of theirs yet.
    assert started - {"references"} == {"cpu", "cuda"}


@posix
def test_a_target_is_described_by_its_own_options(tmp_path: Path) -> None:
    """A run that is continued may begin with another precision, in the same environment."""
    write_model(tmp_path / "models" / "1_exact.onnx")
    axes = {"precision": ["ep:fp32-strict"], "option.cudnn_conv_algo_search": ["DEFAULT"]}
    only = fake_target(options={"device_id": 0}, axes=axes)
    events = run_matrix(tmp_path, of_folder(only))
    (ready,) = [event for event in events if isinstance(event, TargetReady)]
    assert ready.fingerprint["options"] == {"device_id": "0"}


def output(record: Record) -> Any:
    return next(output for output in record.outputs if output.name == "z")
