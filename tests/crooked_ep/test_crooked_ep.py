"""A real plugin EP under the product: nothing is told of an honest one, and each fault in the right word."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.core.records.record import Record, decode_record
from harness.core.records.verdict import Family
from harness.corpus.suites.suites import open_suite
from tests.crooked_ep.build import build
from tests.crooked_ep.faults import Planted, every_fault, faults
from tests.crooked_ep.planted_run import PROVIDER, PlantedRun, run_planted
from tests.kit import read_records

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(sys.platform != "linux", reason="its faults of manners are those of a Linux process"),
]

FAULTS = faults()
LEAST = 60
FEWEST_PASSED = 150
UNAVAILABLE = 3
HONEST = "honest"
FAILED = 1
BUSY = {"hang", "timeout"}
"""What stays busy hangs for certain only where nothing else may have slowed it down."""
CLAIMED = re.compile(
    r"test_(abs|add|cast|concat|conv|div|exp|gather|gemm|matmul|maxpool_[12]d|mul|neg|reduce_sum|relu|reshape"
    r"|sigmoid|softmax|sqrt|sub|tanh|transpose)(_|$)(?!.*(_expanded|FLOAT[468]|INT[248]|STRING|square))"
)
"""ONNX's tests of operators that the library computes."""


@pytest.fixture(scope="module")
def planted(crooked_ep: Path, tmp_path_factory: pytest.TempPathFactory) -> PlantedRun:
    return run_planted(tmp_path_factory.mktemp("crooked"), crooked_ep)


def test_the_table_is_read_whole() -> None:
    lines = (Path(__file__).with_name("native") / "faults.def").read_text("utf-8").splitlines()
    assert len(every_fault()) == sum(line.startswith("FAULT(") for line in lines) >= LEAST
    assert Counter(fault.name for fault in every_fault()).most_common(1)[0][1] == 1


def test_each_model_is_right_without_a_fault(planted: PlantedRun) -> None:
    """Each model also shows its fault: the golden of all but one can tell right from wrong."""
    assert planted.told(HONEST) == {"pass", "mark:weak"}
    assert planted.told("honest-npu") == {"pass"}
    weak = [record.model for record in planted.records[HONEST] if record.weak_golden]
    assert weak == ["denormals_lost/model.onnx"]


def test_no_scenario_marks_the_honest_library(planted: PlantedRun) -> None:
    assert planted.told("none") <= {"pass", "pass_partial"}


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_each_fault_is_told(planted: PlantedRun, fault: Planted) -> None:
    """The word of the table; if there is another in the column *today*, that one alone until it is mended."""
    told = planted.told(fault.name)
    if fault.today:
        assert told == {fault.today}
    elif fault.action == "spin":
        assert told <= BUSY
    else:
        assert fault.told in told, planted.worst(fault.name).reason


def test_the_faults_fail_the_run(planted: PlantedRun) -> None:
    assert planted.code == FAILED


def test_nothing_is_told_of_an_honest_library(crooked_ep: Path, tmp_path: Path) -> None:
    """ONNX's tests of its operators, the corners, and generated models."""
    others = [name for name in open_suite("onnx-node").models() if not CLAIMED.match(name)]
    matrix = tmp_path / "matrix.toml"
    matrix.write_text(
        f"""schema = 1
models = {{ suites = ["corners", "onnx-node", "fuzz:7:60"] }}
target = [{{ name = "crooked", provider = "{PROVIDER}", plugin = "{crooked_ep}", workers = 2 }}]
exclude = [{{ suite = "onnx-node", model = {json.dumps(others)} }}]
""",
        encoding="utf-8",
    )
    assert main(["run", str(matrix), "--out", str(tmp_path / "run"), "--no-report"]) == 0
    records = read_records(tmp_path / "run")
    assert not [record.cell for record in records if record.manners]
    families = Counter(record.verdict.family for record in records)
    assert families[Family.FAILED] == families[Family.SKIPPED] == 0
    assert families[Family.PASSED] > FEWEST_PASSED


