"""A bundle of a stranger is read, and refused in one line if it is not what its manifest says."""

import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.annex.triage.bundle import write_bundle
from harness.annex.triage.bundle_files import Bundle, read_bundle
from harness.annex.triage.bundle_replay import staged
from harness.annex.triage.manifest import BundledPlugin, BundledTarget
from harness.annex.triage.replay_target import bundled_target
from harness.cli import main
from harness.core.text.errors import UsageError
from harness.plan.target import Target
from tests.annex.triage.bundle.relu_bundle import CPU, contents

Table = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "F1", contents())
    return tmp_path / "F1"


def edited(folder: Path, change: Callable[[Table], None]) -> Path:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def zipped(folder: Path, *more: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    archive = folder.with_name("made.zip")
    with zipfile.ZipFile(archive, "w") as file:
        for path in folder.rglob("*"):
            if path.is_file():
                file.write(path, path.relative_to(folder).as_posix())
        for name, content in more:
            file.writestr(name, content)
    return archive


def refused(path: Path, match: str) -> None:
    with pytest.raises(UsageError, match=match) as caught:
        read_bundle(path)
    (problem,) = caught.value.problems
    assert "\n" not in problem.what
    assert problem.where == str(path)


def test_folder_and_zip_are_read_alike(folder: Path) -> None:
    from_folder, from_zip = read_bundle(folder), read_bundle(folder.with_name("F1.zip"))
    assert from_folder.manifest == from_zip.manifest
    assert from_folder.manifest.fault.verdict == "mismatch"


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/evil",
        "a/../../evil",
        "a\\..\\evil",
        "C:/evil",
        "model.onnx/",
        "con",
        "a/NUL.txt",
        "x.",
        " ",
    ],
)
def test_names_that_lead_elsewhere_are_refused(folder: Path, name: str) -> None:
    entry = {"sha256": "0" * 64, "bytes": 1}
    edited(folder, lambda manifest: manifest["files"].update({name: entry}))
    refused(folder, "no sound bundle")
    refused(zipped(folder, (name, b"x")), "no sound bundle")
    assert not (folder.parent / "evil").exists()


def test_members_that_the_manifest_does_not_name_are_refused(folder: Path) -> None:
    refused(zipped(folder, ("../../evil", b"x")), "is not in manifest")
    refused(zipped(folder, ("setup.py", b"x")), "is not in manifest")


