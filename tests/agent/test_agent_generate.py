"""The scenario ``generate``, played by the agent on the real CPU provider."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.annex.made.decoders.roster import write_decoder
from harness.core.records.ways import WAYS, TextSettings
from harness.core.values.value import NamedValues, Tensor, from_wire
from harness.corpus.case import Case
from harness.corpus.decoders.generation_case import GenerationSupport, data_sets_of, generation_of
from harness.corpus.derived.composed_model import chained_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from tests import small_decoders

Serve = Callable[..., dict[str, Any]]

TEXT = TextSettings(length=18, new_tokens=4)
FORMS = [
    *("gqa-h64", "gqa-h64-nodes", "gqa-h64-f16", "gqa-h64-int4-points", "mha-h64", "whisper-h64"),
    *("onnx24-h64-scatter", "gqa-h64-static"),
]
LATENCY = {"warm_up": 1, "repeats": 3, "budget_s": 1.0}


def case_in(folder: Path) -> Case:
    suite = open_folder(folder)
    (model,) = suite.models()
    return load_case(suite, model, {})


def decoder_case(name: str, folder: Path) -> Case:
    (folder / name).mkdir(parents=True)
    write_decoder(name, folder / name)
    return case_in(folder)


def play(
    serve: Serve, case: Case, text: TextSettings = TEXT, **settings: object
) -> tuple[GenerationSupport, tuple[NamedValues, ...], dict[str, Any]]:
    generation = generation_of(case, text)
    assert isinstance(generation, GenerationSupport), generation
    data_sets = data_sets_of(case, generation, text)
    job = {"generate": {**msgspec.to_builtins(generation), "new_tokens": text.new_tokens}, **settings}
    inputs = [dict(one.inputs) for one in data_sets]
    return (
        generation,
        tuple(one.inputs for one in data_sets),
        serve(str(case.model_path), *inputs, scenario="generate", **job),
    )


def outputs(result: dict[str, Any], index: int) -> dict[str, Any]:
    found = {}
    for name, wire in zip(result["names"], result["outputs"][index], strict=True):
        value = from_wire(wire)
        assert isinstance(value, Tensor)
        found[name] = value.array
    return found


@pytest.mark.parametrize("form", FORMS)
def test_every_way_gives_what_one_run_over_the_text_gives(serve: Serve, tmp_path: Path, form: str) -> None:
    played_like_plain(serve, decoder_case(form, tmp_path), 2e-2 if "f16" in form else 2e-4)


@pytest.mark.parametrize("name", ["folder-vision", "folder-pipeline"])
def test_the_sessions_of_a_folder_give_what_one_composed_model_gives(
    serve: Serve, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    write_decoder(name, tmp_path / name)
    shutil.rmtree(tmp_path / name / "test_data_set_0")
    case = chained_case(load_case(open_folder(tmp_path / name), "model.onnx", {}))
    assert isinstance(case, Case)
    assert case.chain is not None
    text = TextSettings(ways=("step", "interleaved"), length=9, new_tokens=3)
    stages = msgspec.to_builtins(case.chain.stages, enc_hook=str)
    generation, texts, result = play(serve, case, text, stages=stages)
    assert result["status"] == "ok", result
    placed = {one["name"]: one["ep_nodes"] for one in result["generated"]["stages"]}
    assert list(placed) == [stage.name for stage in case.chain.stages]
    assert sum(placed.values()) == result["placement"]["ep_nodes"]
    plain = serve(str(case.model_path), *map(dict, texts))
    for index in range(len(generation.plays)):
        right = outputs(plain, index)
        found = outputs(result, index)
        assert found.keys() == generation.axes.keys()
        for output, values in found.items():
            assert np.allclose(values, right[output], rtol=2e-4, atol=2e-4), output
    elsewhere = play(serve, case, text, stages=[])[2]
    assert elsewhere["status"] == "unsupported"
    assert "lies on the harness's machine" in elsewhere["message"]


@pytest.mark.parametrize("start", [False, True])
def test_a_cache_of_fixed_length_is_written_where_the_model_is_told(
    serve: Serve, tmp_path: Path, *, start: bool
) -> None:
    small_decoders.static(tmp_path / "models", start=start)
    generation = played_like_plain(serve, case_in(tmp_path / "models"), 1e-5)
    assert generation.declined.keys() == {"left_padded", "right_padded", "shared_buffer"}
    assert generation.decoder.counts == ({"start_pos": "start"} if start else {"cache_position": "places"})


def played_like_plain(serve: Serve, case: Case, tolerance: float) -> GenerationSupport:
    """Play a model in all ways, and hold each against one run over its text."""
    generation, texts, result = play(serve, case)
    assert result["status"] == "ok", result
    assert "second" not in result
    assert {WAYS[way].rows for way in WAYS if way not in generation.declined} == {1, 2}
    plain = serve(str(case.model_path), *map(dict, texts))
    named = zip(plain["names"], range(len(plain["names"])), strict=True)
    places = dict(named)
    for index, one in enumerate(generation.plays):
        for name, found in outputs(result, index).items():
            golden = from_wire(plain["outputs"][index][places[name]])
            assert isinstance(golden, Tensor)
            assert found.shape == golden.array.shape, (one.name, name)
            assert np.allclose(found, golden.array, rtol=tolerance, atol=tolerance), (one.name, name)
    assert result["scenario"]["ways"] == [one.name for one in generation.plays]
    assert len(result["scenario"]["way_ms"]) == len(generation.plays)
    assert "other_shape" not in result["scenario"]
    assert len(result["generated"]["text"]) == TEXT.new_tokens
    assert ("buffer_length" in result["scenario"]) == ("shared_buffer" not in generation.declined)
    return generation


def test_the_free_text_follows_the_largest_logits(serve: Serve, tmp_path: Path) -> None:
    case = decoder_case("gqa-h64", tmp_path)
    _, texts, result = play(serve, case, TextSettings(ways=("at_once",), length=12, new_tokens=5))
    inputs = dict(texts[0])
    tokens = inputs["input_ids"].array.copy()  # type: ignore[union-attr]
    for place, chosen in enumerate(result["generated"]["text"], 12 - 5):
        tokens[0, place] = chosen
    replayed = {**inputs, "input_ids": Tensor(dtype="int64", array=tokens)}
    plain = serve(str(case.model_path), replayed)
    logits = from_wire(plain["outputs"][0][plain["names"].index("logits")])
    assert isinstance(logits, Tensor)
    assert logits.array[0, 6:11].argmax(-1).tolist() == result["generated"]["text"]


def test_speed_is_measured_if_the_job_asks_for_it(serve: Serve, tmp_path: Path) -> None:
    case = decoder_case("gqa-h64", tmp_path)
    text = TextSettings(ways=("at_once", "step"), length=18, new_tokens=4)
    _, _, result = play(serve, case, text, latency=LATENCY)
    speed = result["generated"]["speed"]
    assert [prompt for prompt, _ in speed["first_token_ms"]] == [1, 4, 16, 18]
    assert [rows for rows, _ in speed["tokens_per_s"]] == [1, 2, 4]
    assert [context for context, _ in speed["tokens_per_s_at"]] == [1, 4, 16, 17]
    figures = (*speed["first_token_ms"], *speed["tokens_per_s"], *speed["tokens_per_s_at"])
    assert all(one > 0 for _, one in figures)
    # Two layers with keys and values of 4 heads of 64 floats for each of 18 positions.
    assert speed["cache_mib"] == pytest.approx(2 * 2 * 4 * 64 * 18 * 4 / 2**20, abs=1e-6)
    assert len(result["latency"]["samples_ns"]) == LATENCY["repeats"]
    _, _, result = play(serve, case, text)
    assert "speed" not in result["generated"]


def test_a_step_of_another_shape_ends_its_way_and_its_outputs_show_it(serve: Serve, tmp_path: Path) -> None:
    small_decoders.new_only(tmp_path / "models")
    case = case_in(tmp_path / "models")
    text = TextSettings(ways=("at_once", "step", "no_cache"), length=9, new_tokens=3)
    _, _, result = play(serve, case, text)
    assert result["status"] == "ok", result
    assert result["scenario"]["other_shape"] == "columns 6 to 6"
    shapes = [outputs(result, index)["present.0.key"].shape for index in range(3)]
    assert shapes == [(1, 1, 9, 4), (1, 1, 1, 4), (1, 1, 9, 4)]


def test_ways_that_this_onnxruntime_cannot_play_are_declined(serve: Serve, tmp_path: Path) -> None:
    small_decoders.new_only(tmp_path / "models")
    case = case_in(tmp_path / "models")
    text = TextSettings(ways=("at_once",), length=9, new_tokens=3)
    generation = generation_of(case, text)
    assert isinstance(generation, GenerationSupport)
    (one,) = data_sets_of(case, generation, text)
    strange = {**dict(one.inputs), "past_key_values.0.key": Tensor(dtype="string", array=np.array(["a"]))}
    job = {"generate": {**msgspec.to_builtins(generation), "new_tokens": 3}}
    result = serve(str(case.model_path), strange, scenario="generate", **job)
    assert result["status"] == "unsupported"
    assert result["message"] == "a cache of string cannot be cut and joined"
