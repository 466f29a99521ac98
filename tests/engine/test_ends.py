"""How the processes of targets end that are asked to: the verdict ``unclean_exit``."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core.records.verdict import Phase, Verdict
from harness.engine.tasks.events import ProcessEnded
from harness.engine.workers.planned_end import planned_end
from tests.kit import fake_target, of_folder, records_of, run_matrix, write_model

ENDS = {
    "clean": ("", None, ""),
    "unload": ("segv_in_unload", Phase.UNLOAD, "SIGSEGV"),
    "gone": ("exit0_in_unload", Phase.UNLOAD, "exit code 0"),
    "exit": ("exit3_in_exit", Phase.EXIT, "exit code 3"),
    "hang": ("hang_in_exit", Phase.EXIT, "hang"),
}
"""Target -> its fault, the phase in which its process dies, and how."""

TEARDOWN_S = 2.0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_each_end_is_told_with_its_phase(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "1_right.onnx")
    write_model(tmp_path / "models" / "2_abort_in_teardown.onnx")
    library = tmp_path / "libep.so"
    library.touch()
    targets = [
        fake_target(
            name,
            plugin=str(library),
            env={"FAKE_FAULT": fault},
            timeouts_s={"teardown": TEARDOWN_S if name == "hang" else 60.0},
        )
        for name, (fault, _, _) in ENDS.items()
    ]
    cell = fake_target("cell")
    matrix = of_folder(
        *targets,
        cell,
        exclude=[
            {"target": [*ENDS], "model": "2_abort_in_teardown.onnx"},
            {"target": "cell", "model": "1_right.onnx"},
        ],
        expect=[{"target": "unload", "verdict": "unclean_exit", "reason": "known"}],
    )
    events = run_matrix(tmp_path, matrix)
    assert {record.verdict for record in records_of(events)} == {Verdict.PASS}
    ends = {event.target: event for event in events if isinstance(event, ProcessEnded)}
    found = {name: (one.phase, one.cause) for name, one in ends.items()}
    expected = {name: (phase, cause) for name, (_, phase, cause) in ENDS.items()}
    assert found == {**expected, "cell": (Phase.TEARDOWN, "SIGABRT")}
    assert {name: one.expected for name, one in ends.items() if one.expected} == {
        "unload": (Verdict.UNCLEAN_EXIT,)
    }
    assert "died while its plugin library was unregistered: SIGSEGV" in ends["unload"].reason
    assert "did not within 2 s, while the process exited" in ends["hang"].reason
    assert ends["cell"].reason.endswith("models/2_abort_in_teardown.onnx, after the result, died: SIGABRT")


def ended_worker(**fields: Any) -> Any:
    """A worker whose process was asked to end and has ended."""
    process = {"lost": False, "killed": False, "went_on": False, "leaving": "exit", "printed": lambda: ""}
    own = {key: fields.pop(key) for key in tuple(fields) if key in process}
    worker = {
        "process": SimpleNamespace(**process | own),
        "queue": SimpleNamespace(name="ep", is_reference=False),
        "place": None,
        "asked_to_end": True,
        "timed_out": False,
        "teardown_s": 30.0,
    }
    return SimpleNamespace(**worker | fields)


ENVIRONMENTS: Any = SimpleNamespace(exit_verdicts=lambda *_: ())


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"asked_to_end": False}, "SIGSEGV"),
        ({"killed": True}, "SIGKILL"),
        ({"killed": True}, "exit code 1"),  # as Windows has it
        ({}, "SIGKILL"),
        ({}, "SIGTERM"),
        ({"lost": True}, "the connection was lost"),
        ({"queue": None}, "SIGSEGV"),
        ({"queue": SimpleNamespace(name="cpu", is_reference=True)}, "SIGSEGV"),
    ],
)
def test_what_others_did_says_nothing_about_a_target(fields: dict[str, Any], cause: str) -> None:
    assert planned_end(ended_worker(**fields), cause, ENVIRONMENTS) is None


@pytest.mark.parametrize("late", ["went_on", "timed_out"])
def test_a_process_that_was_killed_since_it_did_not_end_hangs(late: str) -> None:
    worker = ended_worker(killed=True, leaving="unload", **{late: True})
    end = planned_end(worker, "SIGKILL", ENVIRONMENTS)
    assert end is not None
    assert (end.phase, end.cause) == (Phase.UNLOAD, "hang")


def test_an_agent_that_names_no_phase_ends_in_its_exit() -> None:
    end = planned_end(ended_worker(leaving=""), "SIGABRT", ENVIRONMENTS)
    assert end is not None
    assert (end.phase, end.cause) == (Phase.EXIT, "SIGABRT")
    assert planned_end(ended_worker(leaving=""), "", ENVIRONMENTS) == ProcessEnded(target="ep")
