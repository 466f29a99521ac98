"""Commands that read files of strangers start nothing that these name: docs/reference/trust.md."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.cli import main
from harness.cli.commands import OWN_COMMANDS
from harness.core.records.verdict import Family, Verdict
from harness.engine.prepare import prepare
from harness.run.run_folder import RunFolder
from tests.annex.conformance.submissions import Draft, write_folder
from tests.kit import cpu_record

TRUST = Path(__file__).parents[2] / "docs" / "reference" / "trust.md"


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was to be started; none of it is."""
    asked: list[object] = []

    def refuse(*what: object, **_: object) -> None:
        asked.append(what[1:] or what)
        raise OSError("a test that only reads")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    for name in ("system", "popen", "posix_spawn", "posix_spawnp", "execve", "execv", "startfile"):
        monkeypatch.setattr(os, name, refuse, raising=False)
    return asked


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A matrix in which everything is code, and runs of it with a failing cell."""
    marks = [f"touch {tmp_path / name}" for name in ("command", "listed")]
    (tmp_path / "evil_task.py").write_text(f"open({str(tmp_path / 'task')!r}, 'w').close()\n")
    (tmp_path / "evil_plugin").mkdir()
    (tmp_path / "evil_plugin" / "__init__.py").write_text("raise SystemExit\n")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.onnx").write_bytes(b"")
    (tmp_path / "m.toml").write_text(
        'schema = 1\nmodels.folders = ["m"]\n[[model]]\nmodel = "m/*"\nagree = "evil_task:function"\n'
        f'[[target]]\nname = "cpu"\nprovider = "CPUExecutionProvider"\nplugin = "evil_plugin"\n'
        f"runtime = {{ command = {json.dumps(marks[0])} }}\n"
        'env = { LD_PRELOAD = "./evil.so", PYTHONPATH = "." }\n'
        '[[target]]\nname = "listed"\nprovider = "CPUExecutionProvider"\n'
        f"places = {{ list = {json.dumps(marks[1].split())} }}\n"
        '[[target]]\nname = "web"\nprovider = "WebGpuExecutionProvider"\n'
        'runtime = { browser = "./evil", packages = ["onnxruntime-web@1.30.0"] }\n',
        encoding="utf-8",
    )
    plan, _ = prepare(tmp_path / "m.toml")
    record = msgspec.structs.replace(
        cpu_record("a.onnx"), verdict=Verdict.MISMATCH, family=Family.FAILED, expected=False
    )
    for name in ("old", "new"):
        folder = RunFolder.create(tmp_path / "runs" / name, plan)
        folder.add(record)
        folder.finish()
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "list m.toml",
        "list m.toml --count",
        "list m.toml --json --target cpu",
        "report runs/new --out report --format html,markdown,csv,json,junit,badge",
        "report runs/new --out report --baseline runs/old",
        "diff runs/old runs/new",
        "gate runs/old runs/new",
        "judge runs/new --policy default --out judged",
        "history add runs/old runs/new --db h.sqlite",
        "history show --db h.sqlite",
        "triage runs/new",
    ],
)
def test_a_stranger_s_matrix_and_run_start_nothing(
    command: str,
    stranger: Path,
    nothing_starts: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(stranger)
    monkeypatch.syspath_prepend(str(stranger))
    monkeypatch.setenv("EP_HARNESS_CACHE", str(stranger / "cache-of-here"))
    assert main(command.split()) in {0, 1, 2, 3}
    assert nothing_starts == []
    assert not {"evil_task", "evil_plugin"} & sys.modules.keys()
    assert not {"command", "listed", "task"} & {path.name for path in stranger.iterdir()}


def test_to_run_the_matrix_would_start_it(
    stranger: Path, nothing_starts: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the tests above would see it."""
    monkeypatch.chdir(stranger)
    main(["run", "m.toml", "--target", "cpu", "--out", "out", "--no-report"])
    assert any("touch" in str(what) for what in nothing_starts)


def test_a_submission_is_verified_and_published_without_starting_anything(
    tmp_path: Path, nothing_starts: list[object]
) -> None:
    folder = write_folder(Draft().files(), tmp_path / "submissions" / "one")
    assert main(["verify", str(folder)]) == 1  # its profile is of this test
    assert main(["publish", str(folder.parent), "--out", str(tmp_path / "site")]) == 1
    assert nothing_starts == []


def test_the_page_has_every_command() -> None:
    """So that a new command is thought of where it is told what runs."""
    text = TRUST.read_text("utf-8")
    assert [name for name in OWN_COMMANDS if f"`{name}" not in text] == []
