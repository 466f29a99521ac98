"""The agent's modules in a process that has none of them, or others of the same name."""

import py_compile
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.agent.importer import Importer
from harness.engine.processes.launch import agent_source

UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH

Open = Callable[..., Any]

HOSTILE = "raise SystemExit('this is not the harness that was sent')\n"
# Such as a .pth file imports at the start of each process.
REPORT = """
import atexit, sys
atexit.register(lambda: open(%r, "w").write(" ".join(sys.modules)))
"""


def loaded_after_a_start(open_channel: Open, tmp_path: Path, *, first: str = "") -> list[str]:
    """Modules that an agent has loaded once it is ready."""
    seen = tmp_path / "seen"
    (tmp_path / "sitecustomize.py").write_text(first + REPORT % str(seen), encoding="utf-8")
    agent = open_channel({"PYTHONPATH": str(tmp_path)})
    assert agent.receive() == ("imported",)
    agent.send(("config", {"providers": ["CPUExecutionProvider"], "options": {}}))
    assert agent.receive()[0] == "ready"
    agent.stop()
    return seen.read_text(encoding="utf-8").split()


def test_what_no_job_has_asked_for_is_not_loaded(open_channel: Open, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    loaded = loaded_after_a_start(open_channel, tmp_path)
    assert "harness.agent.agent" in loaded
    assert not [name for name in loaded if name.startswith("harness.agent.scenarios")]
    assert "harness.agent.model_store" not in loaded
    assert "harness.core" not in loaded
    # Each takes 1 to 4 ms of a start's 120, and few jobs need it.
    bare = [sys.executable, "-c", "import sys, numpy, onnxruntime; print(*sys.modules)"]
    there = subprocess.run(bare, capture_output=True, encoding="utf-8", check=True, timeout=60).stdout.split()
    assert {"shutil", "socket", "subprocess", "tempfile"} & set(loaded) <= set(there)


def test_what_was_sent_wins_over_what_is_installed(
    open_channel: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    for folder in ("harness", "harness/agent"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "harness" / "agent" / "agent.py").write_text(HOSTILE, encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text("import harness.agent\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", "import harness.agent.agent"], capture_output=True, check=False, timeout=60
    )
    assert b"this is not the harness" in done.stderr
    loaded = loaded_after_a_start(open_channel, tmp_path, first="import harness.agent\n")
    assert "harness.agent.session_target" in loaded


def test_a_traceback_shows_file_line_and_text() -> None:
    source = "def fail():\n    # a line that is not at fault\n    return 1 / 0  # the one that is\n"
    program = f"""
import inspect, sys, traceback
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from harness.agent.importer import Importer
Importer({{"harness": "", "harness.faulty": {source!r}}}).install()
import harness.faulty
try:
    harness.faulty.fail()
except ZeroDivisionError:
    print(traceback.format_exc())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    assert 'File "harness/faulty.py", line 3, in fail\n    return 1 / 0  # the one that is' in done.stdout, (
        done
    )


def test_packages_are_distinguished_from_modules() -> None:
    importer = Importer({"harness": "", "harness.a": "", "harness.a.b": ""})
    for name, is_package in (("harness", True), ("harness.a", True), ("harness.a.b", False)):
        spec = importer.find_spec(name)
        assert spec is not None
        assert (spec.submodule_search_locations is not None) is is_package
    assert importer.find_spec("harness.c") is None
    assert importer.find_spec("onnxruntime") is None


def test_the_source_takes_little_of_a_slow_line() -> None:
    # At 12 KB/s it takes 17 seconds, once for each process.
    assert len(agent_source()) < 207_000


def imported(source: str, folder: Path | str) -> str:
    """Return what a module of this source says if the files of ``harness.agent`` are in a folder."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from harness.agent.importer import Importer
Importer({{"harness": "", "harness.agent": "", "harness.agent.said": {source!r}}}, {str(folder)!r}).install()
import harness.agent.said
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


def test_a_compiled_file_is_used_only_beside_the_source_that_was_sent(tmp_path: Path) -> None:
    file, source = tmp_path / "said.py", "print('sent')\n"
    file.write_text(source.replace("sent", "kept"), encoding="utf-8")
    compiled = Path(str(py_compile.compile(str(file), doraise=True, invalidation_mode=UNCHECKED)))
    assert imported(source, tmp_path) == "sent\n"
    file.write_text(source, encoding="utf-8")
    assert imported(source, tmp_path) == "kept\n"  # what Python would import from there
    for broken in (b"", compiled.read_bytes()[:40]):
        compiled.write_bytes(broken)
        assert imported(source, tmp_path) == "sent\n"


def test_a_machine_without_the_folder_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, source = tmp_path / "said.py", "print('sent')\n"
    file.write_text(source.replace("sent", "kept"), encoding="utf-8")
    py_compile.compile(str(file), doraise=True, invalidation_mode=UNCHECKED)
    file.write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert imported(source, "") == imported(source, tmp_path / "none") == "sent\n"


def test_a_traceback_of_a_compiled_file_names_no_folder(tmp_path: Path) -> None:
    source = "def fail():\n    return 1 / 0\nfail()\n"
    (tmp_path / "said.py").write_text(source, encoding="utf-8")
    py_compile.compile(str(tmp_path / "said.py"), doraise=True)
    shown = imported(source, tmp_path)
    assert 'File "harness/agent/said.py", line 2, in fail\n' in shown
    assert str(tmp_path) not in shown
