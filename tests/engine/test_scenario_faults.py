"""What can go wrong in a scenario, with the onnxruntime that misbehaves on demand: a verdict and a phase."""

import contextlib
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from tests.kit import FAKE_ENV, records_of, run_matrix, write_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake dies by POSIX signals")

CREATE, RUN, COMPARE, TEARDOWN = Phase.CREATE, Phase.RUN, Phase.COMPARE, Phase.TEARDOWN


class Want(NamedTuple):
    """What a fault shall come to in a scenario."""

    scenario: str
    fault: str
    verdict: Verdict
    phase: Phase = COMPARE
    cause: str = ""
    reason: str = ""


WANTED = [
    Want("concurrent", "", Verdict.PASS),
    Want("concurrent", "crosstalk", Verdict.MISMATCH, COMPARE, "", "output 'z'"),
    Want("concurrent", "crowded", Verdict.ERROR, RUN, "", "one at a time"),
    Want("concurrent", "segv_in_run", Verdict.CRASH, RUN, "SIGSEGV"),
    Want("sessions", "", Verdict.PASS),
    Want("sessions", "segv_in_teardown", Verdict.CRASH, TEARDOWN, "SIGSEGV", "died in phase teardown"),
    Want("sessions", "tires", Verdict.PASS),  # it never gets old enough
    Want("ep_context", "", Verdict.PASS),
    Want("ep_context", "other_context", Verdict.MISMATCH, COMPARE, "", "output 'z'"),
    Want("ep_context", "segv_in_create", Verdict.CRASH, CREATE, "SIGSEGV"),
    Want("ep_context", "segv_in_reload", Verdict.CRASH, CREATE, "SIGSEGV"),
    Want("ep_context", "segv_in_rerun", Verdict.CRASH, RUN, "SIGSEGV"),
    Want("ep_context", "exit3_in_rerun", Verdict.CRASH, RUN, "exit code 3"),
    Want("ep_context", "exit0_in_rerun", Verdict.ERROR, RUN, "", "ended without a message"),
    Want("ep_context", "error_in_reload", Verdict.ERROR, CREATE, "", "in a fresh process: "),
    Want("ep_context", "not_compiled", Verdict.UNSUPPORTED, RUN, "", "runs 3 of 3 nodes, and compiles none"),
    Want("ep_context", "empty_context", Verdict.UNSUPPORTED, RUN, "", "no EPContext node was written"),
    Want("ep_context", "never_compiled", Verdict.UNSUPPORTED, CREATE, "", "cannot be asked for a context"),
]
STUCK = Want("ep_context", "stuck_in_reload", Verdict.HANG, CREATE, "", "no end of phase create within 15 s")
LEAKING = 30  # sessions, of which each keeps a MiB


@pytest.fixture(scope="module")
def marker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("marker") / "pid"


@pytest.fixture(scope="module")
def records(marker: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Record]:
    home = tmp_path_factory.mktemp("scenario_faults")
    env = {**FAKE_ENV, "FAKE_MARKER": str(marker)}
    ep = {"provider": "CUDAExecutionProvider"}
    # One worker for each scenario, with all its faults; they share nothing but the runtime.
    targets: list[dict[str, Any]] = [
        {"name": scenario, "env": env, "axes": {"scenario": [scenario]}, **ep}
        for scenario in ("concurrent", "sessions", "ep_context")
    ]
    stuck = {"axes": {"scenario": ["ep_context"]}, "timeouts_s": {"create": 15.0}, "env": env}
    leaking = {"axes": {"scenario": ["sessions"]}, "env": {**env, "FAKE_FAULT": "leak"}}
    targets += [{"name": "stuck", **stuck, **ep}, {"name": "leaking", **leaking, **ep}]
    for want in (*WANTED, STUCK):
        folder = "stuck" if want is STUCK else want.scenario
        write_model(home / folder / f"1_{want.fault}.onnx")
    write_model(home / "leaking" / "1_.onnx")
    names = [target["name"] for target in targets]
    matrix = {
        "models": {"folders": names},
        "scenarios": {"concurrent": {"threads": 4, "runs": 5}, "sessions": {"count": LEAKING}},
        "target": targets,
        "exclude": [{"suite": suite, "target": name} for suite in names for name in names if suite != name],
    }
    found = records_of(run_matrix(home, matrix))
    return {(record.target, record.model.removesuffix(".onnx").partition("_")[2]): record for record in found}


@pytest.mark.parametrize("want", WANTED, ids=lambda want: f"{want.scenario}-{want.fault}")
def test_a_fault_gets_its_verdict(records: dict[tuple[str, str], Record], want: Want) -> None:
    record = records[want.scenario, want.fault]
    assert (record.verdict, record.phase, record.cause) == (want.verdict, want.phase, want.cause), record
    assert want.reason in record.reason


def test_a_hang_of_the_fresh_process_ends_it_too(
    records: dict[tuple[str, str], Record], marker: Path
) -> None:
    record = records["stuck", STUCK.fault]
    assert (record.verdict, record.phase) == (STUCK.verdict, STUCK.phase), record
    assert STUCK.reason in record.reason
    stat = Path("/proc", marker.read_text(encoding="utf-8"), "stat")
    deadline = time.monotonic() + 60
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        while ") Z " not in stat.read_text(encoding="utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_concurrent_runs_that_differ_are_counted(records: dict[tuple[str, str], Record]) -> None:
    facts = records["concurrent", "crosstalk"].scenario
    differing = facts["differing_runs"]
    assert isinstance(differing, int)
    assert facts["runs"] == 20
    assert 0 < differing <= 20
    assert records["concurrent", ""].scenario["differing_runs"] == 0


def test_a_context_is_compared_with_what_it_was_made_of(records: dict[tuple[str, str], Record]) -> None:
    assert records["ep_context", ""].scenario["equal_to_compiled"] is True
    assert records["ep_context", "other_context"].scenario["equal_to_compiled"] is False
    assert records["ep_context", ""].scenario["embedded"] is True


def test_memory_that_sessions_keep_shows_as_growth(records: dict[tuple[str, str], Record]) -> None:
    facts = records["leaking", ""].scenario
    assert facts["count"] == LEAKING
    growth = facts["growth_mib"]
    assert isinstance(growth, float)
    assert 0.8 < growth < 1.5
    tight = records["sessions", ""].scenario["growth_mib"]
    assert isinstance(tight, float)
    assert tight < 0.5
