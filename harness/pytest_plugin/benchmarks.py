"""Measured cells as benchmarks of pytest-benchmark, if that is installed.

Its plugin keeps a session in ``config._benchmarksession``, and makes a ``Metadata`` of each fixture that
measures. The engine measures in other processes, so here ``Metadata`` is made from records.
"""

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from harness.core.records.record import Record


def why_not_measured(config: pytest.Config) -> str:
    """Return why this session measures no latency although a matrix requests it; empty if it measures."""
    if hasattr(config, "workerinput") or getattr(config.option, "dist", "no") != "no":
        return "xdist's workers would disturb each other"
    if getattr(getattr(config, "_benchmarksession", None), "disabled", False):
        return "--benchmark-disable"
    return ""


def add_benchmark(config: pytest.Config, matrix: str, record: Record) -> None:
    """Give pytest-benchmark a record's latency and speed; do nothing if it is absent or disabled.

    ``matrix`` is the node id of the matrix file.
    """
    session = getattr(config, "_benchmarksession", None)
    if session is None or session.disabled:
        return
    for measured in _measured(record):
        session.benchmarks.append(_benchmark(matrix, record, measured))


class _Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of a cell.

    Attributes:
        what: What was measured; empty for the run of a session.
        samples_s: Its duration in each round, in seconds.
    """

    what: str = ""
    samples_s: tuple[float, ...]
    warm_up: int | bool = False
    facts: dict[str, Any] = {}


def _measured(record: Record) -> Iterator[_Measured]:
    if record.latency is not None:
        facts = msgspec.structs.asdict(record.latency)
        samples_ms = facts.pop("samples_ms")
        yield _Measured(
            samples_s=tuple(ms / 1000 for ms in samples_ms), warm_up=record.latency.warm_up, facts=facts
        )
    speed = record.generation.speed if record.generation else None
    if speed is None:
        return
    facts = {"cache_mib": speed.cache_mib}
    for length, ms in sorted(speed.first_token_ms.items()):
        yield _Measured(what=f" first token, prompt {length}", samples_s=(ms / 1000,), facts=facts)
    for size, rate in sorted(speed.tokens_per_s.items()):
        if rate > 0:
            # A benchmark is a duration: that of one token.
            yield _Measured(
                what=f" token, batch {size}", samples_s=(1 / rate,), facts=facts | {"tokens_per_s": rate}
            )


def _benchmark(matrix: str, record: Record, measured: _Measured) -> Any:
    stats: Any = importlib.import_module("pytest_benchmark.stats")  # which has no types
    name = f"{record.cell}{measured.what}"
    benchmark = stats.Metadata(
        SimpleNamespace(
            name=name,
            fullname=f"{matrix}::{name}",  # by which runs are compared
            # So that a table compares the targets of a model.
            group=f"{record.suite}/{record.model}{measured.what}",
            param=record.cell.partition("[")[2].removesuffix("]"),
            params={"target": record.target, **record.axes},  # for --benchmark-group-by=param:target
            extra_info={
                "verdict": record.verdict.value,
                "provider": record.provider,
                "timings_ms": record.timings_ms,
                **measured.facts,
            },
            cprofile_stats=None,
            has_error=False,
        ),
        iterations=1,
        options={"timer": "perf_counter_ns", "disable_gc": True, "warmup": measured.warm_up},
    )
    for seconds in measured.samples_s:
        benchmark.update(seconds)
    return benchmark
