from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pytest_plugin.projects import run_pytest

Run = Callable[..., Any]

PLAIN = """
import sys

def test_plain():
    heavy = {"numpy", "msgspec", "onnx", "onnxruntime", "jinja2", "rich"}
    assert not heavy & {name.partition(".")[0] for name in sys.modules}
    assert {name for name in sys.modules if name.startswith("harness")} == {
        "harness", "harness.pytest_plugin", "harness.pytest_plugin.matrices", "harness.pytest_plugin.plugin"
    }
"""

HEAVY = {
    "numpy",
    "ml_dtypes",
    "onnx",
    "onnxruntime",
    "filelock",
    "harness.engine.engine",
    "harness.run.tally",
}
"""Modules that only running cells needs; they would take most of the time of `--collect-only`."""


def test_a_plain_suite_loads_the_option_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-p", "no:xdist")
    assert done.code == 0, done.out
    assert "execution providers" not in done.out


def test_a_matrix_is_collected_only_where_it_is_named(project: Path, run_warm: Run) -> None:
    (project / "test_plain.py").write_text("def test_plain(): pass\n", encoding="utf-8")
    done = run_warm(project, "--co", "-q", "-p", "no:xdist", ".")
    assert done.lines[0] == "test_plain.py::test_plain"
    assert "m.toml" not in done.out


def test_other_toml_files_are_left_to_others(project: Path, run_warm: Run) -> None:
    texts = {"tool.toml": "[tool.other]\nkey = 1\n", "schema.toml": "schema = 1\n", "no.toml": "not toml\n"}
    for name, text in texts.items():
        (project / name).write_text(text, encoding="utf-8")
    done = run_warm(project, "--co", "-q", "-p", "no:xdist", *texts)
    assert done.code in {pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.USAGE_ERROR}
    assert "Traceback" not in done.out + done.err
    assert "::" not in done.out


def test_collecting_imports_no_runtime_and_opens_no_model(project: Path) -> None:
    for model in (project / "models").iterdir():
        model.write_bytes(b"nothing that could be opened")
    (project / "conftest.py").write_text(
        f"import sys\ndef pytest_collection_finish(): assert not {HEAVY} & {{*sys.modules}}\n",
        encoding="utf-8",
    )
    (project / "test_own.py").write_text(
        "import pytest\n@pytest.mark.ep_matrix('m.toml', target='cpu')\ndef test_own(ep_cell): pass\n",
        encoding="utf-8",
    )
    done = run_pytest(project, "--co", "-q", "-p", "no:xdist", "m.toml", "test_own.py")
    assert done.code == 0, done.out + done.err
    assert done.lines[-1].startswith("16 tests collected")


def test_a_wrong_matrix_is_a_collection_error_without_traceback(
    project: Path, run_warm: Run, mode: tuple[str, ...]
) -> None:
    (project / "m.toml").write_text('schema = 1\n[[target]]\nnam = "x"\n', encoding="utf-8")
    done = run_warm(project, *mode, "m.toml")
    # xdist says "failed" where pytest alone says "interrupted".
    assert done.code in {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED}
    assert "m.toml: target[0].nam" in done.out
    assert "did you mean 'name'?" in done.out
    assert "Traceback" not in done.out + done.err
    assert ".py:" not in done.out
    # Each worker of xdist may get to say it before the session stops.
    assert done.out.count("did you mean") <= (2 if "-n" in mode else 1)


def test_a_matrix_that_is_no_toml_is_an_error_too(project: Path, run_warm: Run) -> None:
    (project / "m.toml").write_text("schema = \n[[target]]\n", encoding="utf-8")
    done = run_warm(project, "-p", "no:xdist", "m.toml")
    assert done.code == pytest.ExitCode.INTERRUPTED
    assert "m.toml: line 1" in done.out.replace("at line", "line")
    assert "not TOML" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["test_plain.py", "--ep-out", "run"], "none is named"),
        (["m.toml", "other.toml", "--ep-out", "run"], "2 are named"),
    ],
)
def test_a_run_folder_is_for_one_matrix(
    project: Path, run_warm: Run, arguments: list[str], message: str
) -> None:
    (project / "test_plain.py").write_text("def test_plain(): pass\n", encoding="utf-8")
    (project / "other.toml").write_bytes((project / "m.toml").read_bytes())
    done = run_warm(project, "-p", "no:xdist", *arguments)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (project / "run").exists()


def test_a_run_folder_in_use_is_refused_before_anything_runs(
    project: Path, run_warm: Run, mode: tuple[str, ...]
) -> None:
    (project / "run").mkdir()
    (project / "run" / "run.json").write_text("{}", encoding="utf-8")
    done = run_warm(project, *mode, "m.toml", "--ep-out", "run")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "there is a run in this folder already" in done.err
    assert "Traceback" not in done.out + done.err
    assert "passed" not in done.out
