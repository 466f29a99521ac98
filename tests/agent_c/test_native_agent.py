"""The agent in C: it builds, keeps the protocol, survives nonsense, and gives the verdicts of Python's."""

import contextlib
import io
import json
import random
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.agent.frame import FrameReader, framed
from harness.agent.system import CPU_FEATURES
from harness.core.records.record import Record
from harness.core.text.errors import UsageError
from harness.runtimes.native_agent import SOURCES, build_agent
from tests.agent_c.dialogue_fuzz import CONFIG, FLOATS, HELLO, dialogue, ended, whole_job, write_models
from tests.kit import harness, read_records

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None,
    reason="it needs a C compiler, and a libonnxruntime.so",
)

SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
LIBRARY = "EP_HARNESS_ONNXRUNTIME"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the agent with sanitizers."""
    path = tmp_path_factory.mktemp("agent") / "agent"
    build_agent(path, flags=SANITIZERS)
    return path


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, library: str, tmp_path: Path) -> None:
    """Name the library, and leave what onnxruntime keeps until the end out of the leaks."""
    monkeypatch.setenv(LIBRARY, library)
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the agent as a user does."""
    path = tmp_path_factory.mktemp("built") / "agent"
    done = harness("agent", "build", "--out", path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert "KiB by " in done.stdout
    return path


def test_it_is_small(built: Path) -> None:
    assert built.stat().st_size <= 300 << 10


def test_a_missing_compiler_is_told_in_two_lines(tmp_path: Path) -> None:
    done = harness("agent", "build", "--cc", "no-such-cc", "--out", tmp_path / "agent")
    assert (done.returncode, done.stderr.count("\n")) == (2, 2)
    assert "there is no compiler; looked for no-such-cc" in done.stderr


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("", "apt-get install gcc\n"),
        ("aarch64-linux-gnu", "apt-get install gcc-aarch64-linux-gnu\n"),
        ("x86_64-w64-mingw32", "apt-get install gcc-mingw-w64-x86-64\n"),
        ("aarch64-linux-android24", "the NDK has it in "),
    ],
)
def test_a_missing_compiler_has_a_place_to_come_from(
    target: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as raised:
        build_agent(tmp_path / "agent", target=target)
    assert place in f"{raised.value}\n"


def test_a_program_for_windows_gets_its_ending(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho program >"$2"\n')
    compiler.chmod(0o755)
    built = build_agent(tmp_path / "agent", compiler=str(compiler), target="x86_64-w64-mingw32")
    assert built.path == tmp_path / "agent.exe"


def test_the_sources_are_few_lines() -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES.glob("*.[ch]"))
    assert lines <= 8000


def test_it_looks_for_the_features_of_a_processor_that_python_looks_for() -> None:
    text = (SOURCES / "processor.c").read_text(encoding="utf-8")
    assert tuple(re.findall(r'"(\w+)",', text)) == CPU_FEATURES


@pytest.mark.parametrize("only", ["nonsense", "models in pieces", "values"])
def test_it_keeps_the_protocol_under_sanitizers(only: str, program: Path) -> None:
    done = harness("agent-check", "--large", "4", "--only", only, "--json", "--", program)
    rows = json.loads(done.stdout)
    assert [row for row in rows if row["state"] == "failed"] == []


@pytest.mark.long
def test_it_passes_every_check(program: Path) -> None:
    done = harness("agent-check", "--", program, timeout_s=900)
    assert " 0 failed" in done.stdout, done.stdout


WRONG_LENGTHS = [
    b"#b 4294967296 0 00000000\n",
    b"#b 2 99999999999999999999 00000000\n",
    b"#b -1 0 00000000\n",
    b"#l 9 0 00000000\n====\n",
    b"#b 33 0 00000000\n" + b"[" * 33 + b"\n",
    b"#" * 70000,
    framed(["job", 1, {"model": {"\0bytes": [0, 1]}}]),
    framed(["\0", [[]] * 9]),
]


@pytest.mark.parametrize("data", WRONG_LENGTHS, ids=range(len(WRONG_LENGTHS)))
def test_a_hostile_length_ends_it_in_order(data: bytes, program: Path) -> None:
    assert_in_order(program, HELLO + data)


def assert_in_order(program: Path, data: bytes) -> bytes:
    """Assert that input ended an agent in order, where a sanitizer would not; return what it sent."""
    done = ended(program, data)
    assert done.code in {0, 1}, done.printed[-2000:]
    return done.sent


# What a fuzz of an hour found, each reduced to what is wrong with it: a name that was NULL.
WRONG_JOBS: list[dict[str, Any]] = [
    {"fixed": [2]},
    {"entries": ["1"]},
    {"data_sets": ["xxxx"]},
    {"data_sets": "xxxx"},
    # The facts of a scenario that failed in its middle were half an object.
    {"scenario": "interleaved", "model": "none.onnx"},
    {"scenario": "dynamic_shapes", "data_sets": [[["x", FLOATS]], "xxxx"]},
]


def test_what_the_fuzz_found_is_answered(program: Path, tmp_path: Path) -> None:
    write_models(tmp_path)
    jobs = [whole_job(tmp_path, "negated") | wrong for wrong in WRONG_JOBS]
    frames = [framed(["config", {**CONFIG, "session": ["x"], "options": ["x"]}])]
    frames += [framed(["job", number, job]) for number, job in enumerate(jobs)]
    sent = assert_in_order(program, HELLO + b"".join(frames) + framed(["stop"]))
    reader = FrameReader(io.BytesIO(sent).read)
    reader.line()  # the greeting
    names: list[str] = []
    with contextlib.suppress(EOFError):
        while True:
            names.append(reader.message()[0])
    assert names.count("done") == names.count("result") == len(WRONG_JOBS)


def test_changed_dialogues_end_it_in_order(program: Path, tmp_path: Path) -> None:
    """A little of the fuzz."""
    write_models(tmp_path)
    for seed in range(3):
        assert_in_order(program, dialogue(random.Random(seed), tmp_path))  # noqa: S311 - to be repeated


def test_a_library_that_is_missing_or_none_is_told(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIBRARY, "/no/such/library.so")
    assert b'"not_installed","no onnxruntime at /no/such/library.so' in assert_in_order(program, HELLO)
    monkeypatch.setenv(LIBRARY, __file__)
    assert b'"import_failed"' in assert_in_order(program, HELLO)


MATRIX = """
schema = 1
[models]
suites = ["onnx-node"]
[[target]]
name = "python"
provider = "CPUExecutionProvider"
[[target]]
name = "c"
provider = "CPUExecutionProvider"
runtime = {{ agent = ["{program}"] }}
"""


def seen(record: Record) -> tuple[object, ...]:
    """Return what must not depend on the agent."""
    placement = record.placement
    return record.verdict, record.phase, placement and (placement.ep_ops, placement.cpu_ops), record.outputs


SCENARIOS = """
[axes]
scenario = ["interleaved", "concurrent", "async_runs", "sessions", "separate_outputs", "dynamic_shapes"]
"""


@pytest.mark.long
def test_scenarios_have_the_same_verdicts_as_with_python(tmp_path: Path) -> None:
    program = build_agent(tmp_path / "agent").path
    (tmp_path / "m.toml").write_text(MATRIX.format(program=program).replace("onnx-node", "zoo") + SCENARIOS)
    words = [word for name in ("bert", "mobilenet", "text") for word in ("--model", f"zoo/{name}-small-op17")]
    harness("run", "m.toml", "--no-report", "--out", "run", *words, cwd=tmp_path, timeout_s=900)
    found: dict[str, dict[str, str]] = {"python": {}, "c": {}}
    for record in read_records(tmp_path / "run"):
        found[record.target][f"{record.model} {record.axes}"] = record.verdict
    assert len(found["c"]) >= 3 * 4
    assert found["c"] == found["python"]


def test_operators_have_the_same_verdicts_as_with_python(tmp_path: Path) -> None:
    program = build_agent(tmp_path / "agent").path
    (tmp_path / "m.toml").write_text(MATRIX.format(program=program))
    globs = ("test_abs", "test_cast_FLOAT_*", "test_string_concat*", "test_sequence_insert*", "test_loop13*")
    words = [word for glob in globs for word in ("--model", f"onnx-node/{glob}")]
    done = harness("run", "m.toml", "--no-report", "--out", "run", *words, cwd=tmp_path)
    found: dict[str, dict[str, Record]] = {"python": {}, "c": {}}
    for record in read_records(tmp_path / "run"):
        found[record.target][record.model] = record
    assert found["python"].keys() == found["c"].keys(), done.stdout
    assert len(found["c"]) > 12
    # Which precision a provider may compute in depends on the processor.
    told = json.loads((tmp_path / "run" / "run.json").read_text())["targets"]
    assert told["c"]["processor"] == told["python"]["processor"]
    differing = [name for name, record in found["c"].items() if seen(record) != seen(found["python"][name])]
    assert differing == []
