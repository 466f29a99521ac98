"""The agent in C for other machines: aarch64 under qemu, and musl. What takes long needs `tox -e long`."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.runtimes.native_agent import build_agent
from tests.kit import harness, read_records

LIBRARY = "EP_HARNESS_AARCH64_ONNXRUNTIME"
"""The variable with the path of a libonnxruntime 1.27.0 for aarch64: a later one reads /proc/cpuinfo, which
is this machine's."""

_HELLO = b'ep-harness {"protocols": [1], "token": "%s", "modes": ["binary"], "connect": ""}\n' % (b"a" * 32)

MATRIX = """
schema = 1
[models]
suites = ["onnx-node"]
[[target]]
name = "x86-64"
provider = "CPUExecutionProvider"
runtime = {{ packages = ["onnxruntime==1.27.0"] }}
[[target]]
name = "aarch64"
provider = "CPUExecutionProvider"
[target.runtime]
command = "qemu-aarch64 -L /usr/aarch64-linux-gnu"
agent = ["{program}", "--library", "{library}"]
"""


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="it needs Debian's musl-tools")
@pytest.mark.long
def test_with_musl_it_greets_and_tells_that_there_is_no_library(tmp_path: Path) -> None:
    program = build_agent(tmp_path / "agent", compiler="musl-gcc").path
    done = subprocess.run(
        [program, "--library", "/no/such/library.so"],
        input=_HELLO,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert b'["unavailable","not_installed","no onnxruntime at /no/such/library.so' in done.stdout


@pytest.mark.skipif(
    shutil.which("qemu-aarch64") is None
    or shutil.which("aarch64-linux-gnu-gcc") is None
    or not os.environ.get(LIBRARY),
    reason=f"it needs Debian's qemu-user and gcc-aarch64-linux-gnu, and {LIBRARY}",
)
@pytest.mark.long
def test_on_aarch64_operators_have_the_verdicts_of_this_machine(tmp_path: Path) -> None:
    program = build_agent(tmp_path / "agent", target="aarch64-linux-gnu").path
    text = MATRIX.format(program=program, library=os.environ[LIBRARY])
    (tmp_path / "m.toml").write_text(text)
    words = [word for glob in ("test_a*", "test_c*") for word in ("--model", f"onnx-node/{glob}")]
    done = harness("run", "m.toml", "--no-report", "--out", "run", *words, cwd=tmp_path, timeout_s=900)
    found: dict[str, dict[str, str]] = {"x86-64": {}, "aarch64": {}}
    for record in read_records(tmp_path / "run"):
        found[record.target][record.model] = record.verdict
    assert len(found["aarch64"]) > 200, done.stderr
    differing = {name for name, verdict in found["aarch64"].items() if verdict != found["x86-64"][name]}
    assert differing == set()
