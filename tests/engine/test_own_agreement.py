"""Functions of a matrix: whatever they do costs one figure."""

import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from harness.core.agreement.agreement import Agreement
from harness.core.records.verdict import Verdict
from harness.core.values.value import STRING, NamedValues, Sequence, Tensor, tensor
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import SettingsError
from harness.corpus.suites.suite import open_folder
from harness.engine.measuring.own_agreement import MOST_LATE, Call, OwnFunctions, figure_of
from harness.engine.tasks.events import Warned
from tests.kit import fake_target, of_folder, records_of, run_matrix, write_model

TASK = """
import os, sys, time
import numpy as np

def same(golden, actual):
    print("on stdout", flush=True)
    rows = golden["y"].argmax(-1) == actual["y"].argmax(-1)
    return rows.sum(), rows.size

def share(golden, actual):
    return np.float32(0.25)

def raises(golden, actual):
    raise KeyError("no such output")

def leaves(golden, actual):
    sys.exit(0)

def hangs(golden, actual):
    time.sleep(600)

def dies(golden, actual):
    os._exit(7)

def dies_quietly(golden, actual):
    os._exit(0)

def forks(golden, actual):
    import subprocess
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    return 1, 1

def kinds(golden, actual):
    told = ["a", "float32", "int8", "3 4"]
    types = [str(golden[name].dtype) for name in "bi"]
    found = [golden["t"][0], *types, " ".join(map(str, golden["s[1]"]))]
    return int(told == found), 1
"""

RIGHT: NamedValues = (("y", tensor(np.array([[1, 2], [2, 1]], np.float32))),)
WRONG: NamedValues = (("y", tensor(np.array([[1, 2], [1, 2]], np.float32))),)


def call(tmp_path: Path, function: str, limit_s: float = 20.0, times: int = 1) -> list[Agreement]:
    """Return the figures of a function, each from a call with two data sets."""
    (tmp_path / "task.py").write_text(TASK)
    found: list[Agreement] = []
    warned: list[str] = []
    ended = threading.Event()

    def on_end(figures: tuple[Agreement, ...]) -> None:
        found.extend(figures)
        if len(found) == times:
            ended.set()

    functions = OwnFunctions(tmp_path, lambda made, *what: made(*what), warned.append, limit_s)
    one = Call(function=function, golden=(RIGHT, RIGHT), actual=(WRONG, RIGHT))
    for _ in range(times):
        functions.ask((one,), on_end)
    assert ended.wait(60)
    functions.close()
    assert functions.waiting == 0
    assert len(warned) == bool(found[0].failed)  # once for all calls
    return found


def test_figures_are_added_up(tmp_path: Path) -> None:
    assert call(tmp_path, "task:same") == [Agreement(output="", kind="task:same", same=3, of=4)]
    assert call(tmp_path, "task:share") == [Agreement(output="", kind="task:share", same=0.5, of=2)]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("task:raises", "KeyError: 'no such output'"),
        ("task:leaves", "SystemExit: 0"),
        ("task:dies", "its process ended with code 7"),
        ("task:dies_quietly", "it ended without a result"),
        ("task:none", "has no attribute 'none'"),
        ("gone:same", "No module named 'gone'"),
    ],
)
def test_a_function_that_fails_costs_its_figure(tmp_path: Path, function: str, why: str) -> None:
    (found,) = call(tmp_path, function)
    assert why in found.failed
    assert found.of == 0


def test_a_function_that_hangs_is_killed_and_given_up(tmp_path: Path) -> None:
    began = time.monotonic()
    found = call(tmp_path, "task:hangs", limit_s=0.5, times=MOST_LATE + 1)
    assert {one.failed for one in found[:MOST_LATE]} == {"it found no end within 0.5 s"}
    assert found[MOST_LATE].failed == f"it has exceeded 0.5 s {MOST_LATE} times"
    assert time.monotonic() - began < 60


def test_what_a_function_has_started_does_not_hold_its_cell(tmp_path: Path) -> None:
    assert call(tmp_path, "task:forks")[0].of == 2


def test_values_are_arrays_of_numpy(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    numbers = tensor(np.array([3, 4], np.int64))
    values: NamedValues = (
        ("t", Tensor(dtype=STRING, array=np.array(["a"], object))),
        ("b", tensor(np.ones(2, ml_dtypes.bfloat16))),
        ("i", tensor(np.ones(2, ml_dtypes.int4))),
        ("s", Sequence(items=(numbers, numbers))),
        ("file", numbers),
        ("o", None),
    )
    ended = threading.Event()
    found: list[Agreement] = []

    def on_end(figures: tuple[Agreement, ...]) -> None:
        found.extend(figures)
        ended.set()

    functions = OwnFunctions(tmp_path, lambda made, *what: made(*what), print)
    functions.ask((Call(function="task:kinds", golden=(values,), actual=(values,)),), on_end)
    assert ended.wait(60)
    assert found == [Agreement(output="", kind="task:kinds", same=1, of=1)]


@pytest.mark.parametrize(
    "returned",
    [True, "yes", None, -0.1, 1.1, float("nan"), [2, 1], [1, 2, 3], [-1, 2], [True, True], [0.5, 1], []],
)
def test_rubbish_is_no_figure(returned: object) -> None:
    found = figure_of("m:f", {"returned": [returned]}, 1)
    assert found.of == 0
    assert "neither a share" in found.failed


@pytest.mark.parametrize("told", [None, [], {}, {"returned": 1}, {"returned": []}, {"error": None}])
def test_a_damaged_result_is_no_figure(told: object) -> None:
    assert figure_of("m:f", told, 1).failed == "it ended without a result"


def test_a_run_takes_the_figure_into_the_record_and_goes_on_without_it(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    for name in ("a", "b", "c"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    (tmp_path / "models" / "c.onnx.toml").write_text('agree = "top1"')
    entries = [{"model": "a.onnx", "agree": "task:same"}, {"model": "b.onnx", "agree": "task:dies"}]
    target = fake_target("fake")
    events = run_matrix(tmp_path, of_folder(target, model=entries))
    records = {record.model: record for record in records_of(events)}
    assert {record.verdict for record in records.values()} == {Verdict.PASS}
    assert [records["a.onnx"].agreement, records["c.onnx"].agreement] == [
        (Agreement(output="", kind="task:same", same=1, of=1),),
        (Agreement(output="y", kind="top1", same=1, of=1),),
    ]
    assert records["b.onnx"].agreement[0].failed == "its process ended with code 7"
    (warning,) = [event.message for event in events if isinstance(event, Warned)]
    assert warning == "agree: task:dies: its process ended with code 7"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('agree = "task:same"', "must not name"),
        ('agree = { q = "top1" }', "the output 'q'"),
        ("agree = 1", "agree"),
    ],
)
def test_a_side_file_with_code_or_a_slip_is_refused(tmp_path: Path, content: str, why: str) -> None:
    write_model(tmp_path / "models" / "a.onnx")
    (tmp_path / "models" / "a.onnx.toml").write_text(content)
    with pytest.raises(SettingsError, match=why):
        load_case(open_folder(tmp_path / "models"), "a.onnx", {})
