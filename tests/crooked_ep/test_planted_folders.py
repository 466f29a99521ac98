"""Faults in one session of a folder of several: each is told with the stage that has it."""

import json
import shutil
import sys
from pathlib import Path

import msgspec
import onnx
import pytest

from harness.annex.made.decoders.roster import write_decoder
from harness.cli.main import main
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.corpus.beside.genai_config import CONFIG_NAME
from tests.crooked_ep.planted_run import PROVIDER
from tests.kit import read_records

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(sys.platform != "linux", reason="the library is compiled for Linux"),
]

LEFT = "claims_nothing"
"""The fault of a provider that takes no node."""

LATER = "layer_1_token.onnx"
"""A copy of ``layer_1.onnx`` for the session of later tokens."""

Plant = tuple[str, str, str, str]
"""Kind of folder, file of the stage, fault, and the stage that has to be told."""

FEW: list[Plant] = [
    ("pipeline", LATER, "add_factor", "layer_1_token"),
    ("pipeline", "model.onnx", LEFT, "lm_head"),
]
ALL: list[Plant] = [
    *FEW,
    ("translation", "encoder.onnx", "matmul_bf16", "encoder"),
    ("translation", "model.onnx", "add_factor", "decoder"),
    ("translation", "encoder.onnx", LEFT, "encoder"),
    ("speech", "encoder.onnx", "relu_leaks", "encoder"),
    ("speech", "model.onnx", "matmul_bf16", "decoder"),
    ("speech", "encoder.onnx", LEFT, "encoder"),
    ("vision", "vision.onnx", "conv_flipped", "vision"),
    ("vision", "embedding.onnx", "in_bf16", "embedding"),
    ("vision", "model.onnx", "concat_reversed", "decoder"),
    ("vision", "embedding.onnx", LEFT, "embedding"),
    ("vision", "vision.onnx", LEFT, "vision"),
    ("pipeline", "embedding.onnx", "in_bf16", "embedding"),
    ("pipeline", "layer_0.onnx", "matmul_bf16", "layer_0"),
    ("pipeline", "layer_1.onnx", "add_factor", "layer_1_prompt"),
    ("pipeline", "model.onnx", "matmul_bf16", "lm_head"),
    ("pipeline", "layer_0.onnx", LEFT, "layer_0"),
]

Records = dict[str, Record]


def written(home: Path, kind: str, name: str, file: str = "", graph: str = "") -> None:
    """Write a folder; the graph of one file has the name of a fault."""
    folder = home / name
    folder.mkdir(parents=True)
    write_decoder(f"folder-{kind}", folder)
    shutil.rmtree(folder / "test_data_set_0")  # it is of one file, and a folder has several
    if kind == "pipeline":
        (folder / LATER).write_bytes((folder / "layer_1.onnx").read_bytes())
        config = msgspec.json.decode((folder / CONFIG_NAME).read_bytes())
        config["model"]["decoder"]["pipeline"][0]["layer_1_token"]["filename"] = LATER
        (folder / CONFIG_NAME).write_bytes(msgspec.json.encode(config))
    if file:
        model = onnx.load(folder / file)
        model.graph.name = graph
        onnx.save(model, folder / file)


def played(home: Path, library: Path, plants: list[Plant]) -> Records:
    """Return the record of each folder: an honest one of each kind in question, and one for each fault."""
    for kind in {kind for kind, *_ in plants}:
        written(home / "models", kind, kind)
    for kind, file, fault, stage in plants:
        written(home / "models", kind, f"{kind}-{stage}-{fault}", file, fault)
    (home / "matrix.toml").write_text(
        f"""schema = 1
axes = {{ scenario = ["generate"] }}
scenarios = {{ generate = {{ ways = ["step", "batch"], length = 10, new_tokens = 3 }} }}
[models]
folders = ["models"]
exclude = ["models/*-*/[!m]*.onnx", "models/*/[!em]*.onnx"]
[[tolerance]]
noise = {{}}
[[target]]
name = "crooked"
provider = "{PROVIDER}"
plugin = {json.dumps(str(library))}
options = {{ fault = "graph" }}
""",
        encoding="utf-8",
    )
    main(["run", str(home / "matrix.toml"), "--out", str(home / "run"), "--no-report"])
    return {one.model: one for one in read_records(home / "run")}


