"""What a good matrix file becomes."""

from pathlib import Path

import msgspec
import pytest

from harness.core.comparison.noise_limits import NoiseLimits
from harness.core.records.cell import Cell
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.plan.expectation import Expectation
from harness.plan.file_format import Timeouts
from harness.plan.matrix import Matrix, ModelSelection, read_matrix
from harness.plan.selector import Selector
from harness.plan.target import Runtime, Target, is_path
from harness.plan.tolerance_entry import ToleranceEntry

MINIMAL = """
schema = 1
models = { suites = ["onnx-node"] }
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""

FULL = """
schema = 1

[models]
suites = ["onnx-node", "zoo"]
folders = ["models"]
exclude = ["onnx-node/test_*_expanded"]
dimensions = { batch = 2, seq = 0 }

[axes]
precision = ["fp32"]
graph_optimization = ["all", "disabled"]

[[target]]
name = "openvino-cpu"
provider = "OpenVINOExecutionProvider"
plugin = "onnxruntime_ep_openvino"
device = { type = "CPU" }
options = { load_config = '{"CPU": {}}', streams = 2, fast = true, slow = false, share = 1e-3 }
unchecked_options = true
env = { OMP_NUM_THREADS = 1 }
runtime = { packages = ["onnxruntime==1.31.1", "dist/ep.whl"], python_version = "3.11" }
workers = 2
required = true
axes = { "option.streams" = ["1", 2] }
timeouts_s = { run = 5, create = 1.5 }
memory_limit_mb = 4096

[[target]]
name = "qnn"
provider = ["QNNExecutionProvider", "CPUExecutionProvider"]

[[exclude]]
target = "qnn*"
model = ["a", "b/*"]

[[tolerance]]
precision = "fp32"
"option.streams" = "2"
rtol = 1
atol = 2.5e-3

[[tolerance]]
target = "qnn"
noise = { rms = 3, max = 24.5, precision = "bfloat16" }
steps = 1

