"""An agent that is a program of its own: here, behind a command, ssh or adb, and at places."""

import queue
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.engine.processes.launch import launch
from harness.engine.processes.process import ENDED, AgentProcess
from harness.plan.target import Runtime
from tests.kit import harness, make_matrix, of_folder, records_of, run_matrix
from tests.programs import write_program

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("perl") is None, reason="it needs a shell, and Perl"
)

EXAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "my_agent.pl"

# Both hand one line to a shell of the other machine, whose home is a folder of the test.
FAKE_SSH = """#!/bin/sh
echo "ssh $*" >>"$CALLS"
while [ "$1" != "--" ]; do shift; done
shift 2
HOME=$FAR exec sh -c "$*"
"""
# This machine has no /data/local/tmp: the words of the shell there name a folder of the test.
FAKE_ADB = f"""#!{sys.executable}
import os, shutil, sys
open(os.environ["CALLS"], "a").write("adb %s\\n" % " ".join(sys.argv[1:]))
there = lambda text: text.replace("/data/local/tmp", os.environ["FAR"])
if sys.argv[1:3] != ["-s", "board7"]:
    sys.exit("adb: device %r not found" % sys.argv[2])
verb, words = sys.argv[3], sys.argv[4:]
if verb == "push":
    shutil.copyfile(words[0], there(words[1]))
elif verb == "reverse":
    sys.exit(words[0] != words[1])
else:
    script = " ".join(words)
    if "read -r script" in script:
        line = b""
        while not line.endswith(b"\\n"):
            line += os.read(0, 1)
        script = line.decode()
    os.execvp("sh", ["sh", "-c", there(script)])
"""
DIES = """#!/bin/sh
read -r word hello
token=${hello#*\\"token\\": \\"}
echo "ep-agent {\\"protocol\\": 1, \\"token\\": \\"${token%%\\"*}\\", \\"mode\\": \\"line\\"}"
echo "last words, with $SETTING" >&2
kill -SEGV $$
"""


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the agent beside the matrix, and the fakes of ssh and adb first on the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    write_program(programs / "ssh", FAKE_SSH)
    write_program(programs / "adb", FAKE_ADB)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    home = tmp_path / "far"
    home.mkdir()
    monkeypatch.setenv("FAR", str(home))
    shutil.copy(EXAMPLE, tmp_path / "my_agent.pl")
    return home


def absolute_value(path: Path) -> None:
    """Write y = |x| with a data set."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", value[:1], value[1:])
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    data = path.parent / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(made, path)
    given = np.array([-1.5, 0.0, 2.0], np.float32)
    for name, array in (("input_0", given), ("output_0", np.abs(given))):
        (data / f"{name}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def run_with(folder: Path, runtime: dict[str, Any], **table: Any) -> list[Record]:
    """Run a model on a target with a runtime."""
    absolute_value(folder / "models" / "abs" / "model.onnx")
    target = {"name": "perl", "provider": "CPUExecutionProvider", "runtime": runtime, **table}
    return records_of(run_matrix(folder, of_folder(target), processes=1))


AGENT = ["./my_agent.pl", "--flag"]


@pytest.mark.parametrize(
    "runtime",
    [
        {"agent": AGENT},
        {"agent": AGENT, "channel": "line"},
        {"agent": AGENT, "channel": "socket"},
        {"agent": AGENT, "command": "env SETTING=x"},
        {"agent": AGENT, "ssh": "user@board"},
        {"agent": ["perl", "./my_agent.pl"], "ssh": "user@board"},
        {"agent": AGENT, "adb": "board7"},
        {"agent": AGENT, "adb": "board7", "channel": "socket"},
    ],
    ids=lambda runtime: "-".join([*runtime, runtime.get("channel", "")]),
)
def test_it_runs_wherever_it_is(runtime: dict[str, Any], far: Path, tmp_path: Path) -> None:
    records = run_with(tmp_path, runtime)
    assert [record.verdict for record in records] == [Verdict.PASS], records[0].reason
    kept = [path.relative_to(far) for path in far.rglob("*") if path.is_file()]
    calls = (tmp_path / "calls").read_text() if "ssh" in runtime or "adb" in runtime else ""
    assert [path.name for path in kept] == (["my_agent.pl"] if calls else [])  # its folders are gone
    if calls:
        assert len(kept[0].parent.name) == 64  # SHA-256
        assert calls.count("push " if "adb" in runtime else "cat >") == 1


def test_it_runs_at_places(far: Path, tmp_path: Path) -> None:
    places = [{"name": "one", "ssh": "one"}, {"name": "two", "adb": "board7"}]
    records = run_with(tmp_path, {"agent": AGENT}, places=places)
    assert [record.verdict for record in records] == [Verdict.PASS], records[0].reason
    assert len(list(far.rglob("my_agent.pl"))) == 2


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("way", [{}, {"ssh": "board"}, {"adb": "board7"}, {"command": "env A=b"}])
def test_its_end_is_told_from_anywhere(way: dict[str, Any], tmp_path: Path) -> None:
    write_program(tmp_path / "dies.sh", DIES)
    program = str(tmp_path / "dies.sh")
    folder = tmp_path / "process"
    folder.mkdir()
    runtime = Runtime(agent=(program,), agent_files=(program,), **way)
    process = AgentProcess(launch(runtime, {"SETTING": "a 'quoted' value"}, folder))
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=process.serve, args=(messages.put,), daemon=True).start()
    assert messages.get(timeout=60) is ENDED
    assert process.wait() == "SIGSEGV"
    assert "last words, with a 'quoted' value" in process.printed()
    assert not process.lost


@pytest.mark.usefixtures("far")
def test_a_connection_that_fails_is_no_crash(tmp_path: Path) -> None:
    (record,) = run_with(tmp_path, {"agent": AGENT, "adb": "board8"})
    assert record.verdict == Verdict.UNAVAILABLE
    assert "device 'board8' not found" in record.reason


@pytest.mark.usefixtures("far")
def test_a_program_that_is_missing_is_told(tmp_path: Path) -> None:
    (record,) = run_with(tmp_path, {"agent": ["./none"]})
    assert record.verdict == Verdict.UNAVAILABLE
    assert "there is no such program" in record.reason


@pytest.mark.parametrize(
    ("runtime", "problem"),
    [
        ({"adb": "board7"}, "it needs `agent`: a phone has no Python"),
        ({"agent": AGENT, "python": "python3"}, "got python and agent, which exclude each other"),
        ({"agent": []}, "agent"),
        ({"agent": AGENT, "ssh": "a", "adb": "b"}, "exclude each other"),
    ],
)
def test_contradictions_are_refused(runtime: dict[str, Any], problem: str) -> None:
    target = {"name": "t", "provider": "CPUExecutionProvider", "runtime": runtime}
    with pytest.raises(UsageError, match=problem):
        make_matrix(of_folder(target))


def test_check_names_a_missing_agent_and_what_excludes_it(tmp_path: Path) -> None:
    done = harness("check", "CPUExecutionProvider", "--agent", "./none", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "--agent: there is no program ./none" in done.stderr


def test_the_example_passes_agent_check() -> None:
    """All checks but the slowest; none fails."""
    words = ("agent-check", "--large", "1", "--only", "jobs", "--", str(EXAMPLE))
    done = harness(*words)
    assert done.returncode == 0, done.stdout
    assert " 0 failed" in done.stdout
