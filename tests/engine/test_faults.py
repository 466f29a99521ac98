"""Every way in which a provider can fail a model, through the real engine and the real agent.

Each faulty model stands between two good ones in the queue of one worker. All of them share one run.
"""

import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.core.records.verdict import Cause, Phase, Verdict
from harness.engine.tasks.events import Finished
from tests.kit import FAKE_ENV, fake_target, of_folder, run_matrix, write_model

POSIX = os.name == "posix"


class Want(NamedTuple):
    """What a fault shall come to."""

    verdict: Verdict
    phase: Phase = Phase.COMPARE
    cause: str = ""
    reason: str = ""


CRASH, HANG, ERROR, PASS = Verdict.CRASH, Verdict.HANG, Verdict.ERROR, Verdict.PASS
UNAVAILABLE = Verdict.UNAVAILABLE
CREATE, RUN, COMPARE, REGISTER = Phase.CREATE, Phase.RUN, Phase.COMPARE, Phase.REGISTER
AFTER = "died in teardown, after the result"
REPLACED = "the process was replaced"
GARBAGE = "something wrote into the stream of the agent's messages"
CHANGED = "a message did not arrive as the agent sent it; channel 'line' is for what changes bytes"
NO_FORM = "it sent a message of no known form"
WENT_ON = "it went on with a model after the result"
STARTED_HERE = "FAULTS_HOME"
"""A variable of every process that is started here, those of references included."""

