"""What two runs tell about the generated text of a cell."""

from typing import Any

import pytest

from harness.core.records.generation_figures import Generated, GenerationFigures
from harness.report.cells.failing_ways import generation_changes


def made(**fields: Any) -> GenerationFigures:
    way: dict[str, Any] = {"way": "step", "positions": 4, "perplexity": 5.0, "golden_perplexity": 5.0}
    return GenerationFigures(ways=(Generated(**(way | fields)),))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (made(), made(), []),
        (made(first_bad=3), made(first_bad=3), []),
        (made(first_bad=3), made(first_bad=1), ["first bad position 3 of way step -> 1 of way step"]),
        (
            made(first_bad=1_000, way="chunks"),
            made(first_cache="present.0.key", cache_from=0),
            ["first bad position 1,000 of way chunks -> 0 of way step"],
        ),
        (made(), made(first_bad=1), []),  # another verdict, whose reason names the position
        (made(), made(perplexity=5.04), []),
        (made(), made(perplexity=6.0), ["perplexity of way step 5 -> 6, golden 5"]),
        (made(), made(perplexity=6.0, golden_perplexity=5.5), []),  # another text
        (made(), made(perplexity=None), []),
        (None, made(), []),
        (made(), None, []),
        (made(), GenerationFigures(), []),
    ],
)
def test_changes_of_generated_text(
    old: GenerationFigures | None, new: GenerationFigures | None, told: list[str]
) -> None:
    assert list(generation_changes(old, new)) == told
