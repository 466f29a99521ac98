"""The same target here, through a command, and through ssh to a real server on loopback."""

import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from harness.engine.prepare import open_suites
from harness.engine.tasks.events import Event, Finished, TargetReady
from tests.kit import make_matrix, records_of, run_matrix, wait_for
from tests.programs import write_program

pytestmark = pytest.mark.real_ep

SSHD = shutil.which(
    "sshd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
)
SSH = shutil.which("ssh")
FAKE = Path(__file__).parent.parent / "engine" / "fake_onnxruntime"
EXAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "my_agent.pl"
RUNTIMES: dict[str, dict[str, str]] = {
    "here": {},
    "command": {"command": f"env {shlex.quote(sys.executable)}"},
    "ssh": {"ssh": "box", "python": sys.executable},
}
OPENVINO = {
    "provider": "OpenVINOExecutionProvider",
    "plugin": "onnxruntime_ep_openvino",
    "device": {"type": "CPU"},
    "options": {"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'},
}
PROVIDERS: dict[str, dict[str, Any]] = {"cpu": {"provider": "CPUExecutionProvider"}, "openvino": OPENVINO}
MODELS = [
    *("test_abs", "test_add_bcast", "test_averagepool_2d_default", "test_basic_conv_with_padding"),
    *("test_batchnorm_epsilon", "test_bernoulli", "test_cast_FLOAT_to_BFLOAT16", "test_clip"),
    *("test_concat_2d_axis_0", "test_cumsum_1d", "test_einsum_batch_matmul", "test_erf", "test_exp"),
    *("test_gather_0", "test_gelu_tanh_2", "test_gemm_all_attributes", "test_globalaveragepool", "test_if"),
    *("test_if_opt", "test_identity_sequence", "test_layer_normalization_2d_axis0", "test_leakyrelu"),
    *("test_logsoftmax_axis_1", "test_loop11", "test_lstm_defaults", "test_matmul_2d", "test_mish"),
    *("test_nonzero_example", "test_optional_get_element_tensor", "test_qlinearmatmul_2D_uint8_float32"),
    *(
        "test_reduce_sum_keepdims_example",
        "test_resize_upsample_scales_cubic",
        "test_sequence_insert_at_back",
    ),
    *("test_sigmoid", "test_softmax_axis_1", "test_stft", "test_strnormalizer_nostopwords_nochangecase"),
    *("test_string_concat", "test_tanh", "test_top_k", "test_unique_not_sorted_without_axis"),
]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory, with_suites: Callable[[Path], Path]) -> Iterator[Path]:
    """A server with a key of its own, reached as ``box``; its log."""
    if SSHD is None or SSH is None:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail("there is no sshd; .ci/run installs openssh-server")
        pytest.skip("there is no sshd")
    home = tmp_path_factory.mktemp("sshd")
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / key], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if os.geteuid() == 0:  # where sshd, as root, locks up its unprivileged part
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (home / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host\nAuthorizedKeysFile {home}/user.pub\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n"
        "StrictModes no\nPidFile none\n"
        f"SetEnv {ENVIRONMENT}={home}/ssh\n",
        encoding="utf-8",
    )
    (home / "config").write_text(
        f"Host box\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {home}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {home}/known_hosts\n  StrictHostKeyChecking accept-new\n",
        encoding="utf-8",
    )
    # ssh finds ~ in the list of users, not in $HOME: nothing but an argument makes it read another config.
    (home / "bin").mkdir()
    write_program(home / "bin" / "ssh", f'#!/bin/sh\nexec {SSH} -F {home}/config "$@"\n')
    log = home / "log"
    with log.open("wb") as file, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")
        patch.setenv(ENVIRONMENT, str(with_suites(home / "command")))
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", home / "sshd.conf"], stderr=file)
        try:
            wait_for(lambda: "listening" in log.read_text("utf-8") or server.poll() is not None)
            assert server.poll() is None, log.read_text("utf-8")
            yield log
        finally:
            server.terminate()
            server.wait(10)


def run(home: Path, models: dict[str, Any], targets: list[dict[str, Any]], names: list[str]) -> list[Event]:
    table = {"models": models, "target": targets}
    suites = open_suites(make_matrix(table, home / "m.toml"))
    return run_matrix(home, table, None, dict.fromkeys(suites, names))


def records(events: list[Event], target: str) -> dict[str, Record]:
    """The records of a target by model."""
    return {record.model: record for record in records_of(events) if record.target == target}


def problem(events: list[Event], target: str) -> str:
    """Why a target cannot be used; empty where it can."""
    return next(
        event.problem for event in events if isinstance(event, TargetReady) and event.target == target
    )