FAULTS = {
    "segv_in_create": Want(CRASH, CREATE, "SIGSEGV", "died in phase create: SIGSEGV"),
    "segv_in_run": Want(CRASH, RUN, "SIGSEGV"),
    "segv_in_teardown": Want(PASS, COMPARE, "", f"{AFTER}: SIGSEGV"),
    "abort_in_create": Want(CRASH, CREATE, "SIGABRT"),
    "abort_in_run": Want(CRASH, RUN, "SIGABRT"),
    "abort_in_teardown": Want(PASS, COMPARE, "", f"{AFTER}: SIGABRT"),
    "exit3_in_create": Want(CRASH, CREATE, "exit code 3"),
    "exit3_in_run": Want(CRASH, RUN, "exit code 3"),
    "exit3_in_teardown": Want(PASS, COMPARE, "", f"{AFTER}: exit code 3"),
    "exit0_in_create": Want(CRASH, CREATE, "", "it exited early"),
    "exit0_in_run": Want(CRASH, RUN, "", "it exited early"),
    "exit0_in_teardown": Want(PASS, COMPARE, "", f"{AFTER}: it exited"),
    "kill_in_run": Want(CRASH, RUN, "SIGKILL"),
    "killonce_in_run": Want(PASS),
    "orphan_in_run": Want(CRASH, RUN, "SIGABRT"),
    "daemon_in_run": Want(CRASH, RUN, "", "it exited early; it left a process behind, which was ended: "),
    "daemon_in_teardown": Want(PASS, COMPARE, "", f"{AFTER}: it exited; it left a process behind"),
    "limit_in_run": Want(PASS, COMPARE, "", f"{REPLACED}: it lowered the limit RLIMIT_FSIZE of its process"),
    "limit_in_teardown": Want(PASS, COMPARE, "", f"{REPLACED}: it lowered the limit RLIMIT_FSIZE"),
    "memory_in_create": Want(Verdict.OUT_OF_MEMORY, CREATE),
    "memory_in_run": Want(Verdict.OUT_OF_MEMORY, RUN),
    "alloc_in_run": Want(Verdict.OUT_OF_MEMORY, RUN, "", "Failed to allocate memory"),
    "error_in_create": Want(ERROR, CREATE, "", "something is wrong"),
    "error_in_run": Want(ERROR, RUN, "", "something is wrong"),
    "notimpl_in_create": Want(Verdict.UNSUPPORTED, CREATE, "", "no kernel for Relu"),
    "notimpl_in_run": Want(ERROR, RUN),
    "ansi_in_run": Want(ERROR, RUN, "", "<script>"),
    "badalloc_in_run": Want(Verdict.OUT_OF_MEMORY, RUN, "SIGABRT"),
    "sticky_in_create": Want(
        ERROR,
        CREATE,
        "",
        f"700: an illegal memory access was encountered; {REPLACED}: another model fails alike",
    ),
    "sticky_in_run": Want(ERROR, RUN, "", f"{REPLACED}: another model fails alike"),
    "shifts_in_run": Want(
        ERROR, RUN, "", f"{REPLACED}: it computes Relu([-2.0, -0.5, 0.5, 3.0]) as [1. 1. 1.5"
    ),
    "wordy_in_run": Want(ERROR, RUN, "", f"xxx; {REPLACED}: Fail: yyy"),
    "rots_in_run": Want(ERROR, RUN, "", f"{REPLACED}: in teardown, SIGSEGV"),
    "long_in_run": Want(ERROR, RUN, "", "xxxxx…"),
    # What onnxruntime before 1.23 does when a provider refuses a model.
    "dropped_at_create": Want(ERROR, Phase.CREATE, "", "made the session without"),
    "unreadable_in_run": Want(ERROR, RUN, "", "without a readable text"),
    "flood_in_run": Want(PASS),
    "say_in_run": Want(PASS),
    "say_in_teardown": Want(PASS),
    "wrong_dtype": Want(Verdict.DTYPE_MISMATCH, COMPARE, "", "got float64, golden is float32"),
    "wrong_shape": Want(Verdict.SHAPE_MISMATCH, COMPARE, "", "float32[2, 2]"),
    "missing_output": Want(Verdict.SHAPE_MISMATCH, COMPARE, "", "outputs missing: 'z'"),
    "extra_output": Want(Verdict.SHAPE_MISMATCH, COMPARE, "", "not asked for: 'w'"),
    "permuted": Want(PASS),
    "nan": Want(Verdict.NAN_MISMATCH, COMPARE, "", "1 of 4 elements"),
    "off_by_one": Want(Verdict.MISMATCH, COMPARE, "", "output 'k': 1 of 4 elements"),
    "reordered": Want(Verdict.MISMATCH, COMPARE, "", "it is the golden backwards along axis 0"),
    "swapped": Want(Verdict.MISMATCH, COMPARE, "", "output 'y'"),
    "stale": Want(Verdict.MISMATCH, COMPARE, "", "output 'y'"),
    "zeros": Want(Verdict.MISMATCH, COMPARE, "", "all zeros"),
    "jitter": Want(Verdict.NONDETERMINISTIC, COMPARE, "", "(9 of 9 further runs)"),
    "small_jitter": Want(PASS),
    "keeps": Want(Verdict.MISMATCH, COMPARE, "", "is the output for the inputs before, bit for bit"),
    "providers_change": Want(Verdict.FALLBACK_AT_RUN, COMPARE, "", "CUDAExecutionProvider"),
    "placed_nowhere": Want(Verdict.FALLBACK, COMPARE, "", "Cast, Neg, Relu"),
    "folded": Want(Verdict.FOLDED, COMPARE, "", "no node was left"),
    "placed_partly": Want(Verdict.PASS_PARTIAL, COMPARE, "", "left to the CPU: Neg"),
    "placed_but_shapes": Want(PASS),
    "hostile_name": Want(Verdict.SHAPE_MISMATCH, COMPARE, "", "outputs missing"),
    "hostile_placement": Want(PASS),
}
TALK = {
    "half_in_run": Want(CRASH, RUN, "exit code 3"),
    "half_in_teardown": Want(PASS, COMPARE, "", f"{AFTER}: exit code 3"),
    "garbage_in_create": Want(CRASH, CREATE, GARBAGE),
    "garbage_in_run": Want(CRASH, RUN, GARBAGE),
    "garbage_in_teardown": Want(PASS, COMPARE, "", f"{AFTER}: {GARBAGE}"),
    "unreadablemessage_in_run": Want(CRASH, RUN, "it sent what cannot be read"),
    "changedmessage_in_run": Want(CRASH, RUN, CHANGED),
    "nomessage_in_run": Want(CRASH, RUN, "it sent what cannot be read"),
    "unreadableandgone_in_run": Want(CRASH, RUN, "it sent what cannot be read"),
    "hangup_in_run": Want(CRASH, RUN, "it closed the stream of its messages, and did not end"),
    "gossip_in_run": Want(CRASH, RUN, f"{NO_FORM}: Invalid value 'gossip' - at `$[0][0]`"),
    "ended_in_run": Want(CRASH, RUN, f"{NO_FORM}: Invalid value 'ended' - at `$[0][0]`"),
    "lunch_in_run": Want(CRASH, RUN, f"{NO_FORM}: Invalid enum value 'lunch' - at `$[0][2]`"),
    "begins_in_run": Want(CRASH, RUN, "it began phase run of one job more often than the job can ask for"),
    "asks_in_run": Want(CRASH, RUN, "it asked for more pieces of a model than its files have"),
    "stranger_in_run": Want(CRASH, RUN, "it sent a message about a model that it does not run"),
    "early_in_run": Want(CRASH, RUN, "it was done with a model without a result"),
    "useless_in_run": Want(CRASH, RUN, "it started twice"),
    "again_in_run": Want(CRASH, RUN, "it started twice"),
    "result_in_run": Want(
        CRASH, RUN, "a result lacks its outputs, their names, the providers or the placement"
    ),
    "result_in_teardown": Want(PASS, COMPARE, "", f"{AFTER}: {WENT_ON}"),
}
HANGS = {
    "hang_in_create": Want(HANG, CREATE, "", "no end of phase create within 2 s"),
    "hang_in_run": Want(HANG, RUN, "", "no end of phase run within 2 s"),
    "hang_in_teardown": Want(PASS, COMPARE, "", "no end within 2 s"),
    # The child keeps the pipe open.
    "fork_in_run": Want(CRASH, RUN, "SIGABRT"),
    "hanggil_in_run": Want(HANG, RUN, "", "no end of phase run within 2 s"),
    "halfhang_in_run": Want(HANG, RUN, "", "no end of phase run within 2 s"),
    "freezes_in_run": Want(ERROR, RUN, "", f"{REPLACED}: in teardown, no end within 2 s"),
}
BEGINNINGS = {
    "ended_in_import": Want(UNAVAILABLE, Phase.START, Cause.IMPORT_FAILED, f"in phase start: {NO_FORM}"),
    "half_in_import": Want(UNAVAILABLE, Phase.START, Cause.IMPORT_FAILED, "in phase start: exit code 3"),
    "garbage_in_register": Want(UNAVAILABLE, REGISTER, Cause.REGISTRATION_FAILED, GARBAGE),
}
VARIANTS = {
    ("placed_but_shapes", "2_placed_but_shapes"): "shaped",
    # What only copies has one right answer, to the last bit.
    ("small_jitter", "2_small_jitter"): "rounded",
    # Its inputs do not fit into a pipe that nobody reads, and must not stop the engine.
    ("hanggil_in_run", "3_after"): "big",
}
SPINS = {"hanggil_in_run"}
"""What is busy for ever hangs for certain only where nothing else may have slowed it down."""
TABLES = {"faults": FAULTS, "talk": TALK, "hangs": HANGS}
ALL = {**FAULTS, **TALK, **HANGS}

