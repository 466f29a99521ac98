"""Packages with one fault each, some twenty, and honest ones: each fault has its word, honest ones none.

Faults of a provider are those of the crooked EP; the others lie in the files.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.corpus.packages.read_package import PackageError, read_package
from tests.kit import records_of, run_matrix
from tests.small_packages import CPU, classifier, write_manifest, write_package

CROOKED = "CrookedExecutionProvider"
FRESH, OUTDATED, FOREIGN = (f"crooked;version={one}" for one in ("0.1.0", "0.1.7", "9.9.0"))
CONTEXT = "context.onnx"


class Contexts(NamedTuple):
    """Compiled models of the classifier: by this version of the EP, by later ones, and a wrong one."""

    fresh: Path
    outdated: Path
    foreign: Path
    other: Path


class Planted(NamedTuple):
    """One package. ``make`` writes it; ``target`` runs it; ``cell`` is the model that has to tell."""

    name: str
    make: Callable[[Path, Contexts], object]
    told: Verdict
    target: str = "crooked"
    cell: str = "main"
    reason: str = ""


def _crooked(model: onnx.ModelProto, **body: Any) -> Callable[[Path, Contexts], object]:
    """Return what writes a right CPU variant, and a variant for the crooked EP with this model."""

    def make(root: Path, _: Contexts) -> None:
        write_package(root, {"cpu": classifier(), "npu": model}, npu={"ep": CROOKED, **body})

    return make


def _compiled(which: str, compatibility: str, fault: str = "") -> Callable[[Path, Contexts], object]:
    """Return what writes a compiled variant; it may bring a fault of the EP as its provider option."""

    def make(root: Path, contexts: Contexts) -> None:
        ort = {"model_file": CONTEXT, **({"provider_options": {"fault": fault}} if fault else {})}
        body = {"ep": CROOKED, "compatibility_string": compatibility, "ort": ort}
        write_package(root, {"cpu": classifier(), "npu": classifier()}, npu=body)
        (root / "npu" / "model.onnx").unlink()
        shutil.copyfile(getattr(contexts, which), root / "npu" / CONTEXT)

    return make


def _cpu(*, right_last: bool = True, **models: onnx.ModelProto) -> Callable[[Path, Contexts], object]:
    """Return what writes variants for the CPU EP: these, and two right ones."""

    def make(root: Path, _: Contexts) -> None:
        right = {"a": classifier(), "b": classifier()}
        write_package(root, {**models, **right} if right_last else {**right, **models})

    return make


def _alone(root: Path, contexts: Contexts) -> None:
    body = {"ep": CROOKED, "compatibility_string": FRESH, "ort": {"model_file": CONTEXT}}
    write_package(root, {"npu": classifier()}, npu=body)
    (root / "npu" / "model.onnx").unlink()
    shutil.copyfile(contexts.fresh, root / "npu" / CONTEXT)


def _swapped(root: Path, _: Contexts) -> None:
    body = {"npu": {"ep": CROOKED}}
    write_package(root, {"cpu": classifier(), "npu": classifier()}, **body)
    other = write_package(root / "second", {"cpu": classifier(scale=2), "npu": classifier(scale=2)}, **body)
    for manifest in (root / "manifest.json", other / "manifest.json"):
        manifest.unlink()
    one, two = root / "npu" / "model.onnx", other / "npu" / "model.onnx"
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    table = {
        name: {"ep": ep, "executor_info": {"ort": {"model_file": "model.onnx"}}}
        for name, ep in (("cpu", CPU), ("npu", CROOKED))
    }
    second = {name: {**body, "variant_directory": f"second/{name}"} for name, body in table.items()}
    write_manifest(root, {"main": {"variants": table}, "second": {"variants": second}})


def _renamed(root: Path, _: Contexts) -> None:
    renamed = classifier()
    renamed.graph.input[0].name = renamed.graph.node[0].input[0] = "pixels"
    write_package(root, {"cpu": classifier(), "npu": renamed}, npu={"ep": CROOKED})


def _garbage(root: Path, contexts: Contexts) -> None:
    _crooked(classifier())(root, contexts)
    (root / "npu" / "model.onnx").write_bytes(b"no model")


PLANTED = (
    Planted("other_weights", _crooked(classifier(scale=1.2)), Verdict.MISMATCH, cell="main/npu"),
    Planted("other_weights_chosen", _crooked(classifier(scale=1.2)), Verdict.MISMATCH),
    Planted(
        "other_on_cpu", _cpu(odd=classifier(scale=0.5)), Verdict.MISMATCH, "cpu", "main/odd", "another model"
    ),
    Planted("other_first", _cpu(odd=classifier(scale=0.5)), Verdict.MISMATCH, "cpu"),
    Planted("swapped", _swapped, Verdict.MISMATCH, cell="second"),
    Planted(
        "lossy", _cpu(low=classifier(levels=4)), Verdict.PRECISION_LOSS, "cpu", "main/low", "4.0 are needed"
    ),
    Planted("lossy_first", _cpu(low=classifier(levels=4)), Verdict.MISMATCH, "cpu"),
    Planted("other_inputs", _renamed, Verdict.INVALID_MODEL, cell="main/npu", reason="has the inputs pixels"),
    Planted("garbage", _garbage, Verdict.INVALID_MODEL, cell="main/npu"),
    Planted(
        "other_device", _crooked(classifier(), device="gpu"), Verdict.NO_VARIANT, reason="another device"
    ),
    Planted("other_provider", _cpu(), Verdict.NO_VARIANT, reason="another provider"),
    Planted(
        "no_cpu",
        lambda root, _: write_package(root, {"npu": classifier()}, npu={"ep": CROOKED}),
        Verdict.NO_VARIANT,
        "cpu",
    ),
    Planted("foreign_context", _compiled("foreign", FRESH), Verdict.STALE_VARIANT),
    Planted("outdated_context", _compiled("outdated", FRESH), Verdict.STALE_VARIANT, reason="another build"),
    Planted("foreign_told", _compiled("foreign", FOREIGN), Verdict.NO_VARIANT, reason="refused by the EP"),
    Planted(
        "claims_optimal",
        _compiled("foreign", FOREIGN),
        Verdict.STALE_VARIANT,
        "optimal",
        reason="cannot load",
    ),
    Planted("refuses_all", _compiled("fresh", FRESH), Verdict.NO_VARIANT, "unsupported"),
    Planted(
        "answers_change",
        _compiled("fresh", FRESH),
        Verdict.WRONG_VARIANT,
        "changing",
        reason="and by the rules it is",
    ),
    Planted("loads_wrong", _compiled("fresh", FRESH), Verdict.MISMATCH, "wrong"),
    Planted(
        "loads_nothing",
        _compiled("fresh", FRESH, "error_in_context"),
        Verdict.STALE_VARIANT,
        reason="cannot load",
    ),
    Planted(
        "compiled_alone",
        _alone,
        Verdict.NO_GOLDEN,
        cell="main/npu",
        reason="put the model that it was made of beside it",
    ),
    Planted(
        "option_without_effect",
        _crooked(classifier(), ort={"provider_options": {"precision": "fp16"}}),
        Verdict.PASS,
        "ignoring",
        "main/npu",
        "no effect seen: the outputs are bit-identical without precision",
    ),
    Planted(
        "option_of_another",
        _crooked(classifier(), ort={"provider_options": {"num_streams": "1"}}),
        Verdict.OPTION_REJECTED,
        cell="main/npu",
        reason="unknown option",
    ),
    Planted("other_context", _compiled("other", FRESH), Verdict.MISMATCH, cell="main/npu"),
)

HONEST = (
    Planted("honest", _crooked(classifier()), Verdict.PASS),
    Planted("honest_device", _crooked(classifier(), device="cpu"), Verdict.PASS),
    Planted("honest_context", _compiled("fresh", FRESH), Verdict.PASS),
    Planted("honest_int8", _cpu(int8=classifier(levels=127)), Verdict.PASS, "cpu", "main/int8"),
)

FAULTS = {
    "crooked": "",
    "optimal": "stale_is_optimal",
    "unsupported": "fresh_is_unsupported",
    "changing": "compatibility_changes",
    "wrong": "context_wrong",
    "ignoring": "precision_ignored",
}
"""Target -> the fault of the EP."""


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def records(crooked_ep: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], Record]:
    home = tmp_path_factory.mktemp("planted_packages")
    contexts = Contexts(
        fresh=_compile(home / "fresh", crooked_ep, classifier()),
        outdated=_compile(home / "outdated", crooked_ep, classifier(), CROOKED_EP_VERSION="0.1.7"),
        foreign=_compile(home / "foreign", crooked_ep, classifier(), CROOKED_EP_VERSION="9.9.0"),
        other=_compile(home / "other", crooked_ep, classifier(scale=2)),
    )
    every = (*PLANTED, *HONEST)
    for one in every:
        one.make(home / one.name, contexts)
    targets: list[dict[str, Any]] = [{"name": "cpu", "provider": CPU}]
    for name, fault in FAULTS.items():
        env = {"CROOKED_EP_FAULT": fault} if fault else {}
        targets.append(
            {"name": name, "provider": CROOKED, "plugin": str(crooked_ep), "env": env, "device_lock": ""}
        )
    exclude = [
        {"target": target["name"], "suite": [one.name for one in every if one.target != target["name"]]}
        for target in targets
    ]
    matrix = {
        "models": {"packages": [one.name for one in every]},
        "axes": {"scenario": ["plain", "package"]},
        "target": targets,
        "exclude": exclude,
    }
    found = records_of(run_matrix(home, matrix))
    return {(record.suite, record.model, record.target): record for record in found}


def _compile(folder: Path, library: Path, model: onnx.ModelProto, **env: str) -> Path:
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    config = {"providers": [CROOKED], "plugin": str(library), "device": {}, "options": {}, "session": {}}
    asked = {"config": config, "model": str(folder / "model.onnx"), "out": str(folder / CONTEXT)}
    subprocess.run(
        [sys.executable, "-m", "harness.annex.pack.compile_model"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    )
    return folder / CONTEXT


@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.name)
def test_a_planted_fault_has_its_word(records: dict[tuple[str, str, str], Record], planted: Planted) -> None:
    record = records[planted.name, planted.cell, planted.target]
    assert record.verdict is planted.told, (record.verdict, record.reason, record.scenario)
    assert planted.reason in record.reason


@pytest.mark.parametrize("honest", HONEST, ids=lambda one: one.name)
def test_honest_packages_have_nothing(records: dict[tuple[str, str, str], Record], honest: Planted) -> None:
    of_package = [one for (suite, _, _), one in records.items() if suite == honest.name]
    assert of_package
    for record in of_package:
        assert record.verdict.family is Family.PASSED, (record.cell, record.verdict, record.reason)
        assert "no effect" not in record.reason


def test_an_asset_with_other_content_is_refused(tmp_path: Path) -> None:
    root = write_package(tmp_path / "p", {"cpu": classifier()})
    (root / "shared_assets" / f"sha256-{'a' * 64}").mkdir(parents=True)
    with pytest.raises(PackageError, match="its content has the address"):
        read_package(root, hashed=True)
