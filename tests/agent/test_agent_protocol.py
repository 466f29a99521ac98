"""The agent's side of the conversation, and the pure functions that it is made of."""

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.agent import installed_packages, ort_runtime
from harness.agent.safe_text import clean, sendable
from harness.core.values.value import tensor
from tests.kit import parse

Serve = Callable[..., dict[str, Any]]

ADD = "g (float[N] x) => (float[N] y) { a = Neg(x) b = Sqrt(x) y = Add(a, b) }"
ONE = {"x": tensor(np.array([1.0, 4.0], np.float32))}
TWO = {"x": tensor(np.array([9.0], np.float32))}


def test_a_result_has_all_that_judging_needs(serve: Serve) -> None:
    result = serve(parse(ADD), ONE, TWO)
    assert result["status"] == "ok"
    assert result["names"] == ["y"]
    assert result["providers"] == result["providers_after"] == ["CPUExecutionProvider"]
    assert [np.frombuffer(one[0]["data"], np.float32).tolist() for one in result["outputs"]] == [
        [0.0, -2.0],
        [-6.0],
    ]
    assert result["timings_ms"].keys() == {"create", "first_run"}
    assert result["placement"]["cpu_nodes"] == 0  # for a target that is the CPU they are its own
    assert result["placement"]["ep_ops"] == {"Neg": 1, "Sqrt": 1, "Add": 1}
    assert result["placement"]["source"] == "assignment"
    assert "second" not in result


def test_a_second_run_is_reported_only_if_it_differs(serve: Serve) -> None:
    twice = {"runs": 2, "sessions": 1, "bit_equal": False}
    random = parse("g () => (float[8] y) { y = RandomNormal<shape = [8]>() }", opset=17, ir=9)
    result = serve(random, repeat=twice)
    assert result["second"] != result["outputs"][0]
    assert "second" not in serve(parse(ADD), ONE, repeat=twice)
    assert "second" not in serve(random)


@pytest.mark.parametrize("level", ["disabled", "basic", "extended", "layout", "all"])
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_session_settings(serve: Serve, level: str, mode: str) -> None:
    result = serve(parse(ADD), ONE, graph_optimization=level, execution_mode=mode)
    assert result["status"] == "ok"


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"session.load_model_format": "ORT"}, "ok"),
        ({"session.record_ep_graph_assignment_info": "0"}, "error"),
    ],
)
def test_entries_hold_where_a_session_can_be_created_with_them(
    start_agent: Callable[..., Serve], entry: dict[str, str], status: str
) -> None:
    """No ONNX model can be created in ORT's format; without a record of placement there is none to read."""
    result = start_agent(session_where_possible=entry)(parse(ADD), ONE)
    assert result["status"] == status
    assert "record_ep_graph_assignment_info" in result.get("message", "") or status == "ok"


def test_a_missing_optimization_level_is_not_blamed_on_the_provider(serve: Serve) -> None:
    result = serve(parse(ADD), ONE, graph_optimization="heroic")
    assert result["status"] == "unfeedable"
    assert "heroic" in result["message"]


def test_a_model_that_cannot_be_made_fails_in_create(serve: Serve) -> None:
    for model in (b"no model", b"", "/no/such/model.onnx"):
        result = serve(model, ONE)
        assert (result["status"], result["phase"]) == ("error", "create"), result
        assert result["kind"]
        assert result["message"]


def test_a_run_that_fails_fails_in_run(serve: Serve) -> None:
    result = serve(parse(ADD), {"x": tensor(np.zeros((2, 2), np.float32))})
    assert (result["status"], result["phase"]) == ("error", "run")
    result = serve(parse(ADD), ONE)
    assert result["status"] == "ok"


def test_containers_beside_types_that_numpy_lacks_cannot_be_fed(serve: Serve) -> None:
    model = parse(
        "g (string[N] s, float[N] x) => (string[N] t, bfloat16[N] y) { t = Identity(s) y = Cast<to=16>(x) }"
    )
    result = serve(model, {"s": tensor(np.array(["a", "b"], dtype=object)), **ONE})
    assert result["status"] == "unfeedable"


@pytest.mark.parametrize(
    ("text", "library"),
    [
        ("libcuda.so.1: cannot open shared object file: No such file or directory", "libcuda.so.1"),
        (
            "Failed to load libep.so with error: libcublasLt.so.13: cannot open shared object file",
            "libcublasLt.so.13",
        ),
        ("libfoo++.so.1.2 => not found", "libfoo++.so.1.2"),
        (
            'Error loading "C:\\x\\ep.dll" which depends on "cudart64_12.dll" which is missing.',
            "cudart64_12.dll",
        ),
        ("Library not loaded: @rpath/libep.dylib", "libep.dylib"),
    ],
)
def test_a_missing_library_is_named(text: str, library: str) -> None:
    for cause in ("import_failed", "registration_failed"):
        assert ort_runtime.diagnose(cause, text, "", []) == (
            "library_missing",
            f"{library} is missing: {text}",
        )
        assert ort_runtime.diagnose(cause, "why", text, []) == (
            "library_missing",
            f"{library} is missing: why",
        )
    assert ort_runtime.diagnose("no_device", text, text, []) == ("no_device", text)