pytestmark = pytest.mark.skipif(not POSIX, reason="the fake dies by POSIX signals")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def cells(home: Path) -> dict[str, Finished]:
    for suite, faults in TABLES.items():
        for fault in faults:
            for name in ("1_before", f"2_{fault}", "3_after"):
                write_model(home / suite / fault / f"{name}.onnx", VARIANTS.get((fault, name), ""))
    (home / "tmp").mkdir()
    env = {**FAKE_ENV, "FAKE_MARKER": str(home / "marker"), "TMPDIR": str(home / "tmp")}
    target = {"provider": "CUDAExecutionProvider", "env": env}
    limits = dict.fromkeys(("create", "run", "teardown"), 2.0)
    matrix = {
        "models": {"folders": list(TABLES)},
        # One worker each, but for those that only wait.
        "target": [
            {"name": "faults", **target},
            {"name": "talk", **target},
            {"name": "hangs", "timeouts_s": limits, "workers": 3, **target},
        ],
        "exclude": [{"suite": s, "target": t} for s in TABLES for t in TABLES if s != t],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(home / "tmp"))
        patch.setenv(STARTED_HERE, str(home))
        finished = [event for event in run_matrix(home, matrix) if isinstance(event, Finished)]
    found = {event.record.model.removesuffix(".onnx"): event for event in finished}
    assert len(found) == len(finished) == 3 * len(ALL)
    return found


@pytest.mark.parametrize("fault", ALL)
def test_a_fault_gets_its_verdict_and_harms_nobody_else(cells: dict[str, Finished], fault: str) -> None:
    want = ALL[fault]
    record = cells[f"{fault}/2_{fault}"].record
    if fault in SPINS and record.verdict is Verdict.TIMEOUT:
        want = want._replace(verdict=Verdict.TIMEOUT, reason="in phase run")
    assert (record.verdict, record.phase, record.cause) == (want.verdict, want.phase, want.cause), record
    assert want.reason in record.reason
    assert (record.reason == "") is (want.verdict is PASS and not want.reason), record.reason
    for neighbour in ("1_before", "3_after"):
        record = cells[f"{fault}/{neighbour}"].record
        assert (record.verdict, record.attempt) == (PASS, 1), record


