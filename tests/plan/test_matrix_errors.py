"""Errors of a bad matrix file: all at once, with place, valid values and a next step."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.core.text.errors import UsageError
from harness.plan.matrix import read_matrix

BROKEN = """
schema = 2
extra = 1

[models]
suites = ["onnx-node", "onnx-node", ""]
folders = ["b", "a/b", 3]
exclud = []
dimensions = { batch = -1, seq = "x" }

[axes]
precision = ["fp17"]
graph_optimization = "all"
execution_mode = []
scenario = ["plain", "plain"]
option.y = ["1"]
"option." = ["1"]
"option.z" = [["1"]]

[[target]]
name = ""
provider = "OpenVinoExecutionProvider"
plugni = "x"
options = { a = [1], b = { c = 1 }, "d e" = 1979-05-27, nul = "\\u0000" }
env = { "A=B" = "1" }
runtime = { packages = ["p"], ssh = "u@h", comand = "x" }
workers = 0
required = "yes"
timeouts_s = { run = 0, create = nan, stop = 1 }
memory_limit_mb = 1.5

[[target]]
name = "twin"
provider = ["CPUExecutionProvider", "CUDAExecutionProvider", "CUDAExecutionProvider"]
runtime = { python = "p", command = "x" }
axes = { "option.n" = ["1", 1] }

[[target]]
name = "twin"
provider = []

[[target]]
provider = "qnn"

[[exclude]]

[[exclude]]
modle = "x"
model = ["a", 3]

[[tolerance]]
rtol = -1

[[tolerance]]
target = "twin"

[[tolerance]]
atol = 1e-5
noise = { rms = 0, maximum = 3 }

[[expect]]
verdict = "crashed"
reason = ""
"option.n" = 3
"""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Relative paths keep the messages the same everywhere.
    monkeypatch.chdir(tmp_path)


def message(content: str | bytes) -> str:
    file = Path("broken.toml")
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError) as caught:
        read_matrix(file)
    return str(caught.value)


def test_all_errors_are_reported_at_once(snapshot: SnapshotAssertion) -> None:
    assert message(BROKEN) == snapshot


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("schema = \n", id="no value"),
        pytest.param("schema = 1\nschema = 1\n", id="twice"),
        pytest.param("schema = true\nmodels = 1\ntarget = []", id="bare values"),
        pytest.param("schema = 1.0\n[models]\nsuites = ['a']\n[target]\nname = 'a'", id="one bracket"),
        pytest.param("a = " + "[" * 100_000, id="deep"),
        pytest.param("a = " + "1" * 10_000, id="long number"),
        pytest.param(b"schema = 1\nname = '\xff'", id="not UTF-8"),
    ],
)
def test_any_broken_file_gets_a_message(content: str | bytes, snapshot: SnapshotAssertion) -> None:
    assert message(content) == snapshot


def test_a_missing_file_suggests_its_neighbours(snapshot: SnapshotAssertion) -> None:
    Path("smoke.toml").touch()
    Path("local.toml").touch()
    with pytest.raises(UsageError) as caught:
        read_matrix(Path("smok.toml"))
    assert str(caught.value) == snapshot


def test_a_file_in_a_missing_folder_is_missing() -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_matrix(Path("nowhere/smoke.toml"))


def test_a_folder_is_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read"):
        read_matrix(tmp_path)


def test_the_largest_integer_of_toml_is_the_limit() -> None:
    target = (
        'schema = 1\nmodels = {suites = ["s"]}\n[[target]]\nname = "t"\nprovider = "CPUExecutionProvider"\n'
    )
    assert "expected an integer from 1 to 1024, got 9223372036854775808" in message(
        target + f"workers = {1 << 63}"
    )
    assert "expected a finite number from 0 to 1e+30" in message(
        target + f"[[tolerance]]\nrtol = {'9' * 400}\natol = 0"
    )


HEAD = 'schema = 1\nmodels = {suites = ["s"]}\n[[target]]\nprovider = "CPUExecutionProvider"\n'


@pytest.mark.parametrize("name", ["a\\nb", "a\\n", "\\u2028", "a\\tb", "n" * 201, ""])
def test_the_name_of_a_target_is_one_line(name: str) -> None:
    """It stands in tables, on terminals and in pages."""
    matrix = HEAD + f'name = "{name}"\n'
    assert "target[0].name: expected a unique name of one line" in message(matrix)


def test_a_newline_at_the_end_of_a_name_is_seen() -> None:
    places = 'places = [{name = "board\\n", ssh = "u@h"}]'
    matrix = HEAD + f'name = "a"\n{places}\n'
    assert "target[0].places[0].name: expected a unique name" in message(matrix)