@pytest.fixture(scope="module")
def events(box: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    assert not (box.parent / "ssh").exists()
    home = tmp_path_factory.mktemp("models")
    targets = [
        {
            "name": f"{provider}-{where}",
            **table,
            "runtime": runtime,
            "env": {"XDG_RUNTIME_DIR": str(home)},
        }
        for provider, table in PROVIDERS.items()
        for where, runtime in RUNTIMES.items()
    ]
    return run(home, {"suites": ["onnx-node"]}, targets, MODELS)


def said(record: Record) -> dict[str, Any]:
    """Everything that a record says about its model."""
    passing = ("cell", "target", "timings_ms", "started", "process")
    return {key: value for key, value in msgspec.structs.asdict(record).items() if key not in passing}


@pytest.mark.parametrize("where", ["command", "ssh"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_where_an_agent_is_makes_no_difference(
    events: list[Event], provider: str, where: str, require: Callable[[str, str], None]
) -> None:
    for target in (f"{provider}-here", f"{provider}-{where}"):
        require(PROVIDERS[provider]["provider"], problem(events, target))
    here, there = (records(events, f"{provider}-{one}") for one in ("here", where))
    assert len(here) == len(MODELS)
    assert sum(record.family is Family.PASSED for record in here.values()) > len(MODELS) / 2
    for model, record in here.items():
        if record.verdict is not Verdict.REFERENCE_DISPUTED:  # its numbers are drawn anew each time
            assert said(there[model]) == said(record)
        assert there[model].verdict is record.verdict


def test_each_model_is_uploaded_once(events: list[Event], box: Path) -> None:
    for where in ("command", "ssh"):
        records(events, f"cpu-{where}")
        # Two targets had all of them, and the CPU provider was asked about some.
        kept = list((box.parent / where / "models").iterdir())
        assert len(kept) == len(MODELS)


@pytest.mark.parametrize(
    "agent", [{"python": sys.executable}, {"agent": [str(EXAMPLE)]}], ids=["python", "program"]
)
@pytest.mark.usefixtures("box")
def test_an_agent_connects_back_through_ssh(agent: dict[str, Any], tmp_path: Path) -> None:
    runtime = {"ssh": "box", "channel": "socket", **agent}
    target = {"name": "far", "provider": "CPUExecutionProvider", "runtime": runtime}
    events = run(tmp_path, {"suites": ["onnx-node"]}, [target], ["test_abs"])
    assert problem(events, "far") == ""
    assert records(events, "far")["test_abs"].verdict is Verdict.PASS


@pytest.mark.skipif(sys.platform != "linux", reason="the fake dies by POSIX signals, and looks at /proc")
def test_a_crash_and_a_hang_over_ssh(box: Path, tmp_path: Path) -> None:
    import onnx.parser

    text = '<ir_version: 9, opset_import: ["" : 17]> g (float[4] x) => (float[4] y, int32[4] k, float[4] z) '
    names = ["1_segv_in_run.onnx", "2_badalloc_in_run.onnx", "3_stuck_in_run.onnx", "4_fine.onnx"]
    (tmp_path / "models").mkdir()
    for name in names:
        model = onnx.parser.parse_model(text + "{ y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }")
        onnx.save(model, tmp_path / "models" / name)
    target = {
        "name": "far",
        "provider": "CUDAExecutionProvider",
        "runtime": RUNTIMES["ssh"],
        "timeouts_s": {"run": 3.0},
        "env": {"PYTHONPATH": str(FAKE), "FAKE_MARKER": str(tmp_path / "marker")},
    }
    found = records(run(tmp_path, {"folders": ["models"]}, [target], names), "far")
    assert [(found[name].verdict, found[name].cause) for name in names] == [
        (Verdict.CRASH, "SIGSEGV"),
        (Verdict.OUT_OF_MEMORY, "SIGABRT"),
        (Verdict.HANG, ""),
        (Verdict.PASS, ""),
    ], box.read_text("utf-8")
    # What hung where no thread of its own could run: nobody but the launcher over there could end it.
    stat = Path("/proc", (tmp_path / "marker").read_text(encoding="utf-8"), "stat")
    wait_for(lambda: not stat.exists() or ") Z " in stat.read_text(encoding="utf-8"))


def test_a_key_that_is_not_welcome(box: Path, tmp_path: Path) -> None:
    (box.parent / "user.pub").rename(box.parent / "elsewhere")
    try:
        target = {"name": "far", "provider": "CPUExecutionProvider", "runtime": RUNTIMES["ssh"]}
        (event,) = (
            event
            for event in run(tmp_path, {"suites": ["onnx-node"]}, [target], ["test_abs"])
            if isinstance(event, Finished)
        )
    finally:
        (box.parent / "elsewhere").rename(box.parent / "user.pub")
    assert (event.record.verdict, event.record.cause) == (Verdict.UNAVAILABLE, "no_device")
    assert "Permission denied (publickey)" in event.record.reason
