"""Runs of model packages: variants held against each other, and what a runtime selects."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.corpus.packages.asset_digest import asset_address, asset_folder
from tests.kit import records_of, run_matrix
from tests.small_packages import CPU, classifier, labeller, write_manifest, write_package

QNN = "QNNExecutionProvider"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Record]:
    home = tmp_path_factory.mktemp("packages")
    float32 = classifier()
    variants = {
        "other": classifier(scale=1.5),
        "lossy": classifier(levels=4),
        "int8": classifier(levels=127),
        "fp32": float32,
        "same": float32,
        "npu": float32,
    }
    options: dict[str, Any] = {
        "npu": {"ep": QNN, "device": "npu"},
        "same": {"ort": {"session_options": {"session.disable_prepacking": "1"}}},
        "int8": {"ort": {"provider_options": {"arena_extend_strategy": "kSameAsRequested"}}},
    }
    write_package(home / "p.ortpackage", variants, **options)
    write_package(home / "q.ortpackage", {"npu": float32}, npu={"ep": QNN})
    matrix = {
        "models": {"packages": ["p.ortpackage"], "folders": ["q.ortpackage"]},
        "axes": {"scenario": ["plain", "package"]},
        "target": [{"name": "cpu", "provider": CPU}],
    }
    found = records_of(run_matrix(home, matrix))
    return {(record.suite, record.model): record for record in found}


def test_variants_run_on_the_targets_of_their_provider(records: dict[tuple[str, str], Record]) -> None:
    assert {model for suite, model in records if suite == "p.ortpackage"} == {
        "main",
        *(f"main/{name}" for name in ("other", "lossy", "int8", "fp32", "same")),
    }
    assert {model for suite, model in records if suite == "q.ortpackage"} == {"main"}


@pytest.mark.parametrize(
    ("variant", "verdict", "reason"),
    [
        ("fp32", Verdict.PASS, ""),
        ("same", Verdict.PASS, ""),
        ("int8", Verdict.PASS, ""),
        ("lossy", Verdict.PRECISION_LOSS, "of the answer of main/fp32, and 4.0 are needed"),
        ("other", Verdict.MISMATCH, "is not what main/fp32 computes"),
    ],
)
def test_variants_are_held_against_the_finest(
    records: dict[tuple[str, str], Record], variant: str, verdict: Verdict, reason: str
) -> None:
    record = records["p.ortpackage", f"main/{variant}"]
    assert record.verdict is verdict, record.reason
    assert reason in record.reason


def test_the_options_of_a_variant_are_in_the_id_of_its_cell(records: dict[tuple[str, str], Record]) -> None:
    assert records["p.ortpackage", "main/same"].cell.endswith("[cpu,session.session.disable_prepacking=1]")
    int8 = records["p.ortpackage", "main/int8"]
    assert int8.cell.endswith("[cpu,option.arena_extend_strategy=kSameAsRequested]")


def test_the_first_of_equal_variants_is_selected_and_judged(records: dict[tuple[str, str], Record]) -> None:
    record = records["p.ortpackage", "main"]
    assert record.scenario["by_rules"] == record.scenario["chosen"] == "other"
    assert record.scenario["answers"][-1] == "another provider"  # type: ignore[index] # a tuple of texts
    assert record.verdict is Verdict.MISMATCH


def test_a_package_without_a_variant_for_the_target_has_a_hole(
    records: dict[tuple[str, str], Record],
) -> None:
    record = records["q.ortpackage", "main"]
    assert record.verdict is Verdict.NO_VARIANT
    assert "npu: another provider" in record.reason


def test_a_variant_with_other_inputs_is_no_sibling(tmp_path: Path) -> None:
    renamed = classifier()
    renamed.graph.input[0].name = renamed.graph.node[0].input[0] = "pixels"
    write_package(tmp_path / "p", {"one": classifier(), "two": renamed})
    matrix = {"models": {"packages": ["p"]}, "target": [{"name": "cpu", "provider": CPU}]}
    found = {record.model: record for record in records_of(run_matrix(tmp_path, matrix))}
    assert found["main/one"].verdict is Verdict.PASS
    assert "it has the inputs pixels, and main/one has x" in found["main/two"].reason


def test_a_class_that_flips_within_the_precision_of_a_variant_is_no_failure(tmp_path: Path) -> None:
    """The scores are inside the model: they are asked of the variant that has the golden."""
    levels = {"int8": 127, "lossy": 4}
    variants = {"fp32": labeller(), "other": labeller(scale=-1)}
    variants |= {name: labeller(levels=each) for name, each in levels.items()}
    root = write_package(tmp_path / "p", variants)
    (root / "fp32" / "test_data_set_0").mkdir()
    inputs = np.random.default_rng(3).normal(size=(400, 32)).astype(np.float32)
    content = numpy_helper.from_array(inputs, "x").SerializeToString()
    (root / "fp32" / "test_data_set_0" / "input_0.pb").write_bytes(content)
    matrix = {"models": {"packages": ["p"]}, "target": [{"name": "cpu", "provider": CPU}]}
    found = {one.model.removeprefix("main/"): one for one in records_of(run_matrix(tmp_path, matrix))}
    assert {name: one.verdict for name, one in found.items()} == {
        "fp32": Verdict.PASS,
        "int8": Verdict.PASS,
        "lossy": Verdict.MISMATCH,
        "other": Verdict.MISMATCH,
    }
    assert found["int8"].reason.endswith("positions differ where rounding at its precision decides")
    assert "the golden's choice leads by" in found["lossy"].reason


def test_weights_may_lie_in_a_shared_folder(tmp_path: Path) -> None:
    root = write_package(tmp_path / "p", {"one": classifier(), "two": classifier(levels=127)})
    (root / "weights").mkdir()
    onnx.save(
        classifier(),
        root / "one" / "model.onnx",
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    (root / "one" / "w.bin").rename(root / "weights" / "w.bin")
    manifest = json.loads((root / "manifest.json").read_text(encoding="utf-8"))
    option = {"session.model_external_initializers_file_folder_path": _as_asset(root, root / "weights")}
    manifest["components"]["main"]["variants"]["one"]["executor_info"]["ort"]["session_options"] = option
    (root / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    axes = {"scenario": ["plain", "package"]}
    matrix = {"models": {"packages": ["p"]}, "axes": axes, "target": [{"name": "cpu", "provider": CPU}]}
    found = records_of(run_matrix(tmp_path, matrix))
    assert {one.model: one.verdict for one in found} == dict.fromkeys(
        ("main", "main/one", "main/two"), Verdict.PASS
    )


def _as_asset(root: Path, folder: Path) -> str:
    address = asset_address(folder)
    (root / "shared_assets").mkdir()
    folder.rename(root / "shared_assets" / asset_folder(address))
    return address


def test_a_package_that_the_text_forbids_is_an_error_of_use(tmp_path: Path) -> None:
    write_package(tmp_path / "p", {"one": classifier()})
    write_manifest(tmp_path / "p", {"main": {"variants": {"one": {"device": "tpu"}}}})
    with pytest.raises(Exception, match=r"components\.main\.variants\.one\.device: got \"tpu\""):
        run_matrix(tmp_path, {"models": {"packages": ["p"]}, "target": [{"name": "c", "provider": CPU}]})
