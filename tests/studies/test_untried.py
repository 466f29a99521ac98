"""A runtime or a provider newer than all that were tried is told, by doctor too; the list is in one place."""

import os
import tomllib
from pathlib import Path

import msgspec
import pytest

from harness.catalog.catalog import load_catalog
from harness.catalog.provider import Provider, TriedReleases
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.data_files import data_root
from harness.studies import usable_providers
from harness.studies.newer_releases import newer_than_tried
from harness.studies.usable_providers import examine
from tests.kit import FAKE_ENV, make_matrix

ROOT = Path(__file__).parents[2]
NEWER = "is newer than any that was tried"
ENDING = "verdicts may need new expectations"


def of_catalogue(name: str) -> Provider:
    provider = load_catalog().find(name)
    assert provider
    return provider


def tried(**releases: tuple[str, ...]) -> Provider:
    return msgspec.structs.replace(of_catalogue("CUDAExecutionProvider"), tried=TriedReleases(**releases))


NEWEST = of_catalogue(CPU).tried.in_build[-1]


@pytest.mark.parametrize(
    ("release", "newer"),
    [
        ("1.32.0", False),
        ("1.32", False),
        ("1.32.0+cu130", False),
        ("1.32.0.0", False),
        ("1.9.0", False),
        ("1.100.0", True),
        ("1.32.1", True),
        ("1.33.0.dev20261201", True),
        ("2", True),
        ("", False),
        ("unknown", False),
    ],
)
def test_a_newer_plugin_is_told(release: str, newer: bool) -> None:  # noqa: FBT001
    provider = tried(in_build=("1.24.1",), plugin=("1.8.1", "1.32.0", "1.10.0"))
    told = list(newer_than_tried(provider, {"onnxruntime": NEWEST, "plugin": release}, plugin=True))
    assert told == [f"CUDAExecutionProvider {release} {NEWER} (1.32.0): {ENDING}"] * newer


def test_a_provider_of_the_build_has_the_release_of_onnxruntime() -> None:
    told = list(newer_than_tried(tried(in_build=("1.24.1",)), {"onnxruntime": NEWEST}, plugin=False))
    assert told == [f"CUDAExecutionProvider of onnxruntime {NEWEST} {NEWER} (1.24.1): {ENDING}"]


@pytest.mark.parametrize("provider", [None, of_catalogue(CPU), tried(in_build=("1.24.1",))])
def test_a_newer_runtime_is_told_once_for_every_provider_of_it(provider: Provider | None) -> None:
    told = list(newer_than_tried(provider, {"onnxruntime": "99.0.0"}, plugin=False))
    assert told == [f"onnxruntime 99.0.0 {NEWER} ({NEWEST}): {ENDING}"]


def test_a_newer_runtime_and_a_newer_plugin_are_two_sentences() -> None:
    versions = {"onnxruntime": "99.0.0", "plugin": "2.0"}
    assert len(list(newer_than_tried(tried(plugin=("1.8.1",)), versions, plugin=True))) == 2


def test_nothing_is_told_of_a_provider_that_was_never_tried() -> None:
    assert not list(newer_than_tried(tried(), {"onnxruntime": NEWEST, "plugin": "9"}, plugin=True))
    assert not list(newer_than_tried(None, {"onnxruntime": NEWEST}, plugin=False))


def test_releases_are_listed_from_the_oldest_on() -> None:
    for provider in load_catalog().providers:
        for releases in (provider.tried.in_build, provider.tried.plugin):
            numbers = [tuple(map(int, release.split("."))) for release in releases]
            assert numbers == sorted(set(numbers)), provider.name


def test_the_default_releases_are_the_newest_that_were_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = [line.partition(";")[0] for line in project["project"]["optional-dependencies"]["local"]]
    pinned = dict(pin.strip().split("==") for pin in pins)
    assert pinned.pop("onnxruntime") == NEWEST
    of_plugin = {wheel: each.tried.plugin for each in load_catalog().providers for wheel in each.wheels}
    assert {wheel: of_plugin[wheel][-1:] for wheel in pinned} == {
        wheel: (version,) for wheel, version in pinned.items()
    }


def test_every_release_of_the_matrix_of_versions_was_tried() -> None:
    matrix = tomllib.loads((data_root() / "matrices" / "versions.toml").read_text(encoding="utf-8"))
    releases = [
        target["runtime"]["packages"][0].removeprefix("onnxruntime==")
        for target in matrix["target"]
        if target["provider"] == CPU
    ]
    assert releases == list(of_catalogue(CPU).tried.in_build)


@pytest.mark.skipif(os.name != "posix", reason="the fake dies by POSIX signals")
def test_doctor_tells_of_a_newer_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usable_providers, "installed_plugins", lambda _: ())
    target = {"name": "next", "provider": CPU, "env": {**FAKE_ENV, "FAKE_VERSION": "99.0.0"}}
    written = {"schema": 1, "models": {"suites": ["onnx-node"]}, "target": [target]}
    row = examine(make_matrix(written, tmp_path / "m.toml"), lambda _: None)[0]
    assert row.remarks == (f"onnxruntime 99.0.0 {NEWER} ({NEWEST}): {ENDING}",)
