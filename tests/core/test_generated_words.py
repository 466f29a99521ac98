"""Where generated text goes wrong, in words."""

from harness.core.records.generation_figures import (
    Generated,
    GenerationFigures,
    StagePlace,
    disagreeing,
    stages_on_cpu,
    where,
)


def way(name: str, **fields: object) -> Generated:
    return Generated(way=name, positions=9, **fields)  # type: ignore[arg-type]


def test_way_position_and_layer_are_named() -> None:
    wrong = way("step", kl=(0.0, 0.833, None), first_bad=6, first_cache="present.1.value", cache_from=6)
    earlier = way("chunks", first_bad=6, first_cache="present.0.key", cache_from=2)
    cache_only = way("rewind", first_cache="present.1.key", cache_from=4)
    good = way("at_once", kl=(0.0,))
    assert where(GenerationFigures(ways=(good, wrong))) == (
        "way step: logits wrong from position 6 on, first in present.1.value; KL 0.83"
    )
    assert where(GenerationFigures(ways=(earlier, wrong, cache_only))) == (
        "way chunks: logits wrong from position 6 on, first in present.0.key from position 2 on"
        "; 2 other ways are wrong, too"
    )
    assert where(GenerationFigures(ways=(cache_only,))) == (
        "way rewind: present.1.key wrong from position 4 on, the logits are right"
    )
    assert where(GenerationFigures(ways=(good,))) == where(GenerationFigures()) == where(None) == ""


def test_ways_that_disagree_are_told_without_a_golden() -> None:
    told = GenerationFigures(disagreements=("chunks differs from at_once from position 7 on",))
    assert disagreeing(told) == "way chunks differs from at_once from position 7 on"
    assert disagreeing(GenerationFigures()) == disagreeing(None) == ""


def test_the_stage_of_a_folder_is_named_before_its_cache() -> None:
    place = {"first_stage": "vision", "first_value": "vision.image_features"}
    wrong = way("step", first_bad=1, first_cache="present.0.key", cache_from=1, **place)
    assert where(GenerationFigures(ways=(wrong,))) == (
        "way step: logits wrong from position 1 on, first in stage vision: vision.image_features"
    )
    assert where(GenerationFigures(ways=(way("step", **place),))) == (
        "way step: vision.image_features of stage vision wrong, the logits are right"
    )


def test_stages_that_the_cpu_ran_are_named_unless_the_folder_wants_that_or_all_were() -> None:
    left, ran = StagePlace(name="encoder", cpu_nodes=3), StagePlace(name="decoder", ep_nodes=2)
    wanted = StagePlace(name="head", asked=False, cpu_nodes=1)
    assert stages_on_cpu(GenerationFigures(stages=(left, ran, wanted))) == "stage encoder ran on the CPU EP"
    assert not stages_on_cpu(GenerationFigures(stages=(left, wanted)))
    assert not stages_on_cpu(None)
