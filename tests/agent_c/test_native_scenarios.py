"""Scenarios of the agent in C find what those of the Python agent find, and give its verdicts."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.core.records.verdict import Verdict
from harness.runtimes.native_agent import build_agent
from tests.crooked_ep.faults import COMPILED, LIFE, SCENARIOS, SHOWN_BY, Planted, faults, scenario_faults
from tests.crooked_ep.models import small_models, write_model
from tests.crooked_ep.planted_run import PROVIDER, PlantedRun, run_planted, toml
from tests.crooked_ep.scenario_run import ONLY, Records, has_own_target, run_in_scenarios
from tests.kit import harness, read_records

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("cc") is None,
        reason="it needs a C compiler, and a libonnxruntime.so",
    ),
]

ALONE = scenario_faults()
"""Faults that one scenario alone shows."""
SHOWN = tuple(
    fault for fault in faults() if fault.place in {*SCENARIOS, *LIFE, *COMPILED} or fault.told == "mark:leak"
)
"""Faults in the whole run that a scenario shows."""
FEW = {
    "constants_of_newest",
    "writes_beyond",
    "reads_file",
    "second_adapter_lost",
    "callback_data_unused",
    "shared_memory_wiped",
}
FEW_SHOWN = {"context_wrong", "replay_keeps_inputs", "hint_stays", "second_registration_wrong"}
"""Faults that are tried each time; the others take minutes."""
OTHER_WORDS = {
    # Sessions of C ask for the compatibility of a compiled model themselves, so it does not load.
    "fresh_is_unsupported": "Compiled model is not supported by execution provider",
}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory, library: str) -> dict[str, Any]:
    """Build the agent, and return the runtime of a target that uses it."""
    program = build_agent(tmp_path_factory.mktemp("agent") / "agent").path
    return {"agent": [str(program), "--library", library]}


def assert_told(records: Records, fault: Planted) -> None:
    """Assert that the scenario of a fault tells it, and that a plain run does not."""
    target = fault.name if has_own_target(fault) else "crooked"
    found = records[f"{target} {SHOWN_BY[fault.place]}", fault.name]
    assert records[f"{target} plain", fault.name].verdict is Verdict.PASS
    assert found.verdict == fault.told, found.reason
    assert OTHER_WORDS.get(fault.name, ONLY.get(fault.name, "")) in found.reason


def assert_honest(records: Records) -> None:
    """Assert that nothing is told of models without a fault."""
    assert {record.verdict for (where, _), record in records.items() if where.startswith("honest")} == {
        "pass"
    }


def assert_shown(planted: PlantedRun, fault: Planted) -> None:
    """Assert that a fault is told in its word."""
    assert fault.told in planted.told(fault.name), planted.worst(fault.name).reason


def test_a_few_faults_are_told(crooked_ep: Path, runtime: dict[str, Any], tmp_path: Path) -> None:
    some = [fault for fault in ALONE if fault.name in FEW]
    records = run_in_scenarios(tmp_path, crooked_ep, some, runtime)
    assert_honest(records)
    for fault in some:
        assert_told(records, fault)


def test_a_few_faults_of_a_process_are_told(
    crooked_ep: Path, runtime: dict[str, Any], tmp_path: Path
) -> None:
    some = [fault for fault in SHOWN if fault.name in FEW_SHOWN or fault.told == "mark:leak"]
    planted = run_planted(tmp_path, crooked_ep, some, runtime)
    assert planted.told("honest-npu") == {"pass"}
    for fault in some:
        assert_shown(planted, fault)


def test_memory_that_a_session_keeps_is_told(
    crooked_ep: Path, runtime: dict[str, Any], tmp_path: Path
) -> None:
    write_model(tmp_path / "models", small_models()["add"], "add")
    target = {"provider": PROVIDER, "plugin": str(crooked_ep), "runtime": runtime}
    lines = ["schema = 1", 'models = { folders = ["models"] }', 'axes = { scenario = ["buffers"] }']
    for fault in ("none", "scratch_kept"):
        one = {"name": fault, **target, "options": {"fault": fault}}
        lines += ["[[target]]", *(f"{key} = {toml(value)}" for key, value in one.items())]
    (tmp_path / "m.toml").write_text("\n".join(lines), encoding="utf-8")
    main(["run", str(tmp_path / "m.toml"), "--out", str(tmp_path / "run"), "--no-report"])
    honest, kept = sorted(read_records(tmp_path / "run"), key=lambda record: record.target)
    assert honest.verdict is Verdict.PASS, honest.reason
    assert kept.verdict is Verdict.ERROR
    assert "SharedAllocatorError: 1 of 2 blocks are not given back when the last session" in kept.reason


@pytest.mark.long
def test_every_fault_is_told(crooked_ep: Path, runtime: dict[str, Any], tmp_path: Path) -> None:
    records = run_in_scenarios(tmp_path, crooked_ep, ALONE, runtime)
    assert_honest(records)
    for fault in ALONE:
        assert_told(records, fault)


@pytest.mark.long
def test_every_fault_of_a_process_is_told(crooked_ep: Path, runtime: dict[str, Any], tmp_path: Path) -> None:
    planted = run_planted(tmp_path, crooked_ep, SHOWN, runtime)
    assert planted.told("none") <= {"pass", "pass_partial"}
    for fault in SHOWN:
        assert_shown(planted, fault)


MATRIX = """
schema = 1
[models]
suites = ["zoo"]
[axes]
scenario = [{scenarios}]
[[target]]
name = "python"
provider = "CPUExecutionProvider"
[[target]]
name = "c"
provider = "CPUExecutionProvider"
runtime = {{ agent = {agent} }}
"""
PLAYED = (
    *("io_binding", "zero_size", "interleaved", "lifecycle", "separate_outputs", "terminate", "capture"),
    *(
        "profiling",
        "dynamic_options",
        "batch_slots",
        "buffers",
        "initializers",
        "adapters",
        "free_dimensions",
    ),
    *("ort_format", "ep_context", "compile"),
)


@pytest.mark.long
def test_verdicts_are_those_of_the_python_agent(runtime: dict[str, Any], tmp_path: Path) -> None:
    scenarios = ", ".join(f'"{name}"' for name in PLAYED)
    (tmp_path / "m.toml").write_text(MATRIX.format(scenarios=scenarios, agent=runtime["agent"]))
    words = [word for name in ("bert", "mobilenet", "text") for word in ("--model", f"zoo/{name}-small-op17")]
    harness("run", "m.toml", "--no-report", "--out", "run", *words, cwd=tmp_path, timeout_s=900)
    found: dict[str, dict[str, str]] = {"python": {}, "c": {}}
    for record in read_records(tmp_path / "run"):
        found[record.target][f"{record.model} {record.axes['scenario']}"] = record.verdict
    assert len(found["c"]) == 3 * len(PLAYED)
    assert found["c"] == found["python"]