@pytest.fixture(scope="module")
def beginnings(home: Path) -> dict[str, Finished]:
    folder = home / "beginnings"
    write_model(folder / "models" / "1_one.onnx")
    targets = [fake_target(fault, env={"FAKE_FAULT": fault}) for fault in BEGINNINGS]
    events = run_matrix(folder, of_folder(*targets))
    return {event.record.target: event for event in events if isinstance(event, Finished)}


@pytest.mark.parametrize("fault", BEGINNINGS)
def test_a_process_that_talks_nonsense_before_it_is_ready_is_of_no_use(
    beginnings: dict[str, Finished], fault: str
) -> None:
    want, record = BEGINNINGS[fault], beginnings[fault].record
    assert (record.verdict, record.phase, record.cause) == (want.verdict, want.phase, want.cause), record
    assert want.reason in record.reason


@pytest.mark.parametrize("fault", ["killonce_in_run", "kill_in_run"])
def test_only_a_kill_from_outside_gets_a_second_attempt(cells: dict[str, Finished], fault: str) -> None:
    assert cells[f"{fault}/2_{fault}"].record.attempt == 2


def test_every_other_cell_has_one_attempt(cells: dict[str, Finished]) -> None:
    assert {name for name, cell in cells.items() if cell.record.attempt != 1} == {
        "killonce_in_run/2_killonce_in_run",
        "kill_in_run/2_kill_in_run",
    }


def test_what_a_cell_prints_is_its_own(cells: dict[str, Finished]) -> None:
    said = cells["say_in_run/2_say_in_run"].printed
    # Once for each run of the session: the first, that of other inputs, nine further ones.
    assert said.count("stdout of the provider\n") == said.count("buffered in C\n") == 11
    assert "stderr of the provider �\x1b[31m\n" in said
    talkative = {name for name, cell in cells.items() if cell.printed}
    assert {
        name
        for name in talkative
        if not name.endswith(("2_say_in_run", "2_flood_in_run", "2_badalloc_in_run"))
    } == set()


def test_a_flood_keeps_its_head_and_its_tail(cells: dict[str, Finished]) -> None:
    printed = cells["flood_in_run/2_flood_in_run"].printed
    assert 16_000 < len(printed) < 17_000
    assert printed.startswith("noise ")
    assert printed.endswith("noise \n")
    assert " bytes cut ...]" in printed


def test_messages_of_any_length_and_content_become_one_line(cells: dict[str, Finished]) -> None:
    for cell in cells.values():
        assert len(cell.record.reason) <= 300
        assert "\n" not in cell.record.reason
        cell.record.reason.encode()


def test_an_output_name_that_is_no_text_can_be_recorded(cells: dict[str, Finished]) -> None:
    outputs = cells["hostile_name/2_hostile_name"].record.outputs
    assert [output.name[:2] for output in outputs] == ["y", "k", "z", "y?"]


def test_timings_and_placement_come_with_a_result(cells: dict[str, Finished]) -> None:
    record = cells["placed_partly/1_before"].record
    assert record.timings_ms.keys() == {"create", "first_run", "teardown"}
    assert record.placement is not None
    assert (record.placement.ep_nodes, record.placement.partitions, record.placement.source) == (
        3,
        2,
        "assignment",
    )


def test_no_process_survives(cells: dict[str, Finished], home: Path) -> None:
    assert cells
    marks = (f"{STARTED_HERE}={home}\0".encode(), f"FAKE_MARKER={home / 'marker'}\0".encode())
    deadline = time.monotonic() + 60.0
    while (left := alive(marks)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def alive(marks: tuple[bytes, ...]) -> list[str]:
    """Command lines of processes, zombies apart, that were started with one of these variables."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is none of ours
            held = environ.read_bytes()
            if any(mark in held for mark in marks):
                found.append((environ.parent / "cmdline").read_text(encoding="utf-8").replace("\0", " "))
    return found


def test_a_child_of_a_dead_process_dies_with_it(cells: dict[str, Finished], home: Path) -> None:
    assert cells
    pid = int((home / "marker.child").read_text(encoding="utf-8"))
    with contextlib.suppress(FileNotFoundError):  # a zombie may wait for whoever adopted it
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        assert state == "Z"


def test_no_temporary_file_survives(cells: dict[str, Finished], home: Path) -> None:
    assert cells
    assert list((home / "tmp").iterdir()) == []
