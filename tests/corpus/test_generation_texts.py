"""What a decoder can play, and the texts that it gets for that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.annex.made.decoders.roster import write_decoder
from harness.core.records.ways import WAYS, TextSettings
from harness.core.values.value import Tensor
from harness.corpus.case import Case
from harness.corpus.decoders.generation_case import GenerationSupport, data_sets_of, generation_of
from harness.corpus.derived.scenario_case import Inapplicable, scenario_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder

TEXT = TextSettings(length=18, new_tokens=4)


@pytest.fixture
def decoder(tmp_path: Path) -> Callable[[str], Case]:
    def load(name: str) -> Case:
        (tmp_path / name).mkdir()
        write_decoder(name, tmp_path / name)
        suite = open_folder(tmp_path / name)
        return load_case(suite, suite.models()[0], {})

    return load


def played(case: Case, text: TextSettings = TEXT) -> GenerationSupport:
    found = generation_of(case, text)
    assert isinstance(found, GenerationSupport), found
    return found


def arrays(case: Case, text: TextSettings = TEXT) -> dict[str, dict[str, Any]]:
    sets = data_sets_of(case, played(case, text), text)
    return {
        one.name: {name: value.array for name, value in one.inputs if isinstance(value, Tensor)}
        for one in sets
    }


def test_each_play_has_the_whole_text_and_an_empty_cache(decoder: Callable[[str], Case]) -> None:
    case = decoder("gqa-h64-nodes")
    generation = played(case)
    found = arrays(case)
    assert list(found) == [play.name for play in generation.plays]
    for play in generation.plays:
        shape = (len(play.layout), play.length)
        inputs = found[play.name]
        assert inputs["input_ids"].shape == inputs["attention_mask"].shape == shape
        assert (inputs["attention_mask"] == 1).all()
        assert 0 <= inputs["input_ids"].min() <= inputs["input_ids"].max() < generation.decoder.vocabulary
        if "position_ids" in inputs:
            assert (inputs["position_ids"] == np.arange(play.length)).all()
        for pair in generation.decoder.cache:
            rows, _, positions, head = inputs[pair.past].shape
            assert (rows, positions, head) == (len(play.layout), 0, 64)
    # All plays have the same first text, so that they can be compared with each other.
    whole = found["at_once"]["input_ids"][0]
    assert all(
        np.array_equal(one["input_ids"][0], whole[: one["input_ids"].shape[1]]) for one in found.values()
    )
    two = found["batch"]["input_ids"]
    assert not np.array_equal(two[0], two[1])


def test_the_prompt_begins_the_first_text(decoder: Callable[[str], Case]) -> None:
    case = decoder("gqa-h64")
    text = TextSettings(ways=("step", "batch"), length=9, new_tokens=2, prompt=(5, 3, 7))
    found = arrays(case, text)
    assert found["step"]["input_ids"][0, :3].tolist() == [5, 3, 7]
    assert found["batch"]["input_ids"][0, :3].tolist() == [5, 3, 7]
    assert found["step"]["input_ids"].shape == (1, 9)
    plain = arrays(case, TextSettings(ways=("step",), length=9, new_tokens=2))
    assert np.array_equal(found["step"]["input_ids"][0, 3:], plain["step"]["input_ids"][0, 3:])


def test_a_prompt_of_another_vocabulary_is_told(decoder: Callable[[str], Case]) -> None:
    found = generation_of(decoder("gqa-h64"), TextSettings(prompt=(5, 256)))
    assert found == "token 256 of the prompt is not in its vocabulary of 256"


def test_inputs_that_stay_get_a_row_for_each_text(decoder: Callable[[str], Case]) -> None:
    case = decoder("whisper-h64")
    generation = played(case)
    given = {name: value.array for name, value in case.data_sets[0].inputs if isinstance(value, Tensor)}
    found = arrays(case)
    assert generation.decoder.fixed
    for name in generation.decoder.fixed:
        for way, rows in (("at_once", 1), ("batch", 2)):
            wanted = [given[name][row % len(given[name])] for row in range(rows)]
            assert np.array_equal(found[way][name], np.array(wanted)), (name, way)


@pytest.mark.parametrize(
    ("form", "declined"),
    [
        ("gqa-h64", {"left_padded": "its attention takes the length of a text, not a mask: "}),
        ("mha-h64", {"shared_buffer": "no operator of the model can have past and present in one buffer"}),
        ("onnx23-h64", {"shared_buffer": "no operator of the model"}),
        (
            "whisper-h64",
            {
                "left_padded": "the model has no attention mask",
                "right_padded": "the model has no attention mask",
                "shared_buffer": "no operator",
            },
        ),
    ],
)
def test_what_a_model_cannot_play_is_declined_with_the_reason(
    decoder: Callable[[str], Case], form: str, declined: dict[str, str]
) -> None:
    generation = played(decoder(form))
    assert generation.declined.keys() == declined.keys()
    assert all(generation.declined[way].startswith(why) for way, why in declined.items())
    ways = {"lengths" if play.name.startswith("length_") else play.name for play in generation.plays}
    assert ways == WAYS.keys() - declined.keys()


def test_a_short_text_declines_the_ways_that_need_a_longer_one(decoder: Callable[[str], Case]) -> None:
    case = decoder("gqa-h64")
    generation = played(case, TextSettings(ways=("at_once", "right_padded"), length=4, new_tokens=2))
    assert generation.declined == {"right_padded": "a text of 4 tokens is too short"}


def test_a_text_is_no_longer_than_the_model_holds(decoder: Callable[[str], Case]) -> None:
    case = decoder("gqa-h512")
    generation = played(case, TextSettings(ways=("at_once", "right_padded"), length=5000))
    assert generation.decoder.context == 96
    at_once, padded = generation.plays
    assert at_once.length == 96
    assert len(padded.layout[0]) == 96


@pytest.mark.parametrize(("name", "last"), [("gqa-h64-long", (4095, 4096, 4097)), ("gqa-h512", (63, 64, 65))])
def test_prompts_of_many_lengths_go_as_far_as_the_model_or_the_settings(
    decoder: Callable[[str], Case], name: str, last: tuple[int, ...]
) -> None:
    case = decoder(name)
    plays = played(case, TextSettings(ways=("at_once", "lengths"), length=12, longest=4098)).plays
    assert plays[0].length == 12
    assert tuple(play.ends[0] for play in plays[-3:]) == last
    assert tuple(play.length for play in plays[-3:]) == tuple(one + 1 for one in last)
    assert played(case, TextSettings(ways=("lengths",), length=12)).plays[-1].ends == (9, 10)


def test_a_case_of_the_scenario_has_an_identity_of_its_own(decoder: Callable[[str], Case]) -> None:
    case = decoder("gqa-h64")
    one = scenario_case(case, "generate", None, TEXT)
    other = scenario_case(case, "generate", None, TextSettings(length=19, new_tokens=4))
    assert isinstance(one, Case)
    assert isinstance(other, Case)
    assert len({case.digest, one.digest, other.digest}) == 3
    same = scenario_case(case, "generate", None, TEXT)
    assert isinstance(same, Case)
    assert same.digest == one.digest
    # The roles do not depend on which of the cases they are asked of.
    assert generation_of(one, TEXT) == generation_of(case, TEXT)


def test_a_model_that_is_no_decoder_is_told_so(write_model: Callable[..., Path]) -> None:
    suite = open_folder(write_model().parent)
    found = scenario_case(load_case(suite, suite.models()[0], {}), "generate")
    assert isinstance(found, Inapplicable)
    assert found.reason.startswith(
        "it is no decoder that the scenario can play: it has no input of token ids"
    )


def test_a_model_without_a_cache_runs_the_whole_text_in_each_step(write_model: Callable[..., Path]) -> None:
    graph = """agraph (int64[batch, sequence] input_ids) => (float[batch, sequence, 4] logits) {
        axis = Constant <value = int64[1] {2}> ()
        ids = Unsqueeze(input_ids, axis)
        numbers = Cast <to = 1> (ids)
        logits = Concat <axis = 2> (numbers, numbers, numbers, numbers)
    }"""
    suite = open_folder(write_model(graph=graph).parent)
    case = load_case(suite, suite.models()[0], {})
    generation = generation_of(case, TEXT)
    if isinstance(generation, str):
        pytest.fail(generation)
    assert {play.buffers for play in generation.plays} == {"none"}
    assert {way for way, why in generation.declined.items() if why == "the model has no cache"} == {
        way for way, one in WAYS.items() if one.needs_cache
    }
