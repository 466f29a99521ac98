"""`ep-harness triage` starts targets of the user: those of a matrix that is named, or of a run made here."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.annex.fuzz.fuzz_state import planned_cells
from harness.annex.triage import command_triage as command
from harness.cli import main
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import EXIT_OK, EXIT_USAGE
from harness.corpus.caches.cache import ENVIRONMENT
from harness.engine.prepare import prepare
from harness.plan.matrix import Matrix
from harness.run.own_runs import KEY, own_info, write_info
from harness.run.run_folder import RunFolder
from tests.kit import Capture, cpu_record, with_facts

Asked = list[tuple[Matrix, tuple[str, ...]]]

PLAIN = 'name = "cpu"\nprovider = "CPUExecutionProvider"'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What would be triaged: the matrix whose targets would start, and the cells."""
    found: Asked = []

    def note(matrix: Matrix, records: Sequence[Record], *_: Any) -> int:
        found.append((matrix, tuple(record.cell for record in records)))
        return EXIT_OK

    monkeypatch.setattr(command, "triage_records", note)
    return found


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Makes a run of one failing cell."""

    def make(target: str = PLAIN, more: Sequence[Record] = ()) -> Path:
        (tmp_path / "m").mkdir(exist_ok=True)
        (tmp_path / "m" / "a.onnx").write_bytes(b"")
        (tmp_path / "m.toml").write_text(f'schema = 1\nmodels.folders = ["m"]\n[[target]]\n{target}\n')
        plan, _ = prepare(tmp_path / "m.toml")
        folder = RunFolder.create(tmp_path / "run", plan)
        folder.add(failed(), *more)
        folder.finish()
        return folder.path

    return make


def failed(**changes: Any) -> Record:
    found = msgspec.structs.replace(
        cpu_record("a.onnx"), verdict=Verdict.CRASH, family=Family.FAILED, expected=False, **changes
    )
    return with_facts(found)


def a_stranger_s(run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the run be one of another machine."""
    monkeypatch.setenv(ENVIRONMENT, str(run.parent / "cache-of-here"))
    return run


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ('runtime = { command = "touch MARK" }', "cpu (command)"),
        ('env = { LD_PRELOAD = "./evil.so", PYTHONPATH = "." }', "cpu (env LD_PRELOAD, PYTHONPATH)"),
        ('plugin = "./evil.so"', "cpu (plugin "),
        ('runtime = { ssh = "user@board" }', "cpu (ssh)"),
        ('runtime = { python = "./evil" }', "cpu (python)"),
        (
            'runtime = { browser = "./evil", packages = ["onnxruntime-web@1.30.0"] }',
            "cpu (packages, browser)",
        ),
        ('places = { list = ["touch", "MARK"] }', "places"),
        ("", "its targets are not started"),
    ],
)
def test_nothing_of_a_stranger_s_run_is_started(
    target: str, told: str, made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    mark = Path("mark").absolute()
    run = a_stranger_s(made(f"{PLAIN}\n{target.replace('MARK', str(mark))}"), monkeypatch)
    assert main(["triage", str(run)]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert told in error
    assert f"ep-harness triage {run} --matrix MATRIX" in error
    assert len(error.splitlines()) == 2
    assert not (run / "triage").exists()
    assert not mark.exists()


def test_a_stranger_s_command_and_library_do_not_run(
    made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the engine that would have started them."""
    mark, loaded = tmp_path / "mark", tmp_path / "loaded"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(f"open({str(loaded)!r}, 'w').close()\n")
    (tmp_path / "mark.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    runs = f'runtime = {{ command = "{sys.executable} {tmp_path / "mark.py"}" }}'
    env = f"env = {{ PYTHONPATH = {json.dumps(str(tmp_path / 'site'))} }}"
    run = a_stranger_s(made(f"{PLAIN}\n{runs}\n{env}".replace("\\", "/")), monkeypatch)
    assert main(["triage", str(run)]) == EXIT_USAGE
    assert not mark.exists()
    assert not loaded.exists()


def test_a_run_of_this_user_is_triaged_wherever_it_lies(
    made: Callable[..., Path], asked: Asked, tmp_path: Path
) -> None:
    run = made()
    assert main(["triage", str(run)]) == EXIT_OK
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    assert main(["triage", str(copy)]) == EXIT_OK
    assert [cells for _, cells in asked] == [("m/a.onnx[cpu]",)] * 2


@pytest.mark.parametrize("old", ['"CPUExecutionProvider"', '"complete": true', "}\n"])
def test_a_changed_run_is_not_one_of_this_user(made: Callable[..., Path], old: str, capsys: Capture) -> None:
    run = made()
    text = (run / "run.json").read_text()
    new = {'"CPUExecutionProvider"': '"QNNExecutionProvider"', '"complete": true': '"complete": false'}
    assert old in text
    (run / "run.json").write_text(text.replace(old, new.get(old, "}\n\n")))
    assert main(["triage", str(run)]) == EXIT_USAGE
    assert "was changed since" in capsys.readouterr().err


@pytest.mark.parametrize("codes", [None, b"", b"0" * 64, "é".encode(), b"x" * 5000])
def test_a_run_without_its_code_is_nobody_s(made: Callable[..., Path], codes: bytes | None) -> None:
    run = made()
    (run / "run.mac").unlink()
    if codes is not None:
        (run / "run.mac").write_bytes(codes)
    assert main(["triage", str(run)]) == EXIT_USAGE


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_key_that_others_can_read_counts_for_nothing(made: Callable[..., Path], cache: Path) -> None:
    run = made()
    key = cache / KEY / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o640)
    assert main(["triage", str(run)]) == EXIT_USAGE
    key.chmod(0o600)
    assert own_info(run) is not None


def test_without_a_cache_a_run_is_written_and_not_recognized(
    made: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "file" / "below"))
    run = made()
    assert not (run / "run.mac").exists()
    assert own_info(run) is None


def test_a_run_that_ends_while_it_is_described_stays_one_of_this_user(
    made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    run = made()
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        for content in (b"{}", b"[]"):
            with pytest.raises(KeyboardInterrupt):
                write_info(run, content)
    assert own_info(run) is not None


@pytest.mark.skipif(os.name != "posix", reason="pipes have no names elsewhere")
def test_a_pipe_in_place_of_the_codes_is_not_waited_for(made: Callable[..., Path]) -> None:
    run = made()
    (run / "run.mac").unlink()
    os.mkfifo(run / "run.mac")
    assert main(["triage", str(run)]) == EXIT_USAGE


def test_records_of_no_planned_cell_are_left_out(
    made: Callable[..., Path], asked: Asked, capsys: Capture
) -> None:
    """Somebody else may have added them; an axis such as this names a library to load."""
    evil = failed().axes | {"option.backend_path": "./evil.so"}
    unplanned = failed(cell="m/a.onnx[cpu,option.backend_path=./evil.so]", axes=evil)
    run = made(more=[unplanned])
    assert main(["triage", str(run)]) == EXIT_OK
    command.triage_folder(asked[0][0], run, budget_s=1)
    assert [cells for _, cells in asked] == [("m/a.onnx[cpu]",)] * 2
    assert "of a cell that the plan does not have" in capsys.readouterr().err
    lines = (run / "records.jsonl").read_bytes().splitlines()
    disguised = lines[1].replace(unplanned.cell.encode(), b"m/a.onnx[cpu]")
    (run / "records.jsonl").write_bytes(disguised + b"\n")
    assert main(["triage", str(run)]) == EXIT_OK
    assert asked[-1][1] == ()


def test_a_named_matrix_gives_the_targets(
    made: Callable[..., Path], asked: Asked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = a_stranger_s(made(f'{PLAIN}\nruntime = {{ command = "evil" }}'), monkeypatch)
    mine = tmp_path / "mine.toml"
    mine.write_text(f'schema = 1\nmodels.folders = ["m"]\n[[target]]\n{PLAIN}\n')
    assert main(["triage", str(run), "--matrix", str(mine)]) == EXIT_OK
    ((matrix, cells),) = asked
    assert cells == ("m/a.onnx[cpu]",)
    assert [target.runtime.command for target in matrix.targets] == [None]


def test_a_matrix_of_other_cells_is_refused(
    made: Callable[..., Path], tmp_path: Path, capsys: Capture
) -> None:
    run, mine = made(), tmp_path / "mine.toml"
    mine.write_text(f'schema = 1\nmodels.folders = ["m"]\n[[target]]\n{PLAIN.replace("cpu", "other")}\n')
    assert main(["triage", str(run), "--matrix", str(mine)]) == EXIT_USAGE
    assert "none of the cells of" in capsys.readouterr().err


def test_a_run_judged_again_is_whose_it_was(
    made: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made()
    main(["judge", str(run), "--policy", "default", "--out", str(tmp_path / "own")])
    assert own_info(tmp_path / "own") is not None
    a_stranger_s(run, monkeypatch)
    main(["judge", str(run), "--policy", "default", "--out", str(tmp_path / "other")])
    assert own_info(tmp_path / "other") is None


def test_a_campaign_that_goes_on_takes_no_axes_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text("fuzz-1/0-Abs[cpu,option.backend_path=evil.so]\n")
    (cell,) = planned_cells(tmp_path)
    assert "option.backend_path" not in dict(cell.axes)
