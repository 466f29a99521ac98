"""The agent in C for other machines: aarch64 under qemu, and musl.

CI installs what they need, and fails without it; elsewhere they are skipped. What takes long needs
``tox -e long``.
"""

import functools
import importlib.metadata
import itertools
import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import pytest

from harness.core.records.verdict import Verdict
from harness.corpus.suites.suites import open_suite
from harness.runtimes.native_agent import build_agent
from harness.runtimes.uv import find_uv
from tests.kit import harness, records_of, run_matrix

OLDER = ("1.27.0", "1.31.1")
SAMPLE = 200
PACKAGES = {
    "musl-gcc": "musl-tools",
    "qemu-aarch64": "qemu-user",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu and libstdc++6-arm64-cross",
}
"""Program -> Debian's packages."""

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


Fetch = Callable[[str], Path]


def require(*programs: str) -> None:
    missing = [PACKAGES[name] for name in programs if shutil.which(name) is None]
    if missing:
        end = pytest.fail if os.environ.get("CI", "").lower() == "true" else pytest.skip
        end(f"it needs Debian's {', '.join(missing)}")


LACKED_BY_STAND_IN = frozenset(
    f"scenario {name}"
    for name in ("io_binding", "terminate", "capture", "profiling", "buffers", "initializers", "adapters")
)
"""What needs functions of onnxruntime that the stand-in has not: an error there is right."""


def stand_in(compiler: str, folder: Path) -> Path:
    """Compile the tests' own libonnxruntime, which starts at once."""
    library = folder / "libonnxruntime.so"
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    source = Path(__file__).with_name("standin.c")
    subprocess.run([compiler, *flags, source, "-o", library, "-lm"], check=True)
    return library


def check(
    *command: str | Path, large_mib: int = 1, limit_s: int = 60, lacked: frozenset[str] = frozenset()
) -> None:
    words = ("--large", str(large_mib), "--limit", str(limit_s), "--json", "--", *command)
    rows = json.loads(harness("agent-check", *words, timeout_s=1800).stdout)
    assert {row["check"] for row in rows if row["state"] == "failed"} <= lacked
    assert any(row["state"] == "ok" for row in rows)


@pytest.fixture(scope="module")
def with_musl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("musl-gcc")
    return build_agent(tmp_path_factory.mktemp("musl") / "agent", compiler="musl-gcc").path


def test_with_musl_it_passes_every_check_with_a_stand_in(with_musl: Path, tmp_path: Path) -> None:
    """No musl build of onnxruntime is published, so the library is one of the tests."""
    check(with_musl, "--library", stand_in("musl-gcc", tmp_path), lacked=LACKED_BY_STAND_IN)


