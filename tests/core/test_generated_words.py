"""Where generated text goes wrong, in words."""

from harness.core.generation_figures import Generated, GenerationFigures, disagreeing, where


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
