"""Agents elsewhere: the same verdicts as here, whatever the agent does and the connection becomes."""

import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper, numpy_helper

from harness.core.records.record import Record
from harness.core.records.verdict import Cause, Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from harness.engine.processes.launch import launch
from harness.engine.processes.process import AgentProcess
from harness.engine.processes.started import SSH
from harness.engine.tasks.events import Event, Finished, TargetReady
from harness.engine.workers import job
from harness.plan.target import Runtime
from tests.kit import FAKE_ENV, fake_target, of_folder, records_of, run_matrix, write_model
from tests.programs import write_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fake looks at /proc")


CUDA = "CUDAExecutionProvider"
PYTHON = shlex.quote(sys.executable)
# What ssh makes of its arguments: one line for the shell of the other machine.
FAKE_SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
host=$2
shift 2
case $host in
    gone) echo "ssh: connect to host gone port 22: Connection refused" >&2; exit 255 ;;
esac
sh -c "$*"
"""
FAULTS = [
    "fine",
    "segv_in_create",
    "abort_in_run",
    "exit3_in_run",
    "exit0_in_run",
    "badalloc_in_run",
    "kill_in_run",
    "orphan_in_run",
    "fork_in_run",
    "memory_in_run",
    "error_in_run",
    "say_in_run",
    "hang_in_run",
    "hanggil_in_run",
    "garbage_in_run",
    "unreadablemessage_in_run",
    "segv_in_teardown",
    "placed_partly",
    "off_by_one",
]
OVER_SSH = ("fine", "segv_in_create", "exit3_in_run", "hanggil_in_run", "garbage_in_run", "off_by_one")
"""Behind ssh there is the same launcher as behind a command: these show that it is reached."""

TARGETS: dict[str, dict[str, Any]] = {
    "here": {},
    "command": {"runtime": {"command": f"nice {PYTHON}"}},
    "ssh": {"runtime": {"ssh": "box", "python": sys.executable}},
}


@pytest.fixture(scope="module", autouse=True)
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Something that is called ssh, and how it behaves."""
    home = tmp_path_factory.mktemp("bin")
    write_program(home / "ssh", FAKE_SSH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
        yield home


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Of a target: the fake, and a cache of its own."""
    return {**FAKE_ENV, "FAKE_MARKER": str(tmp_path / "marker"), ENVIRONMENT: str(tmp_path / "far")}


def records(events: list[Event], target: str) -> dict[str, Record]:
    found = records_of(events)
    return {record.model: record for record in found if record.target == target}


def kept(tmp_path: Path) -> list[Path]:
    """The models in the cache of a target; what a process may just be unpacking has no digest for a name."""
    return sorted(entry for entry in (tmp_path / "far" / "models").iterdir() if len(entry.name) == 64)


def far(env: dict[str, str], **more: Any) -> dict[str, Any]:
    target = {"name": "far", "provider": CUDA, "runtime": {"command": PYTHON}, "env": env, **more}
    return of_folder(target)


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    home = tmp_path_factory.mktemp("faults")
    for number, fault in enumerate(FAULTS):
        write_model(home / "models" / f"{number:02}_{fault}.onnx")
    targets = [
        fake_target(
            name,
            timeouts_s={"create": 2.0, "run": 2.0, "teardown": 2.0},
            **table,
            env={"FAKE_MARKER": str(home / name), ENVIRONMENT: str(home / f"{name}-cache")},
        )
        for name, table in TARGETS.items()
    ]
    others = [f"*_{fault}.onnx" for fault in FAULTS if fault not in OVER_SSH]
    exclude = [{"target": "ssh", "model": others}]
    matrix = of_folder(*targets, exclude=exclude)
    return run_matrix(home, matrix, processes=2)


@pytest.mark.parametrize(
    ("target", "fault"),
    [*(("command", fault) for fault in FAULTS), *(("ssh", fault) for fault in OVER_SSH)],
)
def test_a_fault_is_the_same_elsewhere(faults: list[Event], target: str, fault: str) -> None:
    found = {
        event.record.target: (
            event.record.verdict,
            event.record.cause,
            event.record.phase,
            # What it did until then is told from elsewhere every ten seconds only, and how long it took where
            # that is much longer than the limit, as on a busy machine.
            re.split(r", after [\d.]+ s|; it (?:used|could not be seen)", event.record.reason)[0],
            event.record.outputs,
            event.record.placement,
            # What hangs cannot be asked what it printed.
            "" if event.record.verdict is Verdict.HANG else event.printed.strip(),
        )
        for event in faults
        if isinstance(event, Finished) and event.record.model.endswith(f"_{fault}.onnx")
    }
    assert found[target] == found["here"]


def test_a_hang_out_of_reach_ends_with_the_connection(tmp_path: Path, env: dict[str, str]) -> None:
    write_model(tmp_path / "models" / "1_stuck_in_run.onnx")
    for runtime in (TARGETS["ssh"]["runtime"], {"command": PYTHON}):
        events = run_matrix(tmp_path, far(env, runtime=runtime, timeouts_s={"run": 1.0}))
        assert records(events, "far")["1_stuck_in_run.onnx"].verdict is Verdict.HANG
        agent = Path("/proc", (tmp_path / "marker").read_text(encoding="utf-8"))
        deadline = time.monotonic() + 60
        while agent.exists() and ") Z " not in (agent / "stat").read_text(encoding="utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_variables_are_set_over_there(tmp_path: Path, env: dict[str, str]) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    wrapper = tmp_path / "wrapper"
    write_program(wrapper, f'#!/bin/sh\nenv > {tmp_path}/seen\nexec {PYTHON} "$@"\n')
    odd = "'\"$HOME `id` %PATH% \\ ü;"
    table = far({**env, "FAKE_VERSION": "1.30.0", "ODD": odd}, runtime={"command": str(wrapper)})
    events = run_matrix(tmp_path, table)
    (ready,) = (event for event in events if isinstance(event, TargetReady))
    assert ready.fingerprint["onnxruntime"] == "1.30.0"
    assert "FAKE_VERSION" not in (tmp_path / "seen").read_text(encoding="utf-8")


def test_a_lost_connection_costs_a_second_try(tmp_path: Path, env: dict[str, str]) -> None:
    for name in ("1_cutoffonce_in_run", "2_cutoff_in_run", "3_fine"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    events = run_matrix(tmp_path, far(env, runtime=TARGETS["ssh"]["runtime"]))
    once, always, fine = (record for _, record in sorted(records(events, "far").items()))
    assert (once.verdict, once.attempt) == (Verdict.PASS, 2)
    assert (always.verdict, always.cause, always.attempt) == (Verdict.UNAVAILABLE, Cause.NO_DEVICE, 2)
    assert always.reason == "the connection was lost in phase run, and so it was in the try before"
    assert fine.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("runtime", "cause", "reason"),
    [
        ({"ssh": "gone"}, Cause.NO_DEVICE, "the connection was lost; it printed: ssh: connect to host gone"),
        ({"ssh": "box", "python": "gone/bin/python"}, Cause.IMPORT_FAILED, "exit code 127; it printed: "),
        ({"command": "sh -c 'exit 255'"}, Cause.IMPORT_FAILED, "in phase start: exit code 255"),
    ],
    ids=["host", "python", "command"],
)
def test_where_nothing_answers(
    tmp_path: Path, env: dict[str, str], runtime: dict[str, str], cause: Cause, reason: str
) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    events = run_matrix(tmp_path, far(env, runtime=runtime))
    record = records(events, "far")["1_fine.onnx"]
    assert (record.verdict, record.cause) == (Verdict.UNAVAILABLE, cause)
    assert reason in record.reason


def test_a_model_travels_once(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    piece = job.piece

    def counted(case: Any, name: str, offset: int) -> bytes | None:
        asked.append((name, offset))
        return piece(case, name, offset)

    monkeypatch.setattr("harness.engine.workers.worker.piece", counted)
    monkeypatch.setattr(job, "CHUNK_BYTES", 100)
    for number in range(6):
        write_model(tmp_path / "models" / f"{number}_fine.onnx", "big" if number == 5 else "")
    table = far(env, axes={"execution_mode": ["sequential", "parallel"]})
    for turn in range(2):
        found = records_of(run_matrix(tmp_path, table))
        assert [record.verdict for record in found] == [Verdict.PASS] * 12
        # Five of the six have the same content, but names of their own.
        assert len(kept(tmp_path)) == 6
        assert len(asked) == len(set(asked)) > 6, f"turn {turn}"


def save_with_external_data(path: Path) -> None:
    rng = np.random.default_rng(1)
    weights = [numpy_helper.from_array(rng.standard_normal((8, 8), np.float32), name) for name in "vw"]
    for weight, location in zip(weights, ("v.bin", "weights/w.bin"), strict=True):
        external_data_helper.set_external_data(weight, location)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 8])],
        [helper.make_tensor_value_info("y", 1, [2, 8])],
        weights,
    )
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    (path.parent / "weights").mkdir(parents=True)
    external_data_helper.write_external_data_tensors(model, str(path.parent))
    onnx.save(model, path)


def test_external_data_travels_too(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    save_with_external_data(tmp_path / "models" / "m.onnx")
    base = {"provider": "CPUExecutionProvider", "env": {ENVIRONMENT: str(tmp_path / "far")}}
    targets = [{**base, **table, "name": name} for name, table in TARGETS.items()]
    events = run_matrix(tmp_path, of_folder(*targets))
    here, *others = (records(events, name)["m.onnx"] for name in TARGETS)
    assert here.verdict is Verdict.PASS
    for other in others:
        assert (other.verdict, other.outputs, other.placement) == (here.verdict, here.outputs, here.placement)
    (model,) = kept(tmp_path)
    files = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()}
    assert files == {"m.onnx", "v.bin", "weights/w.bin"}


def test_a_model_that_is_damaged_over_there_travels_again(tmp_path: Path, env: dict[str, str]) -> None:
    write_model(tmp_path / "models" / "1_fine.onnx")
    run_matrix(tmp_path, far(env))
    (model,) = kept(tmp_path)
    (file,) = model.iterdir()
    content = file.read_bytes()
    for damage in (b"", bytes(len(content))):
        file.write_bytes(damage)
        (record,) = records(run_matrix(tmp_path, far(env)), "far").values()
        assert record.verdict is Verdict.PASS
        assert file.read_bytes() == content


def test_a_model_that_goes_missing_on_its_way_says_so(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.engine.workers.worker.piece", lambda *_: None)
    write_model(tmp_path / "models" / "1_fine.onnx")
    (record,) = records(run_matrix(tmp_path, far(env)), "far").values()
    assert record.verdict is Verdict.NO_GOLDEN
    assert record.reason == "the model did not arrive: 1_fine.onnx can no longer be read"
    assert kept(tmp_path) == []


def test_without_a_cache_models_end_with_the_process(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "file").touch()
    write_model(tmp_path / "models" / "1_fine.onnx")
    table = far({**env, ENVIRONMENT: str(tmp_path / "file")})
    (record,) = records(run_matrix(tmp_path, table), "far").values()
    assert record.verdict is Verdict.PASS


def test_how_ssh_is_called(tmp_path: Path, ssh: Path) -> None:
    (ssh / "ssh").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/seen\n', encoding="utf-8")
    (tmp_path / "own").mkdir()
    runtime = Runtime(ssh="-oProxyCommand=evil", python="~/my env/bin/python3")
    try:
        process = AgentProcess(launch(runtime, {"KEY": "secret"}, tmp_path / "own"))
        process.serve(lambda _: None)
        process.wait()
    finally:
        (ssh / "ssh").write_text(FAKE_SSH, encoding="utf-8")
    seen = (tmp_path / "seen").read_text(encoding="utf-8").splitlines()
    assert seen[: len(SSH) - 1] == list(SSH[1:])
    assert seen[len(SSH) - 1 : len(SSH) + 2] == ["-oProxyCommand=evil", "'./my env/bin/python3'", "-I"]
    assert "secret" not in " ".join(seen)