@pytest.mark.parametrize(
    "text", ["", "libep.so speaks API 99", "model.onnx not found", "ep.so loaded; x not found"]
)
def test_other_troubles_keep_their_cause(text: str) -> None:
    assert ort_runtime.diagnose("registration_failed", text, text, []) == ("registration_failed", text)


def test_two_distributions_in_one_folder_are_a_conflict() -> None:
    cause, reason = ort_runtime.diagnose("registration_failed", "bad", "", ["onnxruntime", "onnxruntime-gpu"])
    assert (cause, reason) == (
        "version_conflict",
        "onnxruntime and onnxruntime-gpu both own onnxruntime: bad",
    )


def test_a_build_for_another_numpy_is_reported() -> None:
    printed = "\nA module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.4.6 as it may crash.\n"
    assert ort_runtime.diagnose("import_failed", "import numpy failed", printed, []) == (
        "import_failed",
        "it is built for numpy<2 and finds numpy 2.4.6: import numpy failed",
    )


def test_owners_of_one_module_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = {
        "onnxruntime_acme": "onnxruntime/__init__.py,sha256=x,1\n",
        "onnxruntime_other": "onnxruntime_other-1.0.dist-info/RECORD,,\nonnxruntime\\__init__.py,,\n",
        "onnxruntime_ep_none": "onnxruntime_ep_none/__init__.py,,\nmine/onnxruntime/__init__.py,,\n",
        "unrelated": "onnxruntime/__init__.py,,\n",
    }
    for name, record in records.items():
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
        )
        (info / "RECORD").write_text(record, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = installed_packages.describe_packages()
    assert sorted(found["owners"]) == ["onnxruntime_acme", "onnxruntime_other"]
    assert found["packages"] == {name: "1.0" for name in records if name.startswith("onnxruntime")}


def test_owners_in_other_folders_are_only_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, name, version in (
        ("first", "onnxruntime-gpu", "2.0"),
        ("second", "onnxruntime", "1.0"),
        ("second", "onnxruntime-gpu", "1.0"),
    ):
        info = tmp_path / folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n", encoding="utf-8")
        (info / "RECORD").write_text("onnxruntime/__init__.py,,\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    versions = {"onnxruntime-gpu": "2.0", "onnxruntime": "1.0"}
    assert installed_packages.describe_packages() == {"packages": versions}
    monkeypatch.setattr(sys, "path", [str(tmp_path / "second"), str(tmp_path / "first")])
    assert len(installed_packages.describe_packages()["owners"]) == 2


def test_a_provider_that_finds_no_device_says_so() -> None:
    """Texts of CUDA's runtime and of Dawn."""
    for text in (
        "CUDA failure 100: no CUDA-capable device is detected ; GPU=0",
        "webgpu_context.cc:136: Failed to get a WebGPU adapter: No supported adapters",
    ):
        both = ["onnxruntime", "onnxruntime-gpu"]
        assert ort_runtime.diagnose("registration_failed", text, "", both) == ("no_device", text)


def test_packages_are_read_from_what_installers_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "onnx_old-2.0.egg-info/PKG-INFO": "Metadata-Version: 1.0\nName: onnx-old\nVersion: 2.0\n",
        "onnx_broken-1.0.dist-info/RECORD": "",
        "onnx_partly-1.0.dist-info/METADATA": "Name: onnx-partly\r\n\nVersion: of a description\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [str(tmp_path), str(tmp_path), str(tmp_path / "nowhere")])
        assert installed_packages.describe_packages() == {"packages": {"onnx-old": "2.0", "onnx-partly": ""}}
    here = installed_packages.describe_packages()["packages"]
    assert {"numpy", "onnx"} <= here.keys()
    assert here == {name: importlib.metadata.version(name) for name in here}


def test_a_version_is_found_by_either_name() -> None:
    for name in ("numpy", "ml_dtypes", "ml-dtypes", "ONNX", "msgspec"):
        assert installed_packages.installed_version(name) == importlib.metadata.version(name)
    assert installed_packages.installed_version("onn") == ""


def test_the_version_of_a_plugin_costs_no_import_of_the_metadata(tmp_path: Path) -> None:
    """That takes a tenth of the start of an agent."""
    (tmp_path / "acme_ep.py").write_text("def get_library_path(): return '/acme.so'\n", encoding="utf-8")
    info = tmp_path / "acme_ep-3.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acme-ep\nVersion: 3.1\n", encoding="utf-8")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from harness.agent.plugin_library import plugin_library\n"
        "print(*plugin_library('acme_ep'), 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["/acme.so", "3.1", "False"]


class Unreadable(Exception):  # noqa: N818 - it stands for any class
    def __str__(self) -> str:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


def test_any_text_can_be_sent() -> None:
    assert clean("\udcff\x1b[31m") == "?\x1b[31m"
    assert len(clean("x" * (1 << 20))) == 4000
    assert clean(Unreadable()) == "Unreadable without a readable text (UnicodeDecodeError)"


def test_anything_can_be_sent() -> None:
    strange = {"a\udcff": [np.float64(1.5), (np.int64(2), None, True, b"\xff")], 3: {"x"}}
    assert sendable(strange) == {"a?": ["1.5", ("2", None, True, b"\xff")], 3: "{'x'}"}
