"""Plugin packages are found by their text; only unknown ones are imported, in another process."""

import os
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from harness.catalog.catalog import Catalog, load_catalog
from harness.studies.plugins import installed_plugins


def install(site: Path, package: str, text: str, distribution: str = "") -> None:
    (site / package).mkdir(parents=True)
    (site / package / "__init__.py").write_text(text, encoding="utf-8")
    if distribution:
        info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "RECORD").write_text(f"{package}/__init__.py,,\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


LIBRARY = "def get_library_path(): return '/x'\n"
RAISES = "raise ImportError('never imported here')\n"


def found(site: Path) -> set[tuple[str, str]]:
    return {pair for pair in installed_plugins(load_catalog()) if (site / pair[1]).is_dir()}


def test_a_package_of_the_catalogue_is_not_imported(site: Path) -> None:
    install(site, "onnxruntime_ep_nv_tensorrt_rtx", LIBRARY + RAISES)
    assert found(site) == {("NvTensorRTRTXExecutionProvider", "onnxruntime_ep_nv_tensorrt_rtx")}


@pytest.mark.parametrize(
    ("text", "provider"),
    [
        ("def get_ep_names(): print('hello'); return ['AcmeEP', 'Other']\n", "AcmeEP"),
        ("def get_ep_name(): return 'AcmeEP'\n", "AcmeEP"),
        ("def get_ep_name(): return 'qnnexecutionprovider'\n", "QNNExecutionProvider"),
        ("def get_ep_name(): import os; os.abort()\n", "acme_ep"),
        ("", "acme_ep"),
        (RAISES, "acme_ep"),
    ],
)
def test_an_unknown_package_names_its_provider(site: Path, text: str, provider: str) -> None:
    install(site, "acme_ep", LIBRARY + text, "onnxruntime-ep-acme")
    assert found(site) == {(provider, "acme_ep")}


def test_other_packages_are_none(site: Path) -> None:
    install(site, "acme_ep", LIBRARY)  # its distribution has another name
    install(site, "ort_tool", "x = 1\n", "onnxruntime-tool")
    assert found(site) == set()


def test_distributions_without_their_packages_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [PurePosixPath("no_such_package/__init__.py"), PurePosixPath("a..b/__init__.py")]
    broken = SimpleNamespace(metadata={"Name": "onnxruntime-broken"}, files=files)
    monkeypatch.setattr("importlib.metadata.distributions", lambda: [broken])
    assert installed_plugins(Catalog(providers=())) == ()