def test_a_folder_may_hold_what_its_owner_added(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    read_bundle(folder)


def test_links_are_refused(folder: Path, tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    refused(zipped(folder, (info, b"/etc/passwd")), "link")
    secret = tmp_path / "secret"
    (folder / "model.onnx").rename(secret)
    (folder / "model.onnx").symlink_to(secret)
    refused(folder, "link")
    (folder / "model.onnx").unlink()
    secret.rename(folder / "model.onnx")
    (folder / "test_data_set_0").rename(tmp_path / "data")
    (folder / "test_data_set_0").symlink_to(tmp_path / "data")
    refused(folder, "link")


def test_a_pipe_does_not_block(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    os.mkfifo(folder / "model.onnx")
    refused(folder, "no regular file")


def test_other_content_is_refused(folder: Path) -> None:
    model = folder / "model.onnx"
    content = model.read_bytes()
    model.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused(folder, "another SHA-256")
    model.write_bytes(content + b"x")
    refused(folder, "more bytes")
    model.write_bytes(content[:-1])
    refused(folder, "fewer bytes")
    model.unlink()
    refused(folder, "is missing")


def test_a_member_twice_is_refused(folder: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        archive = zipped(folder, ("model.onnx", b"another"))
    refused(archive, "twice")


def test_a_bomb_is_read_no_further_than_its_manifest_says(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(bytes(300 << 20))
    archive = folder.with_name("bomb.zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in folder.rglob("*"):
            if path.is_file():
                file.write(path, path.relative_to(folder).as_posix())
    assert archive.stat().st_size < 1 << 20
    refused(archive, "more bytes")
    edited(folder, lambda manifest: manifest["files"]["model.onnx"].update(bytes=1 << 50))
    refused(folder, "more than 16 GiB")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": 2}',
        b'{"schema": "1"}',
        b'{"schema": 1}',
    ],
)
def test_other_json_is_refused(folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    refused(folder, "no sound bundle")


def test_what_is_no_bundle_is_refused(tmp_path: Path, folder: Path) -> None:
    refused(tmp_path / "none", "no such bundle")
    (tmp_path / "text.zip").write_text("hello", encoding="utf-8")
    refused(tmp_path / "text.zip", "no sound bundle")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "manifest.json is missing")
    cut = folder.with_name("F1.zip").read_bytes()[:-30]
    (tmp_path / "cut.zip").write_bytes(cut)
    refused(tmp_path / "cut.zip", "no sound bundle")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255))
def test_a_flipped_byte_is_harmless(folder: Path, tmp_path: Path, at: float, bits: int) -> None:
    content = bytearray(folder.with_name("F1.zip").read_bytes())
    content[int(at * len(content))] ^= bits
    (tmp_path / "bent.zip").write_bytes(content)
    try:
        bundle = read_bundle(tmp_path / "bent.zip")
    except UsageError:
        return
    assert bundle.manifest == read_bundle(folder).manifest  # it was in a time or an attribute of the zip


def test_a_file_that_changes_after_it_was_checked_is_refused(folder: Path) -> None:
    bundle = read_bundle(folder)
    (folder / "model.onnx").write_bytes(b"another")
    with pytest.raises(UsageError, match="bytes than"), staged(bundle, Target(name="here", provider=(CPU,))):
        pass


def test_unpacking_writes_only_model_and_data(folder: Path, tmp_path: Path) -> None:
    bundle = read_bundle(folder.with_name("F1.zip"))
    out = tmp_path / "out"
    out.mkdir()
    bundle.unpack(out)
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    data = {"test_data_set_0/input_0.pb", "test_data_set_0/output_0.pb", "found/output_0.pb"}
    assert names == {"model.onnx", *data}


def with_target(folder: Path, **changes: Any) -> Bundle:
    bundle = read_bundle(folder)
    target = msgspec.structs.replace(bundle.manifest.target, **changes)
    return msgspec.structs.replace(bundle, manifest=msgspec.structs.replace(bundle.manifest, target=target))


@pytest.mark.parametrize("package", ["os", "evil", "onnxruntime_qnn", ""])
def test_a_plugin_is_not_loaded_on_a_bundle_s_word(folder: Path, package: str) -> None:
    """Not even one that belongs to another provider."""
    bundle = with_target(folder, plugin=BundledPlugin(package=package, library="libevil.so"))
    with pytest.raises(UsageError, match="--plugin"):
        bundled_target(bundle)
    assert bundled_target(bundle, plugin="mine").plugin == "mine"


def test_a_known_plugin_is_taken(folder: Path) -> None:
    bundle = with_target(
        folder, provider=("QNNExecutionProvider",), plugin=BundledPlugin(package="onnxruntime_qnn")
    )
    assert bundled_target(bundle).plugin == "onnxruntime_qnn"


@pytest.mark.parametrize(
    "value", ["/opt/x.so", "libevil.so", "..\\evil", '{"dir": "a/b"}', "EVIL.DLL", "<path>/x"]
)
def test_a_value_that_names_a_file_has_to_be_given(folder: Path, value: str) -> None:
    bundle = with_target(folder, options={"backend": value, "fast": "1"})
    with pytest.raises(UsageError, match="--option backend"):
        bundled_target(bundle)
    assert bundled_target(bundle, options={"backend": "mine"}).options == {"backend": "mine", "fast": "1"}
    bundle = with_target(folder, env={"VENDOR": value})
    with pytest.raises(UsageError, match="set VENDOR in the environment"):
        bundled_target(bundle, environment={})
    assert bundled_target(bundle, environment={"VENDOR": "/mine"}).env == {"VENDOR": "/mine"}


@pytest.mark.parametrize("provider", [CPU, "CUDAExecutionProvider", "UnknownExecutionProvider"])
@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "PYTHONPATH",
        "PATH",
        "ld_library_path",
        "DYLD_INSERT_LIBRARIES",
        "HTTPS_PROXY",
        "GCONV_PATH",
        "OPENSSL_CONF",
        "NODE_OPTIONS",
        "OMP_TOOL_LIBRARIES",
        "VK_ADD_DRIVER_FILES",
        "EP_HARNESS_CACHE",
        "ORT_TENSORRT_FP16_ENABLE",
        "",
    ],
)
def test_variables_that_the_catalogue_does_not_have_are_refused(
    folder: Path, name: str, provider: str
) -> None:
    bundle = with_target(folder, provider=(provider,), env={name: "x"})
    with pytest.raises(UsageError, match=f"it sets the variable {name}") as caught:
        bundled_target(bundle)
    assert "--target MATRIX:NAME" in str(caught.value)


