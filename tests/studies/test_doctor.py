"""Every provider and every target gets a row: the real onnxruntime, and one that misbehaves on demand."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.catalog.catalog import load_catalog
from harness.core.records.verdict import Cause
from harness.plan.matrix import Matrix
from harness.plan.target import Target
from harness.studies import usable_providers
from harness.studies.trial import ProviderTrial, ProviderWay
from harness.studies.usable_providers import DoctorRow, examine
from tests.kit import FAKE_ENV, make_matrix

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake dies by POSIX signals")

CUDA, CPU, AZURE = "CUDAExecutionProvider", "CPUExecutionProvider", "AzureExecutionProvider"


def fault(name: str) -> dict[str, Any]:
    return {"env": {"FAKE_FAULT": name}}


# Settings of a target beside the usual ones; the cause, and what the advice says.
TARGETS: dict[str, tuple[dict[str, Any], str, str]] = {
    "library": (
        fault("library_on_stderr"),
        Cause.LIBRARY_MISSING,
        "provides libcublasLt.so.13: CUDA's cuBLAS",
    ),
    "hollow": (fault("hollow"), Cause.IMPORT_FAILED, "uninstall every distribution"),
    "broken": (fault("broken_dependency"), Cause.IMPORT_FAILED, "pip install 'coloredlogs'"),
    "absent": (fault("not_installed"), Cause.NOT_INSTALLED, "pip install 'onnxruntime-gpu'"),
    "unlisted": (fault("unlisted"), Cause.NOT_IN_BUILD, "onnxruntime-gpu"),
    "no-device": ({**fault("no_device"), "plugin": "here.so"}, Cause.NO_DEVICE, "nvidia-smi"),
    "filtered": ({"plugin": "here.so", "device": {"type": "NPU"}}, Cause.NO_DEVICE, "device filter"),
    "crash": (fault("abort_in_register"), Cause.REGISTRATION_FAILED, "ep-harness check"),
    "rejected": ({}, "option_rejected", "providers.md"),
    "no-python": ({"runtime": {"python": "gone/bin/python"}}, Cause.NOT_INSTALLED, "does not start"),
}


def matrix(folder: Path) -> Matrix:
    tables = []
    for name, (settings, _, _) in TARGETS.items():
        table = {"name": name, "provider": CUDA, **settings}
        tables.append({**table, "env": {**FAKE_ENV, **settings.get("env", {})}})
    tables.append({"name": "fine", "provider": CPU, "workers": 4, "alone": True})
    models = {"suites": ["onnx-node"]}
    axes = {"graph_optimization": ["basic", "all"]}
    written = {"schema": 1, "models": models, "axes": axes, "target": tables}
    loaded = make_matrix(written, folder / "m.toml")
    # Not by way of the file, where it would be refused: the catalogue has no such option.
    targets = (
        msgspec.structs.replace(target, options={"precision": "wrong"})
        if target.name == "rejected"
        else target
        for target in loaded.targets
    )
    return msgspec.structs.replace(loaded, targets=tuple(targets))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[DoctorRow, ...]:
    home = tmp_path_factory.mktemp("doctor")
    (home / "here.so").touch()
    with pytest.MonkeyPatch.context() as patch:
        # Plugins take seconds, and have a test of their own.
        patch.setattr(usable_providers, "installed_plugins", lambda _: (("AcmeEP", "no_such_package"),))
        return examine(matrix(home), lambda _: None)


def here(rows: tuple[DoctorRow, ...], provider: str) -> DoctorRow:
    (found,) = [row for row in rows if row.provider == provider and not row.target]
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_has_a_reason_and_a_next_step(rows: tuple[DoctorRow, ...], name: str) -> None:
    (row,) = [row for row in rows if row.target == name]
    _, cause, advice = TARGETS[name]
    assert (row.provider, row.state, row.cause) == (CUDA, "unavailable", cause), row
    assert advice in row.advice
    assert row.reason
    assert row.nodes is None


def test_targets_come_first_in_their_order(rows: tuple[DoctorRow, ...]) -> None:
    assert [row.target for row in rows if row.target] == [*TARGETS, "fine"]
    assert rows[len(TARGETS)].target == "fine"
    assert rows[len(TARGETS)].usable
    assert rows[len(TARGETS)].nodes


def test_every_provider_of_the_catalogue_has_a_row(rows: tuple[DoctorRow, ...]) -> None:
    named = {row.provider for row in rows if not row.target}
    assert named == {*load_catalog().names, "AcmeEP"}


def test_the_cpu_provider_computes(rows: tuple[DoctorRow, ...]) -> None:
    row = here(rows, CPU)
    assert row.usable
    assert row.nodes
    assert (row.cause, row.reason, row.advice, row.remarks) == ("", "", "", ())
    assert {"onnxruntime", "numpy", "python"} <= row.versions.keys()


def test_a_provider_that_leaves_all_to_the_cpu_is_marked(rows: tuple[DoctorRow, ...]) -> None:
    row = here(rows, AZURE)
    if row.cause == Cause.NOT_IN_BUILD:
        pytest.skip("this onnxruntime has no provider that computes nothing")
    assert row.usable
    assert row.nodes == 0
    assert "0 nodes" in row.remarks[0]
    assert "fallback" in row.advice


@pytest.mark.parametrize(
    ("provider", "where"),
    [
        ("NnapiExecutionProvider", "for Android only"),
        ("CoreMLExecutionProvider", "for macOS and iOS only"),
        ("DmlExecutionProvider", "for Windows only"),
        ("RknpuExecutionProvider", ""),
        ("TvmExecutionProvider", "dropped with 1.21"),
    ],
)
@pytest.mark.skipif("sys.platform != 'linux'")
def test_a_provider_outside_the_build_has_its_place(
    rows: tuple[DoctorRow, ...], provider: str, where: str
) -> None:
    row = here(rows, provider)
    assert (row.state, row.cause) == ("unavailable", Cause.NOT_IN_BUILD)
    assert where in row.reason
    known = load_catalog().find(provider)
    assert known
    assert row.advice == known.advice


def test_a_plugin_that_cannot_be_imported_is_a_row(rows: tuple[DoctorRow, ...]) -> None:
    row = here(rows, "AcmeEP")
    assert (row.cause, row.plugin) == (Cause.NOT_INSTALLED, "no_such_package")
    assert row.advice == "pip install 'no-such-package'"


def test_a_broken_onnxruntime_is_the_reason_of_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**FAKE_ENV, "FAKE_FAULT": "hollow"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(usable_providers, "installed_plugins", lambda _: ())
    rows = examine(None, lambda _: None)
    assert {row.provider for row in rows} == set(load_catalog().names)
    built_in = [row for row in rows if load_catalog().find(row.provider).registration != ("plugin",)]  # type: ignore[union-attr]
    assert {row.cause for row in built_in} == {Cause.IMPORT_FAILED}
    assert all("hollow" in row.reason and "uninstall" in row.advice for row in built_in)


def test_the_first_way_that_computes_counts() -> None:
    def way(name: str, provider: str, env: dict[str, str] | None = None) -> ProviderWay:
        return ProviderWay(target=Target(name=name, provider=(provider,), env=env or {}), meaning=name)

    hollow = {**FAKE_ENV, "FAKE_FAULT": "hollow"}
    series = {
        "cpu": (way("plain", CPU),),
        "both": (way("bad", CPU, hollow), way("good", CPU), way("needless", CPU, hollow)),
        "neither": (way("worse", CPU, hollow), way("worst", CPU, hollow)),
        "waits": (way("cuda", CUDA),),
    }
    found = ProviderTrial(series, waiting=frozenset({"waits"}), asked="cpu", notify=lambda _: None).run()
    assert {name: each.way.meaning for name, each in found.items()} == {
        "cpu": "plain",
        "both": "good",
        "neither": "worse",
    }
    assert found["both"].works
    assert not found["neither"].works