@pytest.mark.parametrize("flag", ["", "-DNO_SYMBOL"])
def test_what_is_no_plugin_is_unavailable(tmp_path: Path, flag: str) -> None:
    """The same sources without the name that onnxruntime looks for, and a file that is no library."""
    library = build(tmp_path / "library", flag) if flag else tmp_path / "library.so"
    if not flag:
        library.write_bytes(b"not a library")
    out = tmp_path / "run"
    arguments = ["check", PROVIDER, "--plugin", str(library), "--suite", "corners", "--out", str(out)]
    assert main([*arguments, "--model", "*_halfway_*", "--no-report"]) == UNAVAILABLE
    for line in (out / "records.jsonl").read_bytes().splitlines():
        assert decode_record(line).verdict == "unavailable"
        assert "CreateEpFactories" in decode_record(line).reason or not flag


def test_the_device_is_proven_by_its_memory(planted: PlantedRun) -> None:
    for record in planted.records["honest-npu"]:
        assert record.device is not None
        assert (record.device.asked, record.device.not_proven) == ("NPU 1 of Crooked", "")
    assert planted.worst("other_device").device is not None
    told = "input 'a' lies in the memory crooked_npu 0 of vendor 0xc00c of NPU 1 of Crooked; asked for: CPU 0"
    assert planted.worst("other_device").reason.startswith(told)


def test_each_step_of_a_library_is_told(planted: PlantedRun) -> None:
    told = planted.worst("library_stays").scenario["steps"]
    assert isinstance(told, tuple)
    in_rounds, left, twice, beside, in_use = map(str, told)
    steps = "register, session, run, release, unregister"
    assert in_rounds == f"in rounds: 5 x ({steps}), exit, exit code 0"
    assert left == "left registered: register, session, run, release, exit, exit code 0"
    assert twice == f"registered twice: register, register again, {steps[10:]}, exit, exit code 0"
    with_copy = "session, run, unregister the copy, run, release, unregister"
    assert beside == f"two libraries: register, register a copy, {with_copy}, exit, exit code 0"
    assert in_use.startswith("unregistered in use: register, session, run, unregister")
    assert planted.worst("library_stays").scenario["stays_loaded"] is True
    assert all(record.scenario["stays_loaded"] is False for record in lives(planted, "honest-npu"))


def lives(planted: PlantedRun, fault: str) -> list[Record]:
    return [record for record in planted.records[fault] if record.axes.get("scenario") == "lifecycle"]


@pytest.mark.parametrize(
    ("fault", "cause", "reason"),
    [
        ("crash_at_exit", "SIGSEGV", "the process of the scenario died at exit, in rounds: SIGSEGV"),
        ("abort_at_unregister", "SIGABRT", "died at unregister of round 2, in rounds: SIGABRT"),
        ("devices_released_early", "SIGSEGV", ", registered twice: SIGSEGV"),
        ("copy_ends_all", "SIGABRT", "died at unregister the copy, two libraries: SIGABRT"),
        ("second_registration_fails", "", "at register of round 2, in rounds: "),
    ],
)
def test_the_step_that_fails_is_named(planted: PlantedRun, fault: str, cause: str, reason: str) -> None:
    record = planted.worst(fault)
    assert reason in record.reason
    assert record.cause == cause
    assert record.scenario["steps"]


def test_what_a_crash_printed_names_its_end(planted: PlantedRun) -> None:
    ends = {"abort_in_run": "SIGABRT", "overflow_in_run": "SIGSEGV", "exit_3_in_run": "exit code 3"}
    assert {name: planted.worst(name).cause for name in ends} == ends


def test_an_error_is_told_in_the_words_of_the_library(planted: PlantedRun) -> None:
    assert "planted failure 0x1234" in planted.worst("error_in_run").reason
    assert "crooked: thrown, not returned" in planted.worst("throws_in_run").reason
