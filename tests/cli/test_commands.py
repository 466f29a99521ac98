"""Commands by their names: ours are found without the metadata of others, and theirs cost only themselves."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.commands import OWN_COMMANDS
from harness.engine.prepare import prepare
from harness.run.run_folder import RunFolder
from tests.kit import cpu_record

EXTENSION = Path(__file__).parents[1] / "extension"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with modules and entry points on the path."""

    def put(name: str, entry_points: str, **modules: str) -> None:
        info = tmp_path / "site" / f"{name}-2.1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.1\n")
        (info / "entry_points.txt").write_text(f"[ep_harness.commands]\n{entry_points}\n")
        for module, text in modules.items():
            (info.parent / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(str(info.parent))

    return put


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    assert main(words) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    return " ".join(shown.err.split())


def test_a_command_of_another_package_runs_and_is_in_the_help(
    project: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(EXTENSION))
    folder = RunFolder.create(tmp_path / "run", prepare(project())[0])
    names = ("abs", "neg")
    folder.add(*(cpu_record(f"{one}.onnx", suite="models", cell=f"models/{one}.onnx[cpu]") for one in names))
    folder.finish()
    assert main(["slowest", str(folder.path), "--most", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    for words in (["--help"], ["slowest", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
    page = capsys.readouterr().out
    assert "query, slowest\n" in page
    assert "Show the cells that took longest." in page


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("absent_module:COMMAND", "cannot be imported: ModuleNotFoundError: No module named 'absent_module'"),
        ("broken_module:COMMAND", "cannot be imported: RuntimeError: of its own"),
        ("ending_module:COMMAND", "cannot be imported: SystemExit: 7"),
        ("json:loads", "is of the type function"),
        ("harness.cli.run_command:RUN", "has the name 'run'"),
    ],
)
def test_a_broken_command_costs_one_line_and_no_other_command(
    entry: str, why: str, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = {"broken_module": "raise RuntimeError('of its own')", "ending_module": "raise SystemExit(7)"}
    install("hasty", f"hasty = {entry}", **modules)
    text = told(capsys, "hasty", "x")
    assert f"ep-harness: hasty: {entry} of hasty 2.1 {why}" in text
    assert main(["list", "--suites"]) == 0
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    page = capsys.readouterr().out
    assert f"not usable: {entry} of hasty 2.1" in page
    assert "agent-check" in page


def test_metadata_that_cannot_be_read_cost_nothing(
    install: Install, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("damaged", "no equals sign here\n[")
    monkeypatch.syspath_prepend(str(EXTENSION))
    with pytest.raises(SystemExit) as ended:
        main(["slowest", "--help"])
    assert ended.value.code == 0
    assert "Show the cells that took longest." in capsys.readouterr().out


def test_nobody_replaces_a_command_of_ours(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("greedy", "list = ending_module:COMMAND", ending_module="raise SystemExit(7)")
    assert main(["list", "--suites"]) == 0
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "greedy" not in capsys.readouterr().out


def test_two_packages_with_one_name(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("first", "both = a:B")
    install("second", "both = a:B")
    text = told(capsys, "both")
    assert "both: several packages have this name: " in text
    assert "first 2.1" in text
    assert "second 2.1" in text


@pytest.mark.parametrize("name", ["run", "triage"])
def test_a_command_is_found_without_importing_another_one(name: str) -> None:
    """Nor are the metadata of what is installed read: that takes longer than the rest."""
    code = (
        "import sys\nfrom harness.cli.parser import parser_for\n"
        f"parser_for([{name!r}])\n"
        "heavy = {'numpy', 'onnx', 'importlib.metadata', 'dataclasses'} & {*sys.modules}\n"
        "own = [m for m in sys.modules if m.endswith('_command') or m.endswith('.command')]\n"
        "print(sorted(heavy), own)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    module = OWN_COMMANDS[name].partition(":")[0]
    assert done.stdout.strip() == f"[] {[module]}"


def test_a_scheduler_of_another_package_numbers_the_shares(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXTENSION))
    monkeypatch.setenv("LSB_JOBINDEX", "2")
    monkeypatch.setenv("LSB_JOBINDEX_END", "3")
    assert main(["list", str(project()), "--shard", "auto"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
