"""A step as inputs of a single run gives what the whole text gives at its positions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.annex.made.decoders.roster import write_decoder
from harness.core.records.ways import TextSettings
from harness.core.values.value import NamedValues, Tensor, Value
from harness.corpus.case import Case
from harness.corpus.decoders.decoder_step import step_inputs
from harness.corpus.decoders.generation_case import GenerationSupport, data_sets_of, generation_of
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from tests import small_decoders

ort: Any = pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(
    "name",
    ["gqa-h64", "gqa-h64-nodes", "gqa-h64-static", "onnx24-h64-scatter", "whisper-h64", "places", "start"],
)
def test_a_step_has_the_logits_and_the_cache_of_the_whole_text(name: str, tmp_path: Path) -> None:
    home = tmp_path / "models"
    if name in ("places", "start"):
        small_decoders.static(home, start=name == "start")
    else:
        home.mkdir()
        write_decoder(name, home)
    suite = open_folder(home)
    case = load_case(suite, suite.models()[0], {})
    generation = generation_of(case, TextSettings(ways=("at_once",), length=14))
    assert isinstance(generation, GenerationSupport), generation
    (whole,) = data_sets_of(case, generation, TextSettings(ways=("at_once",), length=14))
    right = computed(case, whole.inputs)
    step = step_inputs(generation.decoder, whole.inputs, right, 9, 10)
    assert step is not None
    found = computed(case, step)
    logits = generation.decoder.logits
    assert array(found[logits]).shape[1] == 1
    assert np.allclose(array(found[logits])[:, 0], array(right[logits])[:, 9], atol=2e-4)
    for pair in generation.decoder.cache:
        index = (slice(None),) * pair.axis + (slice(0, 10),)
        own, all_ = array(found[pair.present]), array(right[pair.present])
        assert np.allclose(own[index], all_[index], atol=2e-4)
        assert own.shape[pair.axis] == (generation.decoder.cache_length or 10)


def test_without_the_cache_there_is_no_step(tmp_path: Path) -> None:
    small_decoders.counting(tmp_path / "models")
    suite = open_folder(tmp_path / "models")
    case = load_case(suite, suite.models()[0], {})
    generation = generation_of(case, TextSettings(ways=("at_once",), length=6))
    assert isinstance(generation, GenerationSupport), generation
    (whole,) = data_sets_of(case, generation, TextSettings(ways=("at_once",), length=6))
    assert step_inputs(generation.decoder, whole.inputs, {}, 3, 4) is None
    first = step_inputs(generation.decoder, whole.inputs, {}, 0, 4)
    assert first is not None
    assert {name: array(value).shape for name, value in first} == {
        "input_ids": (1, 4),
        "past_key_values.0.key": (1, 1, 0, 4),
    }


def computed(case: Case, inputs: NamedValues) -> dict[str, Value]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(case.model_path, options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    outputs = session.run(names, {name: array(value) for name, value in inputs})
    return {name: Tensor(dtype=str(one.dtype), array=one) for name, one in zip(names, outputs, strict=True)}


def array(value: Value) -> Any:
    assert isinstance(value, Tensor)
    return value.array
