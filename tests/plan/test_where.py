"""``where`` of ``[[expect]]``: on which targets an entry applies."""

from typing import Any

import pytest

from harness.agent.system import CPU_FEATURES
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.findings.delivered_precision import delivered_precision
from harness.core.records.cell import Cell
from harness.core.text.errors import UsageError
from harness.core.text.version_range import version_range
from harness.plan.expectation import open_condition
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.surroundings import Surroundings, surroundings_of
from harness.plan.where import FEATURES, holds, where_from
from tests.kit import make_matrix

OPENVINO: dict[str, Any] = {
    "platform": "Linux-6.18-x86_64-with-glibc2.36",
    "onnxruntime": "1.31.1",
    "machine": "x86_64",
    "processor": {"model": "Xeon", "count": 2, "features": ["amx_bf16", "avx2"]},
    "plugin": {"library": "/x.so", "version": "1.8.1"},
    "devices": [
        {"device": {"type": "CPU", "vendor": "Intel"}, "metadata": {"FULL_DEVICE_NAME": "Xeon 8488C"}},
        {"device": {"type": "GPU", "vendor": "Intel"}, "metadata": {"driver_version": "32.0.101"}},
    ],
    "drivers": {"nvidia": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15", "i915": "1.6"},
}
CHAIN = ("OpenVINOExecutionProvider",)
HERE = surroundings_of(OPENVINO, CHAIN, {"type": "CPU"})
NOWHERE = Surroundings()


def test_a_number_is_no_fact_of_a_device() -> None:
    assert surroundings_of(OPENVINO, CHAIN, {"number": "2"}).accelerated
    assert surroundings_of(OPENVINO, CHAIN, {"type": "CPU", "number": "1"}) == HERE


@pytest.mark.parametrize(
    ("table", "answer"),
    [
        ({"onnxruntime": ">=1.31,<1.33"}, True),
        ({"onnxruntime": "==1.31.*"}, True),
        ({"onnxruntime": ">=1.32"}, False),
        ({"ep_version": ">=1.8"}, True),
        ({"ep_version": "!=1.8.1"}, False),
        ({"driver": ">=550"}, True),
        ({"driver": "nvidia >=550,<560"}, True),
        ({"driver": "i915 >=2"}, False),
        ({"driver": "amdgpu >=2"}, None),
        ({"device": "Xeon*"}, True),
        ({"device": ["GPU", "NPU"]}, False),
        ({"architecture": "AMD64"}, True),
        ({"architecture": ["aarch64", "arm64"]}, False),
        ({"os": ["windows", "linux"]}, True),
        ({"os": "macos"}, False),
        ({"processor": "amx_bf16"}, True),
        ({"processor": ["amx_bf16", "avx2"]}, True),
        ({"processor": ["amx_bf16", "avx512f"]}, False),
        ({"processor": "!amx_bf16"}, False),
        ({"processor": ["!avx512f", "avx2"]}, True),
        ({"simulator": False}, True),
        ({"simulator": True}, False),
        ({"delivers": "bfloat16"}, True),
        ({"delivers": ["float16", "float32"]}, False),
        ({"ep_version": ">=1.8", "processor": "amx_bf16"}, True),
        ({"ep_version": ">=1.9", "processor": "amx_bf16"}, False),
    ],
)
def test_conditions(table: dict[str, Any], answer: bool | None) -> None:  # noqa: FBT001
    applies, unknown = holds(where_from(table), HERE, "bfloat16")
    assert applies is bool(answer)
    assert bool(unknown) is (answer is None)


@pytest.mark.parametrize(
    "table",
    [
        {"onnxruntime": ">=1"},
        {"ep_version": ">=1"},
        {"driver": ">=1"},
        {"device": "*"},
        {"architecture": "*"},
        {"os": "linux"},
        {"processor": "avx2"},
        {"processor": "!avx2"},
        {"simulator": False},
    ],
)
def test_what_is_not_known_does_not_hold_and_is_named(table: dict[str, Any]) -> None:
    assert holds(where_from(table), NOWHERE, "") == (False, tuple(table))
    # It is of no interest where the entry does not apply anyway.
    assert holds(where_from({**table, "delivers": "float16"}), NOWHERE, "") == (False, ())


@pytest.mark.parametrize(
    ("provider", "fingerprint", "simulator"),
    [
        ("QNNExecutionProvider", {"devices": [{"device": {"type": "CPU"}, "metadata": {}}]}, True),
        ("QNNExecutionProvider", {"devices": [{"device": {"type": "NPU"}, "metadata": {}}]}, False),
        ("QNNExecutionProvider", {"devices": []}, None),
        ("WebGpuExecutionProvider", {"devices": [{"device": {"architecture": "swiftshader"}}]}, True),
        ("OpenVINOExecutionProvider", {"devices": [{"device": {"type": "CPU"}, "metadata": {}}]}, False),
        ("CPUExecutionProvider", {}, False),
        ("OfTheirOwnExecutionProvider", {"devices": "garbage"}, None),
        ("CPUExecutionProvider", {"processor": {"model": "Android virtual processor"}}, False),
        ("NnapiExecutionProvider", {"processor": {"model": "Android virtual processor"}}, True),
    ],
)
def test_simulators(provider: str, fingerprint: dict[str, Any], simulator: bool | None) -> None:  # noqa: FBT001
    assert surroundings_of(fingerprint, (provider,), {}).simulator is simulator


@pytest.mark.parametrize(
    ("name", "simulated"),
    [
        ("SwiftShader Device (LLVM 10.0.0)", True),
        ("llvmpipe (LLVM 15.0.7, 256 bits)", True),
        ("Microsoft Basic Render Driver", True),
        ("Microsoft Direct3D WARP", True),
        ("pocl: Intel(R) Xeon(R) Processor", True),
        ("Portable Computing Language", True),
        ("Intel(R) FPGA Emulation Device", True),
        ("Hexagon Simulator", True),
        ("Apple Software Renderer", True),
        ("NVIDIA H100 80GB HBM3", False),
        ("AMD Radeon RX 7900 XTX", False),
        ("Qualcomm(R) Hexagon(TM) NPU", False),
        ("Warpcore NPU", False),
    ],
)
def test_a_device_whose_name_says_so_is_simulated(name: str, simulated: bool) -> None:  # noqa: FBT001
    for key in ("description", "Description"):
        device = {"device": {"type": "GPU"}, "metadata": {key: name}}
        seen = surroundings_of({"devices": [device]}, ("OfTheirOwnExecutionProvider",), {})
        assert (seen.simulator, seen.simulated_by) == (simulated, name if simulated else "")


def test_a_provider_that_is_built_in_has_the_version_of_its_runtime() -> None:
    assert surroundings_of({"onnxruntime": "1.31.1"}, ("CPUExecutionProvider",), {}).ep_version == "1.31.1"
    web = {"onnxruntime": "1.30.0", "packages": {"onnxruntime-web": "1.30.1"}}
    assert surroundings_of(web, ("WebGpuExecutionProvider",), {}).ep_version == "1.30.1"


@pytest.mark.parametrize("text", ["", "1.31", ">=", ">=1.x", "~=1.3", ">=1.31,", ">1.*", "latest"])
def test_texts_that_are_no_range(text: str) -> None:
    assert version_range(text) is None


@pytest.mark.parametrize(
    ("text", "version", "answer"),
    [
        (">=1.31", "1.31.0", True),
        ("==1.31", "1.31.0", True),
        ("==1.31", "1.31.1", False),
        (">1.31", "1.31.0", False),
        ("!=1.31.*", "1.31.4", False),
        ("==1.31.*", "1.310", False),
        (">=1.9", "1.10", True),
        ("<1.32", "1.32.0rc1", False),
        (">=550", "Kernel Module  550.54.15  Tue", True),
        (">=1", "unknown", None),
    ],
)
def test_versions_in_a_range(text: str, version: str, answer: bool | None) -> None:  # noqa: FBT001
    found = version_range(text)
    assert found is not None
    assert found.holds(version) is answer


def row(like: str = "", bits: float | None = None) -> OutputMetrics:
    noise = Noise(precision="float32", rms=1.0, max=2.0, like=like) if like else None
    return OutputMetrics(name="y", dtype="float32", shape=(), delivered_bits=bits, noise=noise)


@pytest.mark.parametrize(
    ("rows", "delivered"),
    [
        ([], ""),
        ([row()], ""),
        ([row("exact")], ""),
        ([row("none")], ""),
        ([row("float32"), row("bfloat16"), row("float16")], "bfloat16"),
        ([row(bits=20.0)], "float32"),
        ([row(bits=10.6)], "float16"),
        ([row(bits=7.7), row(bits=20.0)], "bfloat16"),
        ([row(bits=1.0)], ""),
        ([row("float32", bits=6.0)], "float32"),
    ],
)
def test_the_delivered_precision(rows: list[OutputMetrics], delivered: str) -> None:
    assert delivered_precision(rows) == delivered


def test_an_agent_reports_the_features_that_a_matrix_may_name() -> None:
    assert FEATURES == CPU_FEATURES


def matrix(**entry: Any) -> Matrix:
    table = {
        "schema": 1,
        "models": {"suites": ["onnx-node"]},
        "target": [{"name": "ov", "provider": CHAIN[0]}],
        "expect": [
            {"model": "a", "verdict": "mismatch", "reason": "everywhere"},
            {"model": "a", "verdict": "crash", "reason": "there", **entry},
        ],
    }
    return make_matrix(table)


A = Cell(suite="onnx-node", model="a", target="ov", axes=())


def test_the_last_entry_that_applies_counts() -> None:
    plan = Plan(matrix=matrix(where={"processor": "amx_bf16"}), cells=(A,))
    there, unknown = plan.expectation_at(A, OPENVINO, ())
    assert there is not None
    assert (there.reason, unknown) == ("there", ())
    elsewhere, unknown = plan.expectation_at(A, {"processor": {"features": []}}, ())
    assert elsewhere is not None
    assert (elsewhere.reason, unknown) == ("everywhere", ())
    nowhere, unknown = plan.expectation_at(A, {}, ())
    assert nowhere is not None
    assert (nowhere.reason, unknown) == ("everywhere", ("processor",))
    assert "does not tell `processor`" in open_condition("ov", "processor")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            {"procesor": "avx2"},
            "m.toml: expect[1].where.procesor: unknown key\n    did you mean 'processor'?",
        ),
        ({"processor": "amx_b16"}, "where.processor: got 'amx_b16'\n    did you mean 'amx_bf16'?"),
        ({"processor": ["avx2", "!amx"]}, "where.processor[1]: got '!amx'"),
        ({"os": "linx"}, "where.os: got 'linx'\n    did you mean 'linux'? valid: linux, windows, macos"),
        ({"delivers": "bf16"}, "where.delivers: got 'bf16'\n    did you mean 'bfloat16'?"),
        ({"onnxruntime": "1.31"}, "where.onnxruntime: not a range of versions: '1.31'"),
        ({"ep_version": ">=1.8,"}, "where.ep_version: not a range of versions: '>=1.8,'"),
        ({"driver": "nvidia"}, "where.driver: not a range of versions: 'nvidia'"),
        ({"simulator": "yes"}, 'where.simulator: expected true or false, got "yes"'),
        ({"device": []}, "where.device: expected a non-empty list of texts, got an empty one"),
        ({}, "where: there is no condition"),
        ("amx", "where: expected a table"),
    ],
)
def test_mistakes_are_told_before_anything_runs(where: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        matrix(where=where)
    assert message in str(error.value)


def test_forty_stars_take_no_time() -> None:
    seen = Surroundings(devices=("a" * 400,), architecture=("a" * 400,))
    for key in ("device", "architecture"):
        assert holds(where_from({key: "*a" * 40 + "b"}), seen, "") == (False, ())
