"""Cells whose latency is measured, as benchmarks of pytest-benchmark where that is installed.

Its plugin keeps what it knows of a session in ``config._benchmarksession``, and a benchmark as ``Metadata``,
which its fixture makes. Here nothing is timed in pytest's process, so they are made from records.
"""

import importlib
from typing import Any, Literal

import msgspec
import pytest

from harness.core.record import Record


class _Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """What ``Metadata`` asks of a fixture.

    Attributes:
        name: The cell's id.
        fullname: The item's id, by which runs are compared.
        group: The model: targets stand side by side in a table.
        param: What varies within a group.
        params: The same by name, for ``--benchmark-group-by=param:target``.
        extra_info: What else the record knows.
    """

    name: str
    fullname: str
    group: str
    param: str
    params: dict[str, str]
    extra_info: dict[str, Any]
    cprofile_stats: None = None
    has_error: Literal[False] = False


def why_not_measured(config: pytest.Config) -> str:
    """Why latency is not measured in this session although a matrix asks for it; empty where it is."""
    if hasattr(config, "workerinput") or getattr(config.option, "dist", "no") != "no":
        return "xdist's workers would be in each other's way"
    if getattr(getattr(config, "_benchmarksession", None), "disabled", False):
        return "--benchmark-disable"
    return ""


def add_benchmark(config: pytest.Config, matrix: str, record: Record) -> None:
    """Give pytest-benchmark a record's latency; nothing happens where it is absent, or has been disabled.

    Args:
        config: Of the session that owns the run.
        matrix: Id of the matrix file's node.
        record: With a latency.
    """
    session = getattr(config, "_benchmarksession", None)
    latency = record.latency
    if session is None or session.disabled or latency is None:
        return
    stats: Any = importlib.import_module("pytest_benchmark.stats")  # which has no types
    benchmark = stats.Metadata(
        _Benchmark(
            name=record.cell,
            fullname=f"{matrix}::{record.cell}",
            group=f"{record.suite}/{record.model}",
            param=record.cell.partition("[")[2].removesuffix("]"),
            params={"target": record.target, **record.axes},
            extra_info={
                "verdict": record.verdict.value,
                "provider": record.provider,
                "timings_ms": record.timings_ms,
                **{
                    field: getattr(latency, field)
                    for field in latency.__struct_fields__
                    if field != "samples_ms"
                },
            },
        ),
        iterations=1,
        options={"timer": "perf_counter_ns", "disable_gc": True, "warmup": latency.warm_up},
    )
    for ms in latency.samples_ms:
        benchmark.update(ms / 1000)
    session.benchmarks.append(benchmark)
