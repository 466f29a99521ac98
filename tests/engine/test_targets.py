"""Targets that cannot be used, each for its own reason: one run over all of them."""

import os
from typing import Any, NamedTuple

import pytest

from harness.core.records.verdict import Cause, Phase, Verdict
from harness.engine.tasks.events import Event, Finished, TargetReady
from tests.kit import fake_target, of_folder, run_matrix, write_model

CUDA = "CUDAExecutionProvider"


class Want(NamedTuple):
    """A target's settings beside the usual ones, and what its cells shall come to."""

    table: dict[str, Any]
    cause: str
    reason: str
    phase: Phase = Phase.START


def fault(name: str) -> dict[str, Any]:
    return {"env": {"FAKE_FAULT": name}}


REGISTER = Phase.REGISTER
TARGETS = {
    "not-installed": Want(fault("not_installed"), Cause.NOT_INSTALLED, "no onnxruntime in"),
    "broken": Want(fault("broken_dependency"), Cause.IMPORT_FAILED, "No module named 'coloredlogs'"),
    "hollow": Want(fault("hollow"), Cause.IMPORT_FAILED, "hollow"),
    "unreadable": Want(fault("unreadable_in_import"), Cause.IMPORT_FAILED, "without a readable text"),
    "crash-import": Want(fault("segv_in_import"), Cause.IMPORT_FAILED, "in phase start: SIGSEGV"),
    "exit-import": Want(fault("exit3_in_import"), Cause.IMPORT_FAILED, "in phase start: exit code 3"),
    "hang-import": Want(
        {**fault("hang_in_import"), "timeouts_s": {"start": 4.0}}, Cause.IMPORT_FAILED, "no answer in 4 s"
    ),
    "crash-register": Want(
        fault("abort_in_register"), Cause.REGISTRATION_FAILED, "in phase register: SIGABRT", REGISTER
    ),
    "hang-register": Want(
        {**fault("hang_in_register"), "timeouts_s": {"register": 1.0}},
        Cause.REGISTRATION_FAILED,
        "no answer in 1 s",
        REGISTER,
    ),
    "unlisted": Want(fault("unlisted"), Cause.NOT_IN_BUILD, f"{CUDA} is not in this onnxruntime"),
    "dropped": Want(
        fault("dropped"), Cause.REGISTRATION_FAILED, f"made the session without {CUDA}", REGISTER
    ),
    "library-stderr": Want(
        fault("library_on_stderr"),
        Cause.LIBRARY_MISSING,
        "libcublasLt.so.13 is missing: onnxruntime made the session without",
    ),
    "library-import": Want(
        fault("library_at_import"), Cause.LIBRARY_MISSING, "libcublasLt.so.13 is missing: import onnxruntime"
    ),
    "library-error": Want(
        {**fault("library_in_error"), "plugin": "here.so"}, Cause.LIBRARY_MISSING, "libcublasLt.so.13 is"
    ),
    "refused": Want(
        {**fault("refuse_registration"), "plugin": "here.so"},
        Cause.REGISTRATION_FAILED,
        "API version 99",
        REGISTER,
    ),
    "no-device": Want({**fault("no_device"), "plugin": "here.so"}, Cause.NO_DEVICE, "no device", REGISTER),
    "other-device": Want(
        {"plugin": "here.so", "device": {"type": "NPU"}},
        Cause.NO_DEVICE,
        'no device matching {"type": "NPU"}; offered: {"type": "GPU"',
        REGISTER,
    ),
    "no-library": Want({"plugin": "gone/libep.so"}, Cause.NOT_INSTALLED, "no plugin library at"),
    "no-package": Want({"plugin": "no_such_ep"}, Cause.NOT_INSTALLED, "'no_such_ep' is not installed"),
    "no-python": Want({"runtime": {"python": "gone/bin/python"}}, Cause.NOT_INSTALLED, "gone/bin/python"),
    "cat": Want({"runtime": {"command": "cat"}}, Cause.IMPORT_FAILED, "in phase start: exit code 1"),
    "talker": Want(
        {"runtime": {"command": "sh -c yes"}},
        Cause.IMPORT_FAILED,
        "it wrote 1024 KiB on stdout without an agent's greeting",
    ),
    "silent": Want(
        {"runtime": {"command": "sh -c 'echo Password:; cat >/dev/null'"}, "timeouts_s": {"start": 1.0}},
        Cause.IMPORT_FAILED,
        "no greeting of an agent in 1 s (the command must pass stdin and stdout on); it printed: Password:",
    ),
    "packages": Want(
        {"runtime": {"packages": ["gone-1-py3-none-any.whl"]}}, Cause.NOT_INSTALLED, "No such file"
    ),
}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake dies by POSIX signals")


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    home = tmp_path_factory.mktemp("targets")
    (home / "here.so").touch()
    write_model(home / "models" / "1_one.onnx")
    write_model(home / "models" / "2_once_in_create.onnx")
    targets = [fake_target(name, **want.table) for name, want in TARGETS.items()]
    targets += [
        fake_target("good"),
        fake_target("plugin", plugin="here.so", device={"type": "gpu"}),
        fake_target("profiled", env={"FAKE_VERSION": "1.24.1"}),
        # Libraries of pip's packages are on no search path.
        fake_target("needs-libraries", **fault("needs_libraries")),
        fake_target("rejected", options={"precision": "wrong", "device_id": 0}, unchecked_options=True),
        fake_target("varied", axes={"option.precision": ["right", "wrong"]}, unchecked_options=True),
    ]
    return run_matrix(home, of_folder(*targets), processes=3)


