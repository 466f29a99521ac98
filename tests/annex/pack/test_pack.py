"""`ep-harness pack`: what is chosen, what is written, and what is refused."""

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from harness.annex.pack.choosing import choose
from harness.annex.pack.proof import Proof
from harness.cli.main import main
from harness.core.records.cell import Cell, parse_cell_id
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.corpus.packages.read_package import read_package
from harness.plan.target import Target
from tests.kit import record
from tests.small_packages import CPU, classifier, write_package

OPENVINO = "OpenVINOExecutionProvider"

MATRIX = f"""
schema = 1
[models]
suites = ["onnx-node"]
[axes]
precision = ["fp32", "int8-dynamic"]
[[target]]
name = "cpu"
provider = "{CPU}"
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("pack")
    (home / "models").mkdir()
    onnx.save(classifier(), home / "models" / "small.onnx")
    (home / "m.toml").write_text(MATRIX, encoding="utf-8")
    out = home / "small.ortpackage"
    assert main(["pack", str(home / "models"), "--matrix", str(home / "m.toml"), "--out", str(out)]) == 0
    return out


def test_what_is_written_can_be_read_and_tells_what_it_rests_on(packed: Path) -> None:
    package = read_package(packed, hashed=True)
    (component,) = package.components
    assert component.name == "small"
    (variant,) = component.variants
    assert (variant.ep, variant.device) == (CPU, "cpu")
    manifest = json.loads((packed / "manifest.json").read_text(encoding="utf-8"))
    proved = manifest["components"]["small"]["variants"][variant.name]["additional_metadata"]["proved"]
    assert proved["verdict"] == "pass"
    assert proved["cell"].startswith("models/small.onnx[cpu")
    assert proved["onnxruntime"]


def test_an_existing_folder_stays(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "any.onnx", "--out", str(packed)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_right_package_passes_the_check(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "--check", str(packed), "--matrix", str(packed.with_name("m.toml"))]) == 0
    told = capsys.readouterr().out
    assert "nothing is wrong" in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_wrong_variant_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.toml").write_text(MATRIX, encoding="utf-8")
    float32 = classifier()
    variants = {"a": float32, "b": float32, "other": classifier(scale=1.5)}
    package = write_package(tmp_path / "p", variants)
    code = main(["pack", "--check", str(package), "--matrix", str(tmp_path / "m.toml"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 1
    assert told["wrong"] == ["p/main/other[cpu]"]


def test_a_changed_asset_is_an_error_of_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = write_package(tmp_path / "p", {"a": classifier()})
    asset = package / "shared_assets" / f"sha256-{'0' * 64}"
    asset.mkdir(parents=True)
    assert main(["pack", "--check", str(package)]) == 2
    assert "its content has the address" in capsys.readouterr().err


def _proof(*records: Record, simulated: dict[str, str] | None = None, **targets: str) -> Proof:
    device = [{"device": {"type": "CPU"}}]
    return Proof(
        records={_cell(one): one for one in records},
        cases={},
        targets={name: Target(name=name, provider=(provider,)) for name, provider in targets.items()},
        fingerprints={name: {"devices": device} for name in targets},
        simulated=simulated or {},
    )


def _cell(one: Record) -> Cell:
    suite, model, target, axes = parse_cell_id(one.cell)
    return Cell(suite=suite, model=model, target=target, axes=tuple(sorted(axes.items())))


def _tried(target: str, verdict: Verdict = Verdict.PASS, provider: str = OPENVINO, **fields: Any) -> Record:
    return record("m.onnx", verdict, target=target, provider=provider, **fields)


def test_only_what_passes_on_a_device_is_chosen() -> None:
    proof = _proof(
        _tried("cpu", provider=CPU),
        _tried("wrong", Verdict.MISMATCH),
        _tried("npu"),
        _tried("left", Verdict.FALLBACK),
        simulated={"npu": "a simulator"},
        cpu=CPU,
        wrong=OPENVINO,
        npu="QNNExecutionProvider",
        left="CUDAExecutionProvider",
    )
    chosen, left = choose(proof, "m.onnx")
    assert [one.name for one in chosen] == ["cpu"]
    why = {one.target: one.why for one in left}
    assert why["npu"] == "right, but on a simulator: try it on a device"
    assert why["wrong"].startswith("mismatch")
    assert why["left"] == "fallback: the CPU provider computed it"


def test_one_variant_for_each_provider_and_device_and_that_for_the_cpu_last() -> None:
    records = (_tried("cpu", provider=CPU), _tried("one"), _tried("two"))
    proof = _proof(*records, cpu=CPU, one=OPENVINO, two=OPENVINO)
    chosen, left = choose(proof, "m.onnx")
    assert [(one.name, one.device) for one in chosen] == [("one", "cpu"), ("cpu", "cpu")]
    assert [one.target for one in left] == ["two"]


def test_a_decoder_that_generates_wrongly_is_left_out() -> None:
    wrong = _tried("one", Verdict.MISMATCH, axes={"scenario": "generate"})
    proof = _proof(_tried("cpu", provider=CPU), _tried("one"), wrong, cpu=CPU, one=OPENVINO)
    chosen, left = choose(proof, "m.onnx")
    assert [one.name for one in chosen] == ["cpu"]
    assert left[0].why.startswith("as a generator of text: mismatch")
