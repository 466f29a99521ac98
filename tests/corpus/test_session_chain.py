"""Folders of several sessions as ``genai_config.json`` chains them, and what cannot be chained, by name."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest

from harness.annex.made.decoders.folder_configs import folder_config
from harness.annex.made.decoders.roster import FOLDERS, write_decoder
from harness.corpus.beside.genai_config import CONFIG_NAME, ConfigError, read_genai_config
from harness.corpus.beside.session_chain import SessionChain, chain_of
from harness.corpus.derived.composed_model import chained_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_file

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("folders")
    for name in FOLDERS:
        (home / name).mkdir()
        write_decoder(name, home / name)
        shutil.rmtree(home / name / "test_data_set_0")  # it is of one file, and a folder has several
    return home


def chain(folders: Path, name: str, change: Change | None = None) -> SessionChain | str | None:
    """Return the chain of a folder with another configuration."""
    config = folder_config(name)
    if change is not None:
        change(config["model"])
    folder = folders / name
    (folder / CONFIG_NAME).write_bytes(msgspec.json.encode(config))
    read = read_genai_config(folder)
    assert read is not None
    return chain_of(read, folder)


@pytest.mark.parametrize(
    ("name", "stages", "once"),
    [
        ("folder-translation", ["encoder", "decoder"], {"encoder.encoder_hidden_states"}),
        ("folder-vision", ["vision", "embedding", "decoder"], {"vision.image_features"}),
        ("folder-pipeline", ["embedding", "layer_0", "layer_1_prompt", "layer_1_token", "lm_head"], set()),
    ],
)
def test_stages_have_the_order_and_the_names_of_the_file(
    folders: Path, name: str, stages: list[str], once: set[str]
) -> None:
    found = chain(folders, name)
    assert isinstance(found, SessionChain)
    assert [stage.name for stage in found.stages] == stages
    assert found.once == once
    assert found.player.name == "model.onnx"


def test_a_pipeline_is_chained_by_forwarded_names_and_each_stage_has_its_options(folders: Path) -> None:
    def change(model: dict[str, Any]) -> None:
        stages = model["decoder"]["pipeline"][0]
        model["decoder"]["pipeline"] = [{name: stage} for name, stage in stages.items()]  # either form
        stages["layer_0"]["session_options"] = {
            "provider_options": [{"QNN": {"htp_performance_mode": "burst"}}],
            "enable_mem_pattern": False,
            "log_id": "x",
        }

    found = chain(folders, "folder-pipeline", change)
    assert isinstance(found, SessionChain)
    first, second = found.stages[1], found.stages[3]
    assert first.prompt is not None
    assert first.prompt.outputs["layer_0_output"] == "hidden_states"
    assert second.prompt is None
    assert second.step is not None
    assert second.step.inputs["hidden_states"] == "hidden_states"
    assert first.providers == {"QNN": {"htp_performance_mode": "burst"}}
    assert first.memory == {"enable_mem_pattern": False}
    assert second.providers == {}
    assert found.stage_of("present.1.key", later=False) == "layer_1_prompt"
    assert found.stage_of("present.1.key", later=True) == "layer_1_token"


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("folder-vision", lambda model: model.pop("image_token_id"), "model.image_token_id"),
        ("folder-vision", lambda model: model["embedding"].pop("filename"), "'vision' beside the decoder"),
        (
            "folder-pipeline",
            lambda model: model["decoder"].update(sliding_window={"window_size": 64}),
            "its prompt goes through the pipeline in windows of 64",
        ),
        (
            "folder-pipeline",
            lambda model: model["decoder"]["pipeline"][0]["lm_head"].update(run_on_prompt=False),
            "no model of its pipeline gives 'logits' for a prompt",
        ),
        (
            "folder-pipeline",
            lambda model: model.update(encoder={"filename": "embedding.onnx"}),
            "'encoder' beside the decoder",
        ),
    ],
)
def test_what_is_not_chained_is_told(folders: Path, name: str, change: Change, why: str) -> None:
    found = chain(folders, name, change)
    assert isinstance(found, str)
    assert why in found


@pytest.mark.parametrize(
    ("name", "change", "place", "what"),
    [
        (
            "folder-translation",
            lambda model: model["encoder"].update(filename="../encoder.onnx"),
            "model.encoder.filename",
            "there is no file '../encoder.onnx' beside it",
        ),
        (
            "folder-speech",
            lambda model: model["encoder"]["outputs"].update(cross_present_key_names="key_%d"),
            "model.encoder.outputs",
            "the model has no output 'key_0'",
        ),
        (
            "folder-vision",
            lambda model: model["vision"]["outputs"].update(image_features="features"),
            "model.vision.outputs",
            "the model has no output 'features'",
        ),
        (
            "folder-pipeline",
            lambda model: model["decoder"]["pipeline"][0]["layer_0"]["inputs"].append("mask"),
            "model.decoder.pipeline.layer_0.inputs",
            "the model has no input 'mask'",
        ),
        (
            "folder-pipeline",
            lambda model: model["decoder"]["pipeline"][0]["layer_0"]["inputs"].remove("position_ids"),
            "model.decoder.pipeline.layer_0.inputs",
            "the input 'position_ids' of the model is missing",
        ),
    ],
)
def test_names_that_do_not_fit_are_told_with_their_place(
    folders: Path, name: str, change: Change, place: str, what: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(folders, name, change)
    assert caught.value.problem.where == f"{CONFIG_NAME}: {place}"
    assert caught.value.problem.what == what
    assert "valid: " in caught.value.problem.hint


def composed(folder: Path) -> Any:
    return chained_case(load_case(open_file(folder / "model.onnx"), "model.onnx", {}))


def test_models_of_other_versions_are_joined_where_onnx_can_convert_them(folders: Path) -> None:
    chain(folders, "folder-translation")
    path = folders / "folder-translation" / "encoder.onnx"
    given = path.read_bytes()
    model = onnx.load_from_string(given)
    model.opset_import[0].version = 18
    path.write_bytes(model.SerializeToString())
    case = composed(folders / "folder-translation")
    assert {one.version for one in onnx.load(case.model_path).opset_import} == {18}
    model.opset_import.append(onnx.helper.make_opsetid("vendor", 1))
    path.write_bytes(model.SerializeToString())
    decoder = onnx.load(folders / "folder-translation" / "model.onnx")
    decoder.opset_import.append(onnx.helper.make_opsetid("vendor", 2))
    onnx.save(decoder, folders / "folder-translation" / "model.onnx")
    told = composed(folders / "folder-translation")
    assert told == "its models have versions 1 and 2 of the operators of vendor"
