"""The agent in C for Windows, under wine: `tox -e windows`. What needs no wine is quick."""

import os
import queue
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.engine.processes import windows_shell
from harness.engine.processes.launch import launch
from harness.engine.processes.process import ENDED, AgentProcess
from harness.plan.target import Runtime
from harness.runtimes.native_agent import build_agent
from tests.kit import harness, read_records
from tests.programs import write_program

LIBRARY = "EP_HARNESS_WINDOWS_ONNXRUNTIME"
"""The variable with the path of the onnxruntime.dll of a wheel for Windows."""

TRIPLE = "x86_64-w64-mingw32"
needs_wine = pytest.mark.skipif(
    shutil.which("wine") is None or shutil.which(f"{TRIPLE}-gcc") is None,
    reason="it needs Debian's wine and gcc-mingw-w64-x86-64",
)
needs_library = pytest.mark.skipif(not os.environ.get(LIBRARY), reason=f"it needs {LIBRARY}")

# As Windows' OpenSSH: a command goes to cmd.exe, and begins in the user's folder.
FAKE_SSH = """#!/bin/sh
printf '%s\\n' "ssh $*" >>"$CALLS"
while [ "$1" != "--" ]; do shift; done
shift 2
cd "$FAR" && exec wine cmd /c "$*"
"""
FAKE_SCP = """#!/bin/sh
printf '%s\\n' "scp $*" >>"$CALLS"
while [ "$1" != "--" ]; do shift; done
exec cp "$2" "$FAR/${3#*:}"
"""
DIES = "__declspec(dllexport) const void *OrtGetApiBase(void) { return *(void *volatile *)0; }"
SHOWS = """#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    for (int index = 1; index < count; index++) printf("[%s]", words[index]);
    printf("[%s]", getenv("ODD"));
}"""
ODD = ["a b", "100% of %PATH%", 'q"u"o', "x&y|z<1>2", "(^!)", "\\", "c\\ d\\", ""]


def compiled(text: str, path: Path, *flags: str) -> Path:
    """Compile a C program for Windows."""
    source = path.with_suffix(".c")
    source.write_text(text)
    subprocess.run([f"{TRIPLE}-gcc", *flags, str(source), "-o", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the agent."""
    return build_agent(tmp_path_factory.mktemp("windows") / "agent.exe", target=TRIPLE).path


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what wine has to say of itself."""
    monkeypatch.setenv("WINEDEBUG", "-all")


def ended(runtime: Runtime, folder: Path) -> tuple[str, str]:
    """Return how an agent ended that dies as it starts, and what it printed."""
    folder.mkdir()
    process = AgentProcess(launch(runtime, {}, folder))
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=process.serve, args=(messages.put,), daemon=True).start()
    while messages.get(timeout=120) is not ENDED:
        continue
    return process.wait(), process.printed()


def test_a_variable_that_no_batch_file_can_set_is_refused() -> None:
    with pytest.raises(ValueError, match="variable A has a line feed"):
        windows_shell.batch_file({"A": "1\n2"}, ["agent.exe"], "marker")


def test_a_command_for_either_shell_has_no_character_that_one_of_them_changes() -> None:
    name = windows_shell.plain_name("my agent's $(1) `x`; & %.exe")
    assert windows_shell.said(f"if exist a/{name} echo present") == (
        f"cmd /d /c if exist a\\{name} echo present"
    )
    assert name == "my_agent_s___1___x______.exe"


@needs_wine
@pytest.mark.long
def test_odd_words_and_variables_arrive_through_a_batch_file(tmp_path: Path) -> None:
    shows = compiled(SHOWS, tmp_path / "shows.exe")
    words = [f"..\\{shows.name}", *map(windows_shell.escaped, ODD)]
    batch = windows_shell.batch_file({"ODD": "".join(ODD)}, words, "end")
    (tmp_path / "run.cmd").write_bytes(batch.encode())
    done = subprocess.run(
        ["wine", "cmd", "/d", "/c", "run.cmd"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "".join(f"[{word}]" for word in [*ODD, "".join(ODD)])
    assert done.stderr.strip() == "end"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shows.c", "shows.exe"]


@needs_wine
@pytest.mark.long
@pytest.mark.parametrize("way", ["here", "ssh"])
def test_a_crash_has_the_name_of_its_status(
    way: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = compiled(DIES, tmp_path / "dies.dll", "-shared")
    (tmp_path / "bin").mkdir()
    write_program(tmp_path / "bin" / "ssh", FAKE_SSH)
    write_program(tmp_path / "bin" / "scp", FAKE_SCP)
    far = tmp_path / "far"
    far.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("FAR", str(far))
    words = (str(program), "--library", str(dies))
    runtime = (
        Runtime(agent=words, agent_files=(words[0], words[2]), ssh="user@pc")
        if way == "ssh"
        else Runtime(agent=("wine", *words))
    )
    how, printed = ended(runtime, tmp_path / "process")
    assert how == "0xC0000005: access violation", printed
    kept = [path.name for path in far.rglob("*") if path.is_file()]
    assert sorted(kept) == (["agent.exe", "dies.dll"] if way == "ssh" else [])


@needs_wine
@needs_library
@pytest.mark.long
def test_it_passes_every_check(program: Path) -> None:
    words = ("wine", program, "--library", os.environ[LIBRARY])
    done = harness("agent-check", "--large", "16", "--", *words, timeout_s=900)
    assert " 0 failed" in done.stdout, done.stdout


MATRIX = """
schema = 1
[models]
suites = ["onnx-node"]
[[target]]
name = "linux"
provider = "CPUExecutionProvider"
runtime = {{ packages = ["onnxruntime==1.32.0"] }}
[[target]]
name = "windows"
provider = "CPUExecutionProvider"
runtime = {{ agent = ["wine", "{program}", "--library", "{library}"] }}
"""


@needs_wine
@needs_library
@pytest.mark.long
def test_operators_have_the_verdicts_of_linux(program: Path, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(MATRIX.format(program=program, library=os.environ[LIBRARY]))
    done = harness("run", "m.toml", "--no-report", "--out", "run", cwd=tmp_path, timeout_s=1800)
    found: dict[str, dict[str, tuple[str, str]]] = {"linux": {}, "windows": {}}
    for record in read_records(tmp_path / "run"):
        found[record.target][record.model] = (record.verdict, record.reason)
    assert len(found["windows"]) > 1800, done.stderr
    differing = {
        name: (found["linux"][name], one)
        for name, one in found["windows"].items()
        if one[0] != found["linux"][name][0] and "lacks this locale" not in found["linux"][name][1]
    }
    assert differing == {}
