"""The oldest Python and onnxruntime that a target may have: 3.9 and 1.16, in an environment made for this."""

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import Event, TargetReady
from tests.kit import of_folder, records_of, run_matrix, write_model

pytestmark = pytest.mark.compat

HEAD = '<ir_version: 8, opset_import: ["" : 15]>\n'
MODELS = {
    "elementwise": HEAD + "g (float[3] x, float[3] w) => (float[3] y) { t = Mul(x, w) y = Softmax(t) }",
    "strings": HEAD + "g (seq(float[2]) x, string[2] n) => (float[2] y, string[2] s) "
    "{ i = Constant<value_int = 0>() y = SequenceAt(x, i) s = Identity(n) }",
    "matmul": HEAD + "g (float[4, 8] x, float[8, 2] w) => (float[4, 2] y) { y = MatMul(x, w) }",
    # Its input comes in a file, and is used once more by the run that tells the placement.
    "large": HEAD + "g (float[500000] x) => (float[500000] y) { y = Relu(x) }",
    # The onnxruntime of that time refuses it: newer than its opset.
    "newer": '<ir_version: 9, opset_import: ["" : 21]>\ng (float[3] x) => (float[3] y) { y = Relu(x) }',
    # Its Python API cannot hand over such a tensor.
    "bfloat16": HEAD + "g (bfloat16[3] x) => (float[3] y) { y = Cast<to = 1>(x) }",
}


def call(*command: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"{command[0]}: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}")
    return done.stdout.strip()


def python39(uv: str) -> str:
    # pyenv's stand-ins for versions that it has not switched on stop uv's search, so they leave the path.
    places = [place for place in os.environ["PATH"].split(os.pathsep) if Path(place).name != "shims"]
    if pyenv := shutil.which("pyenv"):
        root = Path(call(pyenv, "root"))
        places += [str(folder) for folder in sorted(root.glob("versions/3.9.*/bin"))]
    env = {**os.environ, "PATH": os.pathsep.join(places), "UV_PYTHON_DOWNLOADS": "never"}
    return call(uv, "python", "find", "--no-project", "--system", "3.9", env=env)


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> str:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    if platform.machine().lower() not in {"x86_64", "amd64", "aarch64", "arm64"}:
        pytest.skip(f"onnxruntime 1.16.3 has no wheel for {platform.machine()}")
    home = tmp_path_factory.mktemp("old") / "venv"
    call(uv, "venv", "--no-project", "--python", python39(uv), str(home))
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    call(uv, "pip", "install", "--python", str(python), "onnxruntime==1.16.3", "numpy<2")
    return str(python)


@pytest.fixture(scope="module")
def events(interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    home = tmp_path_factory.mktemp("compat")
    for name, text in MODELS.items():
        write_model(home / "models" / f"{name}.onnx", text)
    target: dict[str, Any] = {
        "name": "old",
        "provider": "CPUExecutionProvider",
        "runtime": {"python": interpreter},
    }
    (home / "plugin.so").touch()
    plugin = {**target, "name": "plugin", "provider": "QNNExecutionProvider", "plugin": "plugin.so"}
    launched = {**target, "name": "launched", "runtime": {"command": f"env {shlex.quote(interpreter)}"}}
    return run_matrix(home, of_folder(target, plugin, launched))


def verdicts(events: list[Event], target: str) -> dict[str, Verdict]:
    return {
        record.model.removesuffix(".onnx"): record.verdict
        for record in records_of(events)
        if record.target == target
    }


def test_it_says_what_it_is(events: list[Event]) -> None:
    (ready,) = [event for event in events if isinstance(event, TargetReady) and event.target == "old"]
    assert ready.problem == ""
    assert ready.fingerprint["onnxruntime"] == "1.16.3"
    assert ready.fingerprint["python"].startswith("3.9.")


def test_models_run(events: list[Event]) -> None:
    assert verdicts(events, "old") == {
        "elementwise": Verdict.PASS,
        "strings": Verdict.PASS,
        "matmul": Verdict.PASS,
        "large": Verdict.PASS,
        "newer": Verdict.UNSUPPORTED,
        "bfloat16": Verdict.NO_GOLDEN,
    }


def test_a_launcher_and_its_models_need_no_more(events: list[Event]) -> None:
    assert verdicts(events, "launched") == verdicts(events, "old")


def test_placement_comes_from_the_profile(events: list[Event]) -> None:
    found = {
        record.model: record.placement for record in records_of(events) if record.verdict is Verdict.PASS
    }
    assert found.keys() == {"elementwise.onnx", "strings.onnx", "matmul.onnx", "large.onnx"}
    for placement in found.values():
        assert placement is not None
        assert placement.source == "profile"
        assert placement.ep_nodes > 0


def test_a_plugin_is_too_new_for_it(events: list[Event]) -> None:
    assert set(verdicts(events, "plugin").values()) == {Verdict.UNAVAILABLE}
    causes = {record.cause for record in records_of(events)} - {""}
    assert causes == {"version_conflict"}
