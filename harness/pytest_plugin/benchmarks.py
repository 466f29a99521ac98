"""Measured cells as benchmarks of pytest-benchmark, if that is installed.

Its plugin keeps a session in ``config._benchmarksession``, and makes a ``Metadata`` of each fixture that
measures. The engine measures in other processes, so here ``Metadata`` is made from records.
"""

import importlib
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from harness.core.record import Record


def why_not_measured(config: pytest.Config) -> str:
    """Return why this session measures no latency although a matrix requests it; empty if it measures."""
    if hasattr(config, "workerinput") or getattr(config.option, "dist", "no") != "no":
        return "xdist's workers would disturb each other"
    if getattr(getattr(config, "_benchmarksession", None), "disabled", False):
        return "--benchmark-disable"
    return ""


def add_benchmark(config: pytest.Config, matrix: str, record: Record) -> None:
    """Give pytest-benchmark a record's latency; do nothing if it is absent or disabled.

    ``matrix`` is the node id of the matrix file.
    """
    session = getattr(config, "_benchmarksession", None)
    latency = record.latency
    if session is None or session.disabled or latency is None:
        return
    stats: Any = importlib.import_module("pytest_benchmark.stats")  # which has no types
    measured = msgspec.structs.asdict(latency)
    samples_ms = measured.pop("samples_ms")
    benchmark = stats.Metadata(
        SimpleNamespace(
            name=record.cell,
            fullname=f"{matrix}::{record.cell}",  # by which runs are compared
            group=f"{record.suite}/{record.model}",  # so that a table compares the targets of a model
            param=record.cell.partition("[")[2].removesuffix("]"),
            params={"target": record.target, **record.axes},  # for --benchmark-group-by=param:target
            extra_info={
                "verdict": record.verdict.value,
                "provider": record.provider,
                "timings_ms": record.timings_ms,
                **measured,
            },
            cprofile_stats=None,
            has_error=False,
        ),
        iterations=1,
        options={"timer": "perf_counter_ns", "disable_gc": True, "warmup": latency.warm_up},
    )
    for ms in samples_ms:
        benchmark.update(ms / 1000)
    session.benchmarks.append(benchmark)