def cells(events: list[Event], name: str) -> list[Finished]:
    found = [event for event in events if isinstance(event, Finished) and event.record.target == name]
    return sorted(found, key=lambda event: event.record.cell)


@pytest.mark.parametrize("name", TARGETS)
def test_an_unusable_target_says_why_for_each_cell(events: list[Event], name: str) -> None:
    want = TARGETS[name]
    found = cells(events, name)
    assert len(found) == 2
    for cell in found:
        record = cell.record
        assert (record.verdict, record.cause) == (Verdict.UNAVAILABLE, want.cause), record
        assert want.reason in record.reason, record.reason
        assert record.phase is want.phase
        assert record.expected


@pytest.mark.parametrize(
    "name", [*TARGETS, "good", "rejected", "varied", "profiled", "plugin", "needs-libraries"]
)
def test_each_target_is_announced_once(events: list[Event], name: str) -> None:
    ready = [event for event in events if isinstance(event, TargetReady) and event.target == name]
    assert len(ready) == 1
    usable = name not in TARGETS and name != "rejected"
    assert (ready[0].problem == "") is usable


@pytest.mark.parametrize("name", ["good", "plugin", "profiled", "needs-libraries"])
def test_the_others_ran_and_made_one_session_for_each_model(events: list[Event], name: str) -> None:
    for cell in cells(events, name):
        assert cell.record.verdict is Verdict.PASS, cell.record
        assert cell.record.placement is not None
        assert cell.record.placement.source == ("profile" if name == "profiled" else "assignment")


def test_a_refused_option_is_named(events: list[Event]) -> None:
    for cell in cells(events, "rejected"):
        assert cell.record.verdict is Verdict.OPTION_REJECTED
        assert cell.record.phase is Phase.REGISTER
        assert cell.record.reason.startswith("provider option 'precision' is refused: unknown value")
        assert not cell.record.expected


def test_one_value_of_an_option_may_be_refused_alone(events: list[Event]) -> None:
    found = {cell.record.axes["option.precision"]: cell.record.verdict for cell in cells(events, "varied")}
    assert found == {"right": Verdict.PASS, "wrong": Verdict.OPTION_REJECTED}


def test_the_environment_is_described(events: list[Event]) -> None:
    (ready,) = [event for event in events if isinstance(event, TargetReady) and event.target == "plugin"]
    assert ready.fingerprint["onnxruntime"] == "1.31.1"
    assert ready.fingerprint["plugin"]["library"].endswith("here.so")
    # What a device says about itself is any text, or no text at all.
    (device,) = ready.fingerprint["devices"]
    assert device["device"]["vendor"] == "Acme?"
    assert device["metadata"] == {"version": "2.0"}
