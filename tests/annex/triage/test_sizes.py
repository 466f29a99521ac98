"""Sizes with which a model fails, in words."""

import pytest

from harness.annex.triage.size_words import words_of_sizes


@pytest.mark.parametrize(
    ("failing", "right", "words"),
    [
        ({1, 3, 5}, {2, 4, 8}, "only if the last dimension is odd"),
        ({2, 4, 8}, {1, 3, 5}, "only if the last dimension is even"),
        ({1, 2, 3, 5}, {4, 8}, "only if the last dimension is no multiple of 4"),
        ({5, 8}, {1, 2, 3}, "only from last dimension = 5 on"),
        ({4, 8, 16}, {1, 2, 3, 5, 18}, "only if the last dimension is a multiple of 4"),
        ({1, 2}, {3, 4, 5}, "only up to last dimension = 2"),
        ({7}, {1}, "right with last dimension = 1"),
        ({1, 2, 3, 5}, {4}, "right with last dimension = 4"),
        ({1, 4, 5}, {2, 3}, "right with last dimension = 2, 3"),
        ({1, 2, 3}, set(), ""),
    ],
)
def test_a_rule_is_told_where_enough_sizes_follow_it(failing: set[int], right: set[int], words: str) -> None:
    assert words_of_sizes("last dimension", failing, right) == words
