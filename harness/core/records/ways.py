"""Ways: uses of a decoder with its cache whose results must all equal those of one run over the whole text.

A way is a *layout* of the text in columns, in the order in which they are fed, and the steps that feed them.
The agent plays it: ``harness.agent.decoding``.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

Buffers = Literal["carried", "none", "shared"]
"""Source of a step's cache: the outputs of the step before, nothing, or one bound buffer."""

_PADS = (3, 1)
"""Numbers of pads in the two rows of a padded batch: both have some, in different numbers."""

MOST_PADS = max(_PADS)
"""Columns that a padded batch has beyond its text."""

_CHUNKS = (7, 8, 1, 16)
"""Sizes of chunks in turn: below, at and above blocks of 8 and 16, and a single token between longer ones."""

_DETOUR = 5
"""Number of other tokens before a rewind: more than one, and no power of two."""

_SMALLEST = (1, 2)

_LENGTH = "length_"
"""Prefix of the plays of the way ``lengths``."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way.

    Attributes:
        meaning: The way in one line.
        rows: Texts that it needs: rows of a batch, or sequences.
        needs_cache: Whether a model without a cache cannot play it.
        needs_mask: Whether it has tokens that do not count.
    """

    meaning: str
    rows: int = 1
    needs_cache: bool = True
    needs_mask: bool = False


WAYS: dict[str, Way] = {
    "at_once": Way(meaning="the whole text in one run", needs_cache=False),
    "step": Way(meaning="the prompt at once, then single tokens"),
    "from_first": Way(meaning="single tokens from the first one on"),
    "chunks": Way(meaning="the text in chunks of 7, 8, 1 and 16 tokens in turn"),
    "lengths": Way(
        meaning="prompts of 1, 2 and powers of two, less and more by 1, then one token each",
        needs_cache=False,
    ),
    "batch": Way(meaning="as `step`, with two texts in a batch", rows=2),
    "left_padded": Way(
        meaning="as `batch`, with 3 and 1 tokens of padding before the texts", rows=2, needs_mask=True
    ),
    "right_padded": Way(
        meaning="as `batch`, with 3 tokens of padding after one of the two prompts", rows=2, needs_mask=True
    ),
    "rewind": Way(
        meaning="in the middle of the text 5 other tokens, then the cache is cut back and the text goes on"
    ),
    "interleaved": Way(meaning="as `step`, two texts by turns in one session, each with its cache", rows=2),
    "shared_buffer": Way(meaning="as `step`, with past and present bound to one buffer of a fixed length"),
    "no_cache": Way(
        meaning="as `step`, each time with the whole text so far and no cache", needs_cache=False
    ),
}
"""The ways, in the order in which one session plays them."""


class TextSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which text is played, and in which ways.

    Attributes:
        ways: Names of ``WAYS``.
        length: Positions of the text; fewer if the model holds fewer.
        longest: Positions of the longest text of the way ``lengths``, likewise; 0 for ``length``.
        new_tokens: How many positions, at the end, are single steps in the ways that have single steps.
        prompt: Token ids with which the text begins; the rest is drawn from a seed.
    """

    ways: tuple[str, ...] = tuple(WAYS)
    length: int = 40
    longest: int = 0
    new_tokens: int = 8
    prompt: tuple[int, ...] = ()


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """One text in one way.

    Attributes:
        name: The way, with the length of the prompt in the way ``lengths``.
        layout: For each row the column's place in the text, -1 for padding; at a place beyond the text is a
            token whose results are ignored. Rows have one length.
        ends: Column at which each step ends, rising; the last is the number of columns.
        buffers: Where the cache comes from.
        detour_at: Column before which other tokens are fed and then discarded; -1 without.
        detour: Number of these tokens.
        by_turns: Whether the rows are independent sequences that are fed in turn, not a batch.
    """

    name: str
    layout: tuple[tuple[int, ...], ...]
    ends: tuple[int, ...]
    buffers: Buffers = "carried"
    detour_at: int = -1
    detour: int = 0
    by_turns: bool = False

    @property
    def length(self) -> int:
        """Positions of the text."""
        return min(max(row) for row in self.layout) + 1

    def begins_with(self, count: int) -> bool:
        """Return whether the first step has the first ``count`` positions of each text."""
        return all(set(range(count)) <= set(row[: self.ends[0]]) for row in self.layout)


def plays_of(way: str, length: int, new_tokens: int, rows: int) -> tuple[Play, ...]:
    """Return the plays of a way; none if the text, of at least one position, is too short for it."""
    prompt = max(1, length - new_tokens)
    if way == "lengths":
        return tuple(
            Play(name=f"{_LENGTH}{one}", layout=(tuple(range(one + 1)),) * rows, ends=(one, one + 1))
            for one in prompt_lengths(length - 1)
        )
    if WAYS[way].needs_mask:
        return tuple(_padded(way, length, prompt, rows))
    middle = max(1, length // 2)
    if way == "rewind" and middle + _DETOUR > length:
        return ()
    buffers: dict[str, Buffers] = {"shared_buffer": "shared", "no_cache": "none"}
    play = Play(
        name=way,
        layout=(tuple(range(length)),) * rows,
        ends=_ends(way, length, prompt, middle),
        buffers=buffers.get(way, "carried"),
        by_turns=way == "interleaved",
    )
    return (msgspec.structs.replace(play, detour_at=middle, detour=_DETOUR) if way == "rewind" else play,)


def _ends(way: str, length: int, prompt: int, middle: int) -> tuple[int, ...]:
    """Return the column at which each step of a way without padding ends."""
    steps = tuple(range(prompt, length + 1))
    found = {
        "at_once": (length,),
        "from_first": tuple(range(1, length + 1)),
        "chunks": tuple(_chunks(length)),
        "rewind": (middle, *(end for end in steps if end > middle)),
    }
    return found.get(way, steps)


def way_of(play: str) -> str:
    """Return the way of a play by its name."""
    return "lengths" if play.startswith(_LENGTH) else play


def prompt_lengths(longest: int) -> tuple[int, ...]:
    """Return 1, 2 and the powers of two up to a length, and each of them minus and plus 1."""
    powers = (1 << exponent for exponent in range(2, longest.bit_length() + 1))
    around = {near for power in powers for near in (power - 1, power, power + 1)}
    return tuple(sorted(one for one in {*_SMALLEST, *around} if one <= longest))


def _chunks(length: int) -> Iterator[int]:
    end = number = 0
    while end < length:
        end = min(length, end + _CHUNKS[number % len(_CHUNKS)])
        number += 1
        yield end


def _padded(way: str, length: int, prompt: int, rows: int) -> Iterator[Play]:
    """Yield the play of a padded batch.

    All rows have as many columns. The row with fewer pads continues behind the text. These tokens come after
    all others, which therefore do not depend on them.
    """
    if prompt <= MOST_PADS:
        return
    columns = length + MOST_PADS
    layout = []
    for row in range(rows):
        pads = (-1,) * _PADS[row % len(_PADS)]
        if way == "left_padded":
            filled = (*pads, *range(length))
        elif row % len(_PADS):
            filled = tuple(range(length))
        else:
            filled = (*range(prompt - MOST_PADS), *pads, *range(prompt - MOST_PADS, length))
        layout.append((*filled, *range(length, length + columns - len(filled))))
    prefill = prompt + MOST_PADS if way == "left_padded" else prompt
    yield Play(name=way, layout=tuple(layout), ends=tuple(range(prefill, columns + 1)))
