"""The provider files, and how providers are found."""

import re
from pathlib import Path

import pytest

from harness.catalog.catalog import find_provider, load_catalog, read_catalog
from harness.catalog.provider import Provider
from harness.core.text.errors import UsageError
from harness.data_files import data_root

# Every name of current and former releases of onnxruntime, and of vendors.
KNOWN = [
    "CPU",
    "CUDA",
    "Tensorrt",
    "NvTensorRTRTX",
    "Dml",
    "OpenVINO",
    "Dnnl",
    "Xnnpack",
    "QNN",
    "CANN",
    "Nnapi",
    "CoreML",
    "MIGraphX",
    "ROCM",
    "ACL",
    "ArmNN",
    "Rknpu",
    "VitisAI",
    "Tvm",
    "WebGpu",
    "WebNN",
    "Js",
    "Azure",
    "SNPE",
    "VSINPU",
    "TIDL",
    "AMDGPU",
    "MorphiZen",
    "NGRAPH",
    "Nuphar",
    "Stvm",
]

GOOD = """
schema = 1
name = "XExecutionProvider"
aliases = ["X"]
vendor = "V"
state = "active"
platforms = ["linux"]
registration = ["plugin"]
hardware = "h"
kind = "gpu"
advice = "none"
unknown_options = "refused"
source = ["a page"]
"""


def test_every_known_provider_has_a_file() -> None:
    expected = {f"{name}ExecutionProvider" for name in KNOWN} | {"TIDLCompilationProvider", "cpu_ep", "ggml"}
    assert set(load_catalog().names) == expected


def test_every_file_is_loaded() -> None:
    files = list((data_root() / "matrices" / "providers").glob("*.toml"))
    assert len(load_catalog().providers) == len(files)


def test_names_are_unique_and_within_the_length_that_onnxruntime_allows() -> None:
    names = load_catalog().names
    assert len({name.casefold() for name in names}) == len(names)
    assert all(len(name) <= 30 for name in names)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("QNNExecutionProvider", "QNNExecutionProvider"),
        ("qnn", "QNNExecutionProvider"),
        ("NvTensorRtRtxExecutionProvider", "NvTensorRTRTXExecutionProvider"),
        ("NvTensorRtRtx", "NvTensorRTRTXExecutionProvider"),
        ("DML", "DmlExecutionProvider"),
        ("onednn", "DnnlExecutionProvider"),
    ],
)
def test_a_provider_is_found_by_any_spelling(spelling: str, name: str) -> None:
    found = load_catalog().find(spelling)
    assert found is not None
    assert found.name == name
    assert find_provider(spelling) == found


def test_an_unknown_name_finds_nothing() -> None:
    assert load_catalog().find("QNNN") is None
    assert find_provider("QNNN") is find_provider("") is None


def test_only_files_that_mention_a_name_are_parsed(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[nothing", encoding="utf-8")
    (tmp_path / "good.toml").write_text(GOOD, encoding="utf-8")
    assert read_catalog(tmp_path, mentioning="xEXECUTIONprovider").names == ("XExecutionProvider",)
    assert read_catalog(tmp_path, mentioning="Absent").names == ()
    with pytest.raises(UsageError, match=r"bad\.toml"):
        read_catalog(tmp_path, mentioning="nothing")


def test_plugin_packages_are_import_names_of_plugins() -> None:
    for provider in load_catalog().providers:
        assert all(package.isidentifier() for package in provider.plugin_packages)
        assert not provider.plugin_packages or "plugin" in provider.registration
    packages = {package for provider in load_catalog().providers for package in provider.plugin_packages}
    assert packages >= {"onnxruntime_ep_openvino", "onnxruntime_qnn", "onnxruntime_ep_webgpu"}


@pytest.mark.parametrize("provider", load_catalog().providers, ids=lambda provider: provider.name)
def test_a_bundle_may_set_no_variable_that_names_code(provider: Provider) -> None:
    """Nor one that names a place to write; what ways to try set is known, unless it is such a name."""
    names = [variable.name for variable in provider.variables]
    words = "LIB|LIBRARY|LIBRARIES|PRELOAD|PATHS?|DIR|FILES?|CONF|CONFIG|OPTIONS|PLUGIN|DUMP|PROXY"
    telling = re.compile(f"(^|_)({words})(_|$)")
    assert not [name for name in names if telling.search(name)]
    assert not {"PATH", "HOME"} & set(names)
    tables = [mode.env for mode in provider.precision_modes] + [probe.env for probe in provider.probes]
    for name in {name for table in tables for name in table}:
        assert (name in names) != bool(telling.search(name))


def test_the_catalogue_is_read_once() -> None:
    assert load_catalog() is load_catalog()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (GOOD.replace('"active"', '"alive"'), "Invalid enum value 'alive' - at `$.state`"),
        (GOOD + "extra = 1", "Object contains unknown field `extra`"),
        (GOOD.replace("schema = 1", "schema = 2"), "Invalid enum value 2 - at `$.schema`"),
        ("schema = 1\nname =\n", "Invalid value (at line 2, column 7)"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, bad: str, message: str) -> None:
    (tmp_path / "bad.toml").write_text(bad, encoding="utf-8")
    (tmp_path / "good.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_catalog(tmp_path)
    (problem,) = caught.value.problems
    assert problem.where == str(tmp_path / "bad.toml")
    assert message in problem.what


def test_two_files_must_not_have_one_alias(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "b.toml").write_text(GOOD.replace("XExecution", "YExecution"), encoding="utf-8")
    with pytest.raises(UsageError, match="YExecutionProvider and XExecutionProvider both have the name 'x'"):
        read_catalog(tmp_path)


def test_two_files_must_not_have_one_name(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "b.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(UsageError, match="both have the name"):
        read_catalog(tmp_path)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no provider files"):
        read_catalog(tmp_path)