[[expect]]
suite = "onnx-node"
provider = "QNN*"
verdict = "crash"
reason = "it does"
"""


def load(tmp_path: Path, text: str) -> Matrix:
    file = tmp_path / "m.toml"
    file.write_text(text, encoding="utf-8")
    return read_matrix(file)


def test_a_minimal_file_gets_every_default(tmp_path: Path) -> None:
    matrix = load(tmp_path, MINIMAL)
    assert matrix == Matrix(
        path=str(tmp_path / "m.toml"),
        schema=1,
        models=ModelSelection(suites=("onnx-node",)),
        targets=(Target(name="cpu", provider=("CPUExecutionProvider",)),),
    )
    (target,) = matrix.targets
    assert (target.workers, target.required, target.memory_limit_mb) == (None, False, None)
    assert target.timeouts_s == Timeouts(start=120, register=60, create=300, run=60, teardown=30)


def test_every_key_arrives_in_its_normal_form(tmp_path: Path) -> None:
    assert load(tmp_path, FULL) == Matrix(
        path=str(tmp_path / "m.toml"),
        schema=1,
        models=ModelSelection(
            suites=("onnx-node", "zoo"),
            folders=("models",),
            exclude=("onnx-node/test_*_expanded",),
            dimensions={"batch": 2, "seq": 0},
        ),
        axes={"precision": ("fp32",), "graph_optimization": ("all", "disabled")},
        targets=(
            Target(
                name="openvino-cpu",
                provider=("OpenVINOExecutionProvider",),
                plugin="onnxruntime_ep_openvino",
                device={"type": "CPU"},
                options={
                    "load_config": '{"CPU": {}}',
                    "streams": "2",
                    "fast": "true",
                    "slow": "false",
                    "share": "0.001",
                },
                unchecked_options=True,
                env={"OMP_NUM_THREADS": "1"},
                runtime=Runtime(
                    packages=("onnxruntime==1.31.1", str(tmp_path / "dist/ep.whl")), python_version="3.11"
                ),
                workers=2,
                required=True,
                axes={"option.streams": ("1", "2")},
                timeouts_s=Timeouts(create=1.5, run=5.0),
                memory_limit_mb=4096,
            ),
            Target(name="qnn", provider=("QNNExecutionProvider", "CPUExecutionProvider")),
        ),
        exclude=(Selector(target=("qnn*",), model=("a", "b/*")),),
        tolerance=(
            ToleranceEntry(
                selector=Selector(axes=(("option.streams", ("2",)), ("precision", ("fp32",)))),
                rtol=1.0,
                atol=2.5e-3,
            ),
            ToleranceEntry(
                selector=Selector(target=("qnn",)),
                noise=NoiseLimits(rms=3.0, max=24.5),
                noise_precision="bfloat16",
                steps=1.0,
            ),
        ),
        expect=(
            Expectation(
                selector=Selector(suite=("onnx-node",), provider=("QNN*",)),
                verdicts=(Verdict.CRASH,),
                reason="it does",
            ),
        ),
    )


def test_a_matrix_survives_json(tmp_path: Path) -> None:
    matrix = load(tmp_path, FULL)
    assert msgspec.json.decode(msgspec.json.encode(matrix), type=Matrix) == matrix


def test_option_axes_replace_the_option_of_their_key(tmp_path: Path) -> None:
    target = load(tmp_path, FULL).targets[0]
    cell = Cell(suite="s", model="m", target=target.name, axes=(("option.new", "x"), ("option.streams", "9")))
    assert target.options_at(cell) == {**target.options, "streams": "9", "new": "x"}


def test_folders_start_where_the_file_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "m.toml").write_text(FULL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert read_matrix(Path("sub/m.toml")).folder_paths == (tmp_path / "sub" / "models",)


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ('plugin = "lib/libep.so"', "{folder}/lib/libep.so"),
        ('plugin = "libep.so"', "{folder}/libep.so"),
        ('plugin = "a_package"', "a_package"),
        ('plugin = "lib/libep.so"\nruntime = { ssh = "u@board" }', "lib/libep.so"),
        ('plugin = "lib/libep.so"\nruntime = { command = "docker exec box python3" }', "lib/libep.so"),
    ],
)
def test_a_local_library_starts_where_the_file_lies(tmp_path: Path, written: str, becomes: str) -> None:
    (target,) = load(tmp_path, MINIMAL + written).targets
    assert target.plugin is not None
    assert Path(target.plugin) == Path(becomes.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("written", "becomes"), [("venv/bin/python", "{folder}/venv/bin/python"), ("python3.9", "python3.9")]
)
def test_a_local_interpreter_starts_where_the_file_lies(tmp_path: Path, written: str, becomes: str) -> None:
    (target,) = load(tmp_path, MINIMAL + f'runtime = {{ python = "{written}" }}').targets
    assert target.runtime.python is not None
    assert Path(target.runtime.python) == Path(becomes.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("requirement", "is_a_path"),
    [
        ("onnxruntime==1.31.1", False),
        ("onnxruntime-gpu[cuda]>=1.20,<2 ; sys_platform == 'linux'", False),
        ("ep @ https://example.org/ep.whl", False),
        ("ep@file:///wheels/ep.whl", False),
        ("https://example.org/ep.whl", False),
        ("git+https://example.org/ep", False),
        ("ep.whl", True),
        ("./ep", True),
        ("dist/ep-1.0.tar.gz", True),
        ("dist\\ep.whl", True),
    ],
)
def test_a_requirement_is_a_name_or_a_file(requirement: str, is_a_path: bool) -> None:  # noqa: FBT001
    assert is_path(requirement) is is_a_path


def test_a_python_version_is_for_packages_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"runtime.python_version: this has no effect without `packages`"):
        load(tmp_path, MINIMAL + 'runtime = { python_version = "3.11" }')


def test_a_plugin_may_bring_any_provider(tmp_path: Path) -> None:
    text = MINIMAL.replace("CPUExecutionProvider", "NewExecutionProvider")
    with pytest.raises(UsageError, match="unknown execution provider 'NewExecutionProvider'"):
        load(tmp_path, text)
    (target,) = load(tmp_path, text + 'plugin = "new_ep"').targets
    assert target.provider == ("NewExecutionProvider",)


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert read_matrix(file).targets[0].name == "cpu"