def test_variables_of_the_catalogue_are_taken(folder: Path) -> None:
    chain = ("TensorrtExecutionProvider", "CUDAExecutionProvider")
    env = {"ORT_TENSORRT_FP16_ENABLE": "1", "ORT_DISABLE_FLASH_ATTENTION": "1"}
    bundle = with_target(folder, provider=chain, env=env)
    assert bundled_target(bundle, environment={"ORT_TENSORRT_FP16_ENABLE": "0"}).env == env
    with pytest.raises(UsageError, match="set NVIDIA_TF32_OVERRIDE in the environment"):
        bundled_target(with_target(folder, provider=chain, env={"NVIDIA_TF32_OVERRIDE": "./evil.so"}))


def test_a_variable_that_this_user_has_set_alike_is_taken(folder: Path) -> None:
    bundle = with_target(folder, env={"VENDOR_MODE": "fast"})
    assert bundled_target(bundle, environment={"VENDOR_MODE": "fast"}).env == {"VENDOR_MODE": "fast"}
    with pytest.raises(UsageError, match="set VENDOR_MODE='fast' in the environment"):
        bundled_target(bundle, environment={"VENDOR_MODE": "slow"})


def test_an_option_that_takes_a_path_has_to_be_given(folder: Path) -> None:
    bundle = with_target(folder, provider=("QNNExecutionProvider",), options={"backend_path": "evil"})
    with pytest.raises(UsageError, match="--option backend_path"):
        bundled_target(bundle)


@pytest.mark.parametrize(
    ("axis", "value"),
    [
        ("scenario", "evil"),
        ("graph_optimization", "ALL"),
        ("execution_mode", ""),
        ("form", "ort"),
        ("intra_op_threads", "1000000"),
        ("scenario.threads", "257"),
        ("scenario.threads", "0"),
        ("scenario.runs", "9999999"),
        ("scenario.count", "-1"),
        ("scenario.evil", "1"),
        ("repeat.runs", "1001"),
        ("repeat.sessions", "1" * 5000),
        ("repeat.bit_equal", "2"),
        ("session.save_model_format", "../x"),
        ("session.ep.context_file_path", "x"),
        ("session.optimized_model_external_initializers_file_name", "x"),
    ],
)
def test_settings_that_could_write_files_are_refused(folder: Path, axis: str, value: str) -> None:
    bundle = read_bundle(folder)
    manifest = msgspec.structs.replace(bundle.manifest, axes={**bundle.manifest.axes, axis: value})
    target = Target(name="here", provider=(CPU,))
    with pytest.raises(UsageError), staged(msgspec.structs.replace(bundle, manifest=manifest), target):
        pass


def test_figures_of_a_scenario_are_taken(folder: Path) -> None:
    bundle = read_bundle(folder)
    own = {"scenario": "concurrent", "scenario.threads": "2", "scenario.runs": "3", "scenario.budget_s": "20"}
    manifest = msgspec.structs.replace(bundle.manifest, axes={**bundle.manifest.axes, **own})
    with staged(
        msgspec.structs.replace(bundle, manifest=manifest), Target(name="t", provider=(CPU,))
    ) as stage:
        (cell,) = stage.plan.cells
        settings = stage.plan.matrix.scenarios.settings("concurrent", cell.axes)
    assert settings == {"threads": 2, "runs": 3, "budget_s": 20}


def test_a_target_has_the_manifest_s_own_type() -> None:
    """So that a field added to the manifest is thought of where a stranger's target is read."""
    assert BundledTarget.__struct_fields__ == ("name", "provider", "plugin", "device", "options", "env")


@pytest.mark.parametrize("version", [-(2**63), 2**63 - 1])
def test_a_model_of_a_version_that_does_not_exist_is_no_verdict(
    version: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 would say that the fault is there."""
    model = onnx.load(folder / "model.onnx")
    model.opset_import[0].version = version
    content = model.SerializeToString()
    (folder / "model.onnx").write_bytes(content)
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    edited(folder, lambda manifest: manifest["files"].update({"model.onnx": entry}))
    assert main(["replay", str(folder), "--provider", "CPUExecutionProvider"]) == 2
    told = capsys.readouterr().err
    assert f"it imports version {version} of ai.onnx, which does not exist" in told
    assert len(told.splitlines()) <= 2


def test_a_zip_of_a_million_entries_is_not_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.core.files.zips.MOST_DIRECTORY", 1000)
    refused(zipped(folder, *((f"{number:0100}", b"") for number in range(10))), "list of entries is larger")
