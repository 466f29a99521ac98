"""Ways lay a text out in columns and steps: whatever the lengths, every place of the text is fed once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records.ways import MOST_PADS, WAYS, plays_of, prompt_lengths, way_of

SIZES = st.tuples(st.sampled_from(list(WAYS)), st.integers(1, 70), st.integers(1, 80), st.integers(1, 4))


@given(SIZES)
def test_every_play_feeds_the_whole_text_in_order(sizes: tuple[str, int, int, int]) -> None:
    way, length, new_tokens, rows = sizes
    for play in plays_of(way, length, new_tokens, rows):
        assert way_of(play.name) == way
        assert len(play.layout) == rows
        assert len({len(row) for row in play.layout}) == 1
        for row in play.layout:
            places = [place for place in row if 0 <= place < play.length]
            assert places == list(range(play.length))
            # What lies beyond the text comes after all of it, so that nothing depends on it.
            beyond = [column for column, place in enumerate(row) if place >= play.length]
            assert all(place < play.length for place in row[: min(beyond, default=0)])
        assert play.ends == tuple(sorted(set(play.ends)))
        assert play.ends[0] >= 1
        assert play.ends[-1] == len(play.layout[0])


@given(SIZES)
def test_only_padded_ways_have_padding_and_their_rows_differ_in_it(sizes: tuple[str, int, int, int]) -> None:
    way, length, new_tokens, rows = sizes
    for play in plays_of(way, length, new_tokens, rows):
        pads = [row.count(-1) for row in play.layout]
        if WAYS[way].needs_mask:
            assert max(pads) == MOST_PADS
            assert rows == 1 or len(set(pads)) > 1
        else:
            assert pads == [0] * rows


def test_each_way_is_what_its_line_says() -> None:
    plays = {way: plays_of(way, 12, 3, WAYS[way].rows) for way in WAYS}
    assert plays["at_once"][0].ends == (12,)
    assert plays["step"][0].ends == (9, 10, 11, 12)
    assert plays["from_first"][0].ends == tuple(range(1, 13))
    assert plays_of("chunks", 40, 3, 1)[0].ends == (7, 15, 16, 32, 39, 40)
    assert [play.name for play in plays["lengths"]] == [f"length_{one}" for one in (1, 2, 3, 4, 5, 7, 8, 9)]
    assert plays["lengths"][2].ends == (3, 4)
    left, right = plays["left_padded"][0], plays["right_padded"][0]
    assert left.layout == ((-1, -1, -1, *range(12)), (-1, *range(14)))
    assert right.layout == ((*range(6), -1, -1, -1, *range(6, 12)), tuple(range(15)))
    assert (left.ends, right.ends) == ((12, 13, 14, 15), tuple(range(9, 16)))
    assert plays_of("rewind", 8, 2, 1) == ()  # there is no room for the detour
    rewind = plays["rewind"][0]
    assert (rewind.ends, rewind.detour_at, rewind.detour) == ((6, 9, 10, 11, 12), 6, 5)
    assert plays["interleaved"][0].by_turns
    assert (plays["shared_buffer"][0].buffers, plays["no_cache"][0].buffers) == ("shared", "none")


@pytest.mark.parametrize("way", ["left_padded", "right_padded"])
def test_a_prompt_that_is_no_longer_than_its_padding_is_not_padded(way: str) -> None:
    assert plays_of(way, MOST_PADS + 2, 2, 2) == ()
    assert len(plays_of(way, MOST_PADS + 3, 2, 2)) == 1


@given(st.integers(0, 5000))
def test_prompts_end_around_powers_of_two_within_the_text(longest: int) -> None:
    found = prompt_lengths(longest)
    assert list(found) == sorted(set(found))
    assert all(1 <= one <= longest for one in found)
    assert set(found) >= {one for one in (1, 2, 4, 8, 4096, 4095, 4097) if one <= longest}