def check(records: Records, plants: list[Plant]) -> None:
    """Check that honest folders pass, and that each fault is told with its stage."""
    for kind in {kind for kind, *_ in plants}:
        honest = records[f"{kind}/model.onnx"]
        assert honest.family is Family.PASSED, honest.reason
        assert honest.generation is not None
        assert honest.placement is not None
        stages = honest.generation.stages
        assert len(stages) > 1
        assert all(one.asked and one.ep_nodes for one in stages)
        assert "stage" not in (honest.reason or "")
        assert honest.placement.ep_nodes == sum(one.ep_nodes for one in stages)
        assert honest.fed.startswith("generated ")
        assert "input_ids" in honest.fed
    for kind, _, fault, stage in plants:
        record = records[f"{kind}-{stage}-{fault}/model.onnx"]
        assert record.reason is not None
        assert record.generation is not None
        if fault == LEFT:
            assert record.verdict is Verdict.PASS_PARTIAL, record.reason
            assert record.reason.startswith(f"stage {stage} ran on the CPU EP; ")
        else:
            assert record.verdict in {Verdict.MISMATCH, Verdict.PRECISION_LOSS}, record.reason
            assert f"first in stage {stage}: " in record.reason
            assert {way.first_stage for way in record.generation.ways} == {stage}


def of_one_provider(home: Path) -> None:
    """Write a pipeline that names a provider, with an option, for one stage alone."""
    written(home, "pipeline", "chosen")
    path = home / "chosen" / CONFIG_NAME
    config = msgspec.json.decode(path.read_bytes())
    options = {"provider_options": [{"Crooked": {"fault": "add_factor"}}]}
    config["model"]["decoder"]["pipeline"][0]["layer_0"]["session_options"] = options
    path.write_bytes(msgspec.json.encode(config))


def check_chosen(records: Records) -> None:
    """Check that the stage has its provider and option, and that the other stages are the CPU's."""
    record = records["chosen/model.onnx"]
    assert record.verdict is Verdict.MISMATCH, record.reason
    assert "first in stage layer_0: " in (record.reason or "")
    assert record.generation is not None
    assert [one.name for one in record.generation.stages if one.asked] == ["layer_0"]


def test_a_wrong_stage_and_one_on_the_cpu_are_named(crooked_ep: Path, tmp_path: Path) -> None:
    of_one_provider(tmp_path / "models")
    records = played(tmp_path, crooked_ep, FEW)
    check(records, FEW)
    check_chosen(records)
    other = records["pipeline/embedding.onnx"]
    assert other.verdict is Verdict.DECLARED
    assert other.reason is not None
    told = (
        "it is the stage 'embedding' of its folder, all stages of which are played in the cell of model.onnx"
    )
    assert told in other.reason


@pytest.mark.long
def test_each_stage_of_each_kind_is_named(crooked_ep: Path, tmp_path: Path) -> None:
    check(played(tmp_path, crooked_ep, ALL), ALL)


@pytest.mark.long
def test_triage_reduces_the_model_of_the_wrong_stage(crooked_ep: Path, tmp_path: Path) -> None:
    played(tmp_path, crooked_ep, [("pipeline", "layer_0.onnx", "matmul_bf16", "layer_0")])
    assert main(["triage", str(tmp_path / "run")]) == 0
    (fault,) = (tmp_path / "run" / "triage" / "faults.jsonl").read_text("utf-8").splitlines()
    found = msgspec.json.decode(fault)
    assert " computes MatMul of " in found["sentence"]
