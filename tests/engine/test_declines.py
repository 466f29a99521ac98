"""What an agent declines is not asked for: it becomes unsupported with the agent's reason, never a pass."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.records.record import Record
from harness.core.records.run_work import Unchecked
from harness.core.records.verdict import Verdict
from harness.core.values.value import Map, Sequence, Value, tensor, to_wire
from harness.engine.processes import connection
from harness.engine.processes.connection import Greeting, find_greeting
from harness.engine.workers.job import declined
from tests.kit import FAKE_ENV, of_folder, records_of, run_matrix, write_model

ONE = tensor(np.ones(1, np.float32))
TEXT = tensor(np.array(["a"], dtype=object))
JOB: dict[str, Any] = {
    "model": "m.onnx",
    "graph_optimization": "all",
    "scenario": "ep_context",
    "evaluate": True,
}


def job(value: Value) -> dict[str, Any]:
    return {**JOB, "data_sets": [[("x", to_wire(value))]]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scenario", ONE),
        ("scenario:ep_context", ONE),
        ("evaluate", ONE),
        ("graph_optimization:all", ONE),
        ("dtype:float32", ONE),
        ("dtype:string", Sequence(items=(TEXT,))),
        ("value:sequence", Sequence(items=())),
        ("value:map", Map(keys=TEXT, values=ONE)),
        ("value:map", Sequence(items=(Map(keys=TEXT, values=ONE),))),
        ("value:optional", None),
    ],
)
def test_what_is_asked_for_and_declined_is_told(name: str, value: Value) -> None:
    assert declined({name: "no such thing here"}, job(value)) == (
        f"the agent declines {name}: no such thing here"
    )


@pytest.mark.parametrize(
    "name", ["scenario:io_binding", "latency", "dtype:float16", "value:map", "native_stack", "make:fp16"]
)
def test_what_is_not_asked_for_may_be_declined(name: str) -> None:
    assert declined({name: "no"}, job(ONE)) == ""


@pytest.fixture
def declining(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have each agent decline something."""

    def decline(**declines: str) -> None:
        right = find_greeting

        def find(*given: Any) -> Greeting | None:
            found = right(*given)
            return None if found is None else found._replace(declines=declines)

        monkeypatch.setattr(connection, "find_greeting", find)

    return decline


def records(tmp_path: Path, env: dict[str, str], **axes: list[str]) -> list[Record]:
    target = {"name": "t", "provider": "CUDAExecutionProvider", "env": env}
    matrix = of_folder(target, axes=axes)
    found = records_of(run_matrix(tmp_path, matrix))
    return sorted(found, key=lambda record: record.cell, reverse=True)


@pytest.mark.skipif(sys.platform != "linux", reason="the fake needs POSIX")
def test_a_cell_that_needs_it_is_unsupported(tmp_path: Path, declining: Callable[..., None]) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    declining(**{"execution_mode:parallel": "one thread only", "other": "no second input"})
    found = records(tmp_path, FAKE_ENV, execution_mode=["sequential", "parallel"])
    assert [record.verdict for record in found] == [Verdict.PASS, Verdict.UNSUPPORTED]
    assert found[1].reason == "the agent declines execution_mode:parallel: one thread only"


@pytest.mark.skipif(sys.platform != "linux", reason="the fake needs POSIX")
def test_without_paths_and_folders_everything_travels_in_messages(
    tmp_path: Path, declining: Callable[..., None]
) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx", "big")
    declining(paths="it cannot read files", tensor_folders="it cannot read files")
    env = {**FAKE_ENV, "EP_HARNESS_CACHE": str(tmp_path / "cache")}
    assert [record.verdict for record in records(tmp_path, env)] == [Verdict.PASS]
    assert list((tmp_path / "cache" / "models").glob("*/1_fine.onnx"))


@pytest.mark.skipif(sys.platform != "linux", reason="the fake needs POSIX")
def test_a_second_run_that_is_declined_is_told(tmp_path: Path, declining: Callable[..., None]) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    declining(repeat="it runs everything once")
    (record,) = records(tmp_path, FAKE_ENV)
    assert record.verdict is Verdict.PASS
    assert record.repeats is None
    because = "the agent does not tell of repeated runs"
    assert record.unchecked == (Unchecked(check="second run", because=because),)
