"""The agent in C for other machines: aarch64 under qemu, and musl. What takes long needs `tox -e long`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.runtimes.native_agent import build_agent
from tests.kit import harness, read_records

LIBRARIES = "EP_HARNESS_AARCH64_ONNXRUNTIME"
"""The variable with paths of libonnxruntime for aarch64, with a colon between them."""

# onnxruntime reads it from 1.28 on, and would find the processor of this machine.
_CPUINFO = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""

_HELLO = b'ep-harness {"protocols": [1], "token": "%s", "modes": ["binary"], "connect": ""}\n' % (b"a" * 32)

MATRIX = """
schema = 1
[models]
suites = ["onnx-node"]
[[target]]
name = "x86-64"
provider = "CPUExecutionProvider"
runtime = {{ packages = ["onnxruntime=={version}"] }}
[[target]]
name = "aarch64"
provider = "CPUExecutionProvider"
[target.runtime]
command = "qemu-aarch64 -L {root}"
agent = ["{program}", "--library", "{library}"]
"""


LACKED_BY_STAND_IN = {
    f"scenario {name}"
    for name in (*("io_binding", "terminate", "capture", "profiling", "buffers", "initializers", "adapters"),)
}
"""What needs functions of onnxruntime that the stand-in has not: an error there is right."""

needs_musl = pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="it needs Debian's musl-tools")


@needs_musl
@pytest.mark.long
def test_with_musl_it_passes_every_check_with_a_stand_in(tmp_path: Path) -> None:
    """No musl build of onnxruntime is published, so the library is one of the tests."""
    program = build_agent(tmp_path / "agent", compiler="musl-gcc").path
    library = tmp_path / "libonnxruntime.so"
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    source = Path(__file__).with_name("standin.c")
    subprocess.run(["musl-gcc", *flags, source, "-o", library, "-lm"], check=True)
    words = ("--large", "1", "--json", "--", program, "--library", library)
    rows = json.loads(harness("agent-check", *words, timeout_s=600).stdout)
    assert {row["check"] for row in rows if row["state"] == "failed"} <= LACKED_BY_STAND_IN


@needs_musl
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


def emulated_root(folder: Path) -> Path:
    """Return a folder for qemu's option ``-L``: the C library for aarch64, and such a processor."""
    (folder / "proc").mkdir(parents=True)
    (folder / "proc" / "cpuinfo").write_text(_CPUINFO)
    (folder / "lib").symlink_to("/usr/aarch64-linux-gnu/lib")
    return folder


needs_qemu = pytest.mark.skipif(
    shutil.which("qemu-aarch64") is None
    or shutil.which("aarch64-linux-gnu-gcc") is None
    or not os.environ.get(LIBRARIES),
    reason=f"it needs Debian's qemu-user and gcc-aarch64-linux-gnu, and {LIBRARIES}",
)


@needs_qemu
@pytest.mark.long
@pytest.mark.parametrize(
    "library", os.environ.get(LIBRARIES, "").split(":"), ids=lambda path: Path(path).name
)
def test_on_aarch64_operators_have_the_verdicts_of_this_machine(library: str, tmp_path: Path) -> None:
    program = build_agent(tmp_path / "agent", target="aarch64-linux-gnu").path
    version = library.partition(".so.")[2]
    root = emulated_root(tmp_path / "root")
    (tmp_path / "m.toml").write_text(
        MATRIX.format(program=program, library=library, version=version, root=root)
    )
    words = [word for glob in ("test_a*", "test_c*") for word in ("--model", f"onnx-node/{glob}")]
    done = harness("run", "m.toml", "--no-report", "--out", "run", *words, cwd=tmp_path, timeout_s=900)
    found: dict[str, dict[str, str]] = {"x86-64": {}, "aarch64": {}}
    for record in read_records(tmp_path / "run"):
        found[record.target][record.model] = record.verdict
    assert len(found["aarch64"]) > 200, done.stderr
    differing = {name for name, verdict in found["aarch64"].items() if verdict != found["x86-64"][name]}
    assert differing == set()


@needs_qemu
@pytest.mark.long
@pytest.mark.parametrize(
    "library", os.environ.get(LIBRARIES, "").split(":"), ids=lambda path: Path(path).name
)
def test_on_aarch64_it_passes_every_check(library: str, tmp_path: Path) -> None:
    program = build_agent(tmp_path / "agent", target="aarch64-linux-gnu").path
    command = ("qemu-aarch64", "-L", emulated_root(tmp_path / "root"), program, "--library", library)
    done = harness("agent-check", "--large", "4", "--limit", "120", "--", *command, timeout_s=1800)
    assert " 0 failed" in done.stdout, done.stdout