def test_with_musl_it_greets_and_tells_that_there_is_no_library(with_musl: Path) -> None:
    done = subprocess.run(
        [with_musl, "--library", "/no/such/library.so"],
        input=_HELLO,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert b'["unavailable","not_installed","no onnxruntime at /no/such/library.so' in done.stdout


@pytest.fixture(scope="module")
def qemu(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The command that runs programs for aarch64: with the C library for it, and such a processor."""
    require("qemu-aarch64", "aarch64-linux-gnu-gcc")
    root = tmp_path_factory.mktemp("aarch64")
    (root / "proc").mkdir()
    (root / "proc" / "cpuinfo").write_text(_CPUINFO)
    (root / "lib").symlink_to("/usr/aarch64-linux-gnu/lib")
    return ("qemu-aarch64", "-L", str(root))


@pytest.fixture(scope="module")
def for_aarch64(qemu: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert qemu
    return build_agent(tmp_path_factory.mktemp("agent") / "agent", target="aarch64-linux-gnu").path


@pytest.fixture(scope="module")
def fetch(tmp_path_factory: pytest.TempPathFactory) -> Fetch:
    """``fetch(release)``: the library in onnxruntime's wheel for aarch64."""

    @functools.cache
    def fetched(release: str) -> Path:
        folder = tmp_path_factory.mktemp("wheel")
        platform = ("--python-version", "3.12", "--python-platform", "aarch64-manylinux_2_28")
        where = ("--target", folder, *platform, "--only-binary", ":all:", "--no-deps")
        subprocess.run([find_uv(), "pip", "install", "-q", *where, f"onnxruntime=={release}"], check=True)
        (library,) = (folder / "onnxruntime" / "capi").glob("libonnxruntime.so.*")
        return library

    return fetched


def test_on_aarch64_it_passes_every_check_with_a_stand_in(
    qemu: Sequence[str], for_aarch64: Path, tmp_path: Path
) -> None:
    """Each check starts the agent, which takes a second with the real library under qemu."""
    library = stand_in("aarch64-linux-gnu-gcc", tmp_path)
    check(*qemu, for_aarch64, "--library", library, lacked=LACKED_BY_STAND_IN)


def spread(most: int) -> list[str]:
    """Return operator tests: one of each operator, then a second one of each, and so on."""
    suite, of_operator = open_suite("onnx-node"), defaultdict(list)
    for name in suite.models():
        if "_expanded" not in name:
            graph = onnx.load(suite.model_path(name), load_external_data=False).graph
            of_operator[graph.node[-1].op_type].append(name)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*of_operator.values()))
    return [name for name in turns if name is not None][:most]


@pytest.mark.usefixtures("own_cache")
def test_on_aarch64_operators_have_the_verdicts_of_this_machine(
    qemu: Sequence[str], for_aarch64: Path, fetch: Fetch, tmp_path: Path
) -> None:
    release = importlib.metadata.version("onnxruntime")
    compare_operators({}, spread(SAMPLE), (qemu, for_aarch64, fetch(release)), tmp_path)


@pytest.mark.long
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("release", OLDER)
def test_on_aarch64_older_releases_have_the_verdicts_of_this_machine(
    release: str, qemu: Sequence[str], for_aarch64: Path, fetch: Fetch, tmp_path: Path
) -> None:
    models = [name for name in open_suite("onnx-node").models() if name.startswith(("test_a", "test_c"))]
    here = {"packages": [f"onnxruntime=={release}"]}
    compare_operators(here, models, (qemu, for_aarch64, fetch(release)), tmp_path)


def compare_operators(
    here: dict[str, list[str]],
    models: Sequence[str],
    there: tuple[Sequence[str], Path, Path],
    folder: Path,
) -> None:
    """Run models in a runtime of this machine, and under qemu by an agent with a library."""
    qemu, program, library = there
    runtime = {"command": " ".join(qemu), "agent": [str(program), "--library", str(library)]}
    target = {"provider": "CPUExecutionProvider"}
    table = {
        "models": {"suites": ["onnx-node"]},
        "target": [
            {"name": "x86-64", "runtime": here, **target},
            {"name": "aarch64", "runtime": runtime, **target},
        ],
    }
    found: dict[str, dict[str, Verdict]] = {"x86-64": {}, "aarch64": {}}
    for record in records_of(run_matrix(folder, table, None, {"onnx-node": models})):
        found[record.target][record.model] = record.verdict
    assert set(found["aarch64"]) == set(models)
    # There the golden, of this machine, is far from ONNX's data: another machine may be right by these.
    disputed = {name for name, verdict in found["x86-64"].items() if verdict is Verdict.REFERENCE_DISPUTED}
    differing = {name for name in models if found["aarch64"][name] is not found["x86-64"][name]}
    assert differing <= disputed
    assert all(found["aarch64"][name] is Verdict.PASS for name in differing)
    assert 2 * list(found["aarch64"].values()).count(Verdict.PASS) > len(models)


@pytest.mark.long
@pytest.mark.parametrize("release", OLDER)
def test_on_aarch64_it_passes_every_check(
    release: str, qemu: Sequence[str], for_aarch64: Path, fetch: Fetch
) -> None:
    check(*qemu, for_aarch64, "--library", fetch(release), large_mib=4, limit_s=120)
