"""Planted faults in the scenario ``generate``: verdict, way, position, layer; healthy results pass."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.comparison.policy import Policy
from harness.core.noise.spread import Spread
from harness.core.records.facts import CPU_PROVIDER, Facts
from harness.core.records.generation_figures import GenerationFigures
from harness.core.records.record import Decision
from harness.core.records.verdict import Verdict
from harness.core.records.ways import WAYS, Play, plays_of
from harness.core.values.value import NamedValues, Tensor, tensor
from harness.core.verdicts.decide import decide, judged_again
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.decoders.decoder import CachePair, Decoder
from harness.corpus.decoders.generation_case import GenerationSupport
from harness.corpus.model.port import ValueType
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.measuring.measure import measure, with_generation
from harness.engine.tasks.outcome import Played, Ran
from harness.golden.golden_answer import Golden
from tests.kit import bare_case, decided_record, placement_of

LENGTH, VOCABULARY, NOISE = 12, 24, 1e-4
LAYERS = ("present.0.key", "present.0.value", "present.1.key", "present.1.value")
DECODER = Decoder(
    tokens="ids",
    logits="logits",
    cache=tuple(CachePair(past=name.replace("present", "past"), present=name, axis=2) for name in LAYERS),
    mask="mask",
    positions="positions",
    vocabulary=VOCABULARY,
)
PLAYS: tuple[Play, ...] = tuple(
    play
    for way in ("at_once", "step", "chunks", "batch", "right_padded", "rewind")
    for play in plays_of(way, LENGTH, 4, WAYS[way].rows)
)
NAMES = [play.name for play in PLAYS]
GENERATION = GenerationSupport(
    decoder=DECODER,
    plays=PLAYS,
    declined={"shared_buffer": "no operator of the model can have past and present in one buffer"},
    batch_axes={},
)
RANDOM = np.random.default_rng(7)
TEXTS = RANDOM.integers(0, VOCABULARY, (2, LENGTH))
LOGITS = RANDOM.normal(0, 3, (2, LENGTH, VOCABULARY))
CACHES = {name: RANDOM.normal(0, 1, (2, 2, LENGTH, 4)) for name in LAYERS}
POLICY = Policy(judge_by="noise")
PLACEMENT = placement_of({"X": 1}, source="profile")


def sized(play: Play, array: Any, axis: int) -> Any:
    cut: Any = [slice(len(play.layout))] + [slice(None)] * (array.ndim - 1)
    cut[axis] = slice(play.length)
    return array[tuple(cut)]


def right(play: Play) -> dict[str, Any]:
    found = {"logits": sized(play, LOGITS, 1), "hidden": np.zeros(3)}
    return found | {name: sized(play, array, 2) for name, array in CACHES.items()}


def named(arrays: dict[str, Any]) -> NamedValues:
    return tuple((name, tensor(np.asarray(array, np.float32))) for name, array in arrays.items())


GOLDEN = Golden(status="ok", outputs=tuple(named(right(play)) for play in PLAYS))
SPREAD = Spread(
    precision="float32",
    outputs=tuple(
        {name: np.full(np.shape(array), NOISE) for name, array in right(play).items()} for play in PLAYS
    ),
)
CASE = bare_case(
    outputs=("logits", "hidden", *LAYERS),
    output_types=(ValueType(kind="tensor"),) * 6,
    data_sets=tuple(
        DataSet(name=play.name, inputs=(("ids", tensor(sized(play, TEXTS, 1))),)) for play in PLAYS
    ),
)


def healthy(seed: int, size: float = 1.0) -> list[dict[str, Any]]:
    """Results of every way, off by rounding noise."""
    random = np.random.default_rng(seed)
    return [
        {
            name: array + random.normal(0, size * NOISE, np.shape(array))
            for name, array in right(play).items()
            if name != "hidden"
        }
        for play in PLAYS
    ]


def measured(
    results: list[dict[str, Any]],
    *,
    provider: str = "AnyExecutionProvider",
    golden: Golden = GOLDEN,
    played: list[dict[str, Any]] | None = None,
    declined: dict[int, str] | None = None,
) -> tuple[Facts, Decision]:
    outcome = Ran(
        outputs=tuple(() if index in (declined or {}) else named(one) for index, one in enumerate(results)),
        placement=PLACEMENT,
        timings_ms={},
        generated=Played(declined=declined or {}, text=(3, 1)),
    )
    answer = None
    if played is not None:
        answer = Golden(status="ok", outputs=tuple(map(named, played)), text=(3, 2))
    evidence = Evidence(golden=golden, noise=SPREAD if golden.status == "ok" else None, played=answer)
    rule = CellRule(policy=POLICY, generation=GENERATION)
    facts = with_generation(measure(outcome, CASE, evidence, rule, provider), CASE, outcome, evidence, rule)
    return facts, decide(facts, POLICY)


def told(facts: Facts) -> GenerationFigures:
    assert facts.generation is not None
    return facts.generation


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.0, 1.5))
def test_rounding_noise_is_never_accused(seed: int, size: float) -> None:
    facts, decision = measured(healthy(seed, size))
    assert decision.verdict is Verdict.PASS, decision.reason
    found = told(facts)
    assert [way.way for way in found.ways] == NAMES
    assert all(way.first_bad is None and way.cache_from is None and not way.first_cache for way in found.ways)
    assert found.disagreements == ()
    assert found.declined == GENERATION.declined
    assert found.text == (3, 1)


@settings(max_examples=60)
@given(
    way=st.sampled_from(NAMES),
    position=st.integers(0, LENGTH - 1),
    output=st.sampled_from(["logits", *LAYERS]),
    multiple=st.floats(12.0, 1e6),
    seed=st.integers(0, 99),
)
def test_one_wrong_position_of_one_output_of_one_way_is_found_and_named(
    way: str, position: int, output: str, multiple: float, seed: int
) -> None:
    index = NAMES.index(way)
    position = min(position, PLAYS[index].length - 1)
    results = healthy(seed)
    axis = 1 if output == "logits" else 2
    wrong = np.moveaxis(results[index][output], axis, 0)[position]
    wrong += multiple * NOISE * np.random.default_rng(seed).choice([-1.0, 1.0], wrong.shape)
    facts, decision = measured(results)
    assert decision.verdict is Verdict.MISMATCH
    assert decision.reason.startswith(f"way {way}: ")
    (bad,) = [one for one in told(facts).ways if one.first_bad is not None or one.cache_from is not None]
    assert bad.way == way
    if output == "logits":
        assert (bad.first_bad, bad.first_cache, bad.cache_from) == (position, "", None)
        assert f"logits wrong from position {position} on" in decision.reason
    else:
        assert (bad.first_bad, bad.first_cache, bad.cache_from) == (None, output, position)
        assert f"{output} wrong from position {position} on" in decision.reason
    read = decided_record(facts, decision)
    assert read.generation == facts.generation
    assert judged_again(read, POLICY).verdict is decision.verdict


def test_the_layer_that_fails_first_is_named() -> None:
    results = healthy(0)
    index = NAMES.index("step")
    results[index]["logits"][:, 6:] += 1.0
    results[index]["present.1.value"][:, :, 6:] += 1.0
    results[index]["present.1.key"][:, :, 8:] += 1.0
    facts, decision = measured(results)
    assert decision.reason.startswith(
        "way step: logits wrong from position 6 on, first in present.1.value; KL "
    )
    assert told(facts).disagreements == ("step differs from at_once from position 6 on",)
    bad = told(facts).ways[index]
    assert bad.noise == pytest.approx(1.0 / NOISE, rel=0.01)
    assert bad.kl[5] is not None
    assert bad.kl[5] < 1e-6


def test_nan_from_a_position_on_is_a_nan_mismatch() -> None:
    results = healthy(0)
    for index, play in enumerate(PLAYS):
        if play.length > 6:
            results[index]["logits"][:, 6:] = np.nan
    facts, decision = measured(results)
    assert decision.verdict is Verdict.NAN_MISMATCH
    assert decision.reason.startswith("way at_once: logits wrong from position 6 on")
    assert told(facts).ways[0].kl[6:] == (None,) * 6
    assert told(facts).ways[0].perplexity is None
    read = decided_record(facts, decision)
    assert read.generation == facts.generation
    assert judged_again(read, POLICY).verdict is Verdict.NAN_MISMATCH


def test_another_shape_is_told_without_a_position() -> None:
    results = healthy(0)
    results[1] = {name: array[:, :1] for name, array in results[1].items()}
    facts, decision = measured(results)
    assert decision.verdict is Verdict.SHAPE_MISMATCH
    assert (told(facts).ways[1].kl, told(facts).ways[1].first_bad) == ((), None)


def test_a_way_that_the_cpu_ep_plays_wrongly_too_accuses_no_ep() -> None:
    index = NAMES.index("right_padded")
    wrong, cpu = healthy(0), healthy(1)
    for results in (wrong, cpu):
        results[index]["logits"][:, 5:] += 1.0
    facts, decision = measured(wrong, played=cpu)
    assert decision.verdict is Verdict.PASS
    assert "right_padded" not in {way.way for way in told(facts).ways}
    why = "on the CPU EP it also gives other results, from position 5 on"
    assert told(facts).declined["right_padded"] == why
    assert (told(facts).text, told(facts).golden_text) == ((3, 1), (3, 2))
    # The CPU EP need not be able to pad a text, but it must be able to go on from a cache.
    assert measured(wrong, played=cpu, provider=CPU_PROVIDER)[1].verdict is Verdict.PASS
    step = NAMES.index("step")
    wrong[step]["logits"][:, 9:] += 1.0
    assert measured(wrong, played=cpu)[1].verdict is Verdict.MISMATCH
    cpu[step]["logits"][:, 9:] += 1.0
    assert measured(wrong, played=cpu)[1].verdict is Verdict.PASS
    assert measured(wrong, played=cpu, provider=CPU_PROVIDER)[1].verdict is Verdict.MISMATCH


def test_ways_that_show_nothing_are_no_pass() -> None:
    wrong = healthy(0)
    for results in wrong:
        results["logits"] = results["logits"] + 1.0
    facts, decision = measured(wrong, played=wrong)
    assert decision.verdict is Verdict.NO_GOLDEN
    assert decision.reason.startswith("no way shows anything: on the CPU EP it also gives other results")
    assert told(facts).ways == ()


def test_a_way_that_the_target_declines_is_told_and_not_judged() -> None:
    facts, decision = measured(healthy(0), declined={0: "no such buffer"})
    assert decision.verdict is Verdict.PASS
    assert told(facts).declined["at_once"] == "no such buffer"
    assert [way.way for way in told(facts).ways] == NAMES[1:]


def test_without_a_golden_ways_that_disagree_are_told_nevertheless() -> None:
    results = healthy(0)
    results[NAMES.index("chunks")]["logits"][:, 7:] *= 1.1
    refused = Golden(status="refused", message="no kernel")
    facts, decision = measured(results, golden=refused)
    assert decision.verdict is Verdict.NO_GOLDEN
    assert decision.reason == (
        "the CPU EP gives no golden: no kernel; way chunks differs from at_once from position 7 on"
    )
    assert told(facts).ways[0].perplexity is not None


def test_figures_of_a_way_are_those_of_its_outputs() -> None:
    results = healthy(0)
    results[0]["logits"][0, 3] = -results[0]["logits"][0, 3]
    facts, _ = measured(results)
    way = told(facts).ways[0]
    assert way.positions == LENGTH
    assert way.top1 == pytest.approx(1 - 1 / LENGTH, abs=1e-5)
    assert [position for position, kl in enumerate(way.kl) if kl is None or kl > 1e-4] == [3]
    p, q = (np.exp(logits) / np.exp(logits).sum() for logits in (LOGITS[0, 3], -LOGITS[0, 3]))
    assert way.kl[3] == pytest.approx(float((p * np.log(p / q)).sum()), rel=1e-3)
    assert msgspec.json.decode(msgspec.json.encode(told(facts)), type=GenerationFigures) == told(facts)


def test_outputs_that_are_no_logits_and_no_cache_are_not_compared() -> None:
    facts, _ = measured(healthy(0))
    assert not [row.name for row in facts.outputs if "hidden" in row.name]
    assert isinstance(GOLDEN.outputs[0][1][1], Tensor)
