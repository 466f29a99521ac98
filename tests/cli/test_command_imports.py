"""What a command imports: the start of a short one takes longer than its work."""

import subprocess
import sys
from pathlib import Path

import pytest

import harness

MATRICES = Path(harness.__file__).parents[1] / "matrices"

ARRAYS = {"numpy", "ml_dtypes", "onnx", "onnxruntime"}
ENGINE = {"filelock", "harness.engine.engine", "harness.core.verdicts.decide"}

PROGRAM = """
import sys
from harness.__main__ import main
sys.argv[0] = "ep-harness"
try:
    code = main()
except SystemExit as ended:
    code = ended.code
print(code, *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["--help"], ARRAYS | ENGINE),
        *(([name, "--help"], ARRAYS | ENGINE | {"tempfile"}) for name in ("doctor", "run", "agent", "diff")),
        (["list", "smoke.toml", "--count"], ARRAYS | ENGINE),
    ],
    # A set has another order in each process, and workers must collect the same tests.
    ids=lambda given: " ".join(given if isinstance(given, list) else sorted(given)),
)
def test_a_command_imports_no_more_than_it_needs(words: list[str], absent: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True, cwd=MATRICES
    )
    code, *loaded = done.stderr.split()
    assert code == "0"
    assert not absent & {*loaded}


def test_a_record_and_a_plan_need_no_arrays() -> None:
    """So that listing, collecting and reading start quickly; what measures is imported later."""
    modules = (
        "core.records.record",
        "core.comparison.policy",
        "plan.plan",
        "plan.matrix",
        "engine.prepare",
        "corpus.suites.suites",
    )
    program = (
        f"import importlib, sys\nfor name in {modules}: importlib.import_module('harness.' + name)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not ARRAYS & {*done.stdout.split()}
