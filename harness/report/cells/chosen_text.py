"""The texts of the page *Generation*: the tokens that providers choose by themselves."""

from collections.abc import Sequence
from itertools import takewhile

import msgspec

from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.report.cells.report_cell import ReportCell

SHOWN_TOKENS = 64
"""Tokens of a text that the page shows."""


class ChosenText(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a provider chose by itself, split where they depart from the other's.

    Attributes:
        same: The first tokens, which both have in common.
        rest: The tokens behind them.
    """

    same: str
    rest: str
    left_out: int


def cpu_text(record: Record, of_model: Sequence[ReportCell]) -> tuple[int, ...]:
    """Return the text that the CPU EP chose in a passing cell of the same model after the same prompt."""
    own = _golden_texts(record)
    for cell in of_model:
        other, made = cell.record, cell.record.generation
        if (
            other is record
            or made is None
            or other.provider != CPU_PROVIDER
            or other.verdict.family is not Family.PASSED
        ):
            continue
        if not own.isdisjoint(_golden_texts(other)):
            return made.text
    return ()


def _golden_texts(record: Record) -> set[tuple[str, int, float]]:
    """Return what distinguishes one golden's text from another: ways, lengths, and golden perplexities."""
    ways = record.generation.ways if record.generation is not None else ()
    return {
        (way.way, way.positions, way.golden_perplexity) for way in ways if way.golden_perplexity is not None
    }


def diverging_texts(
    text: Sequence[int], golden: Sequence[int]
) -> tuple[ChosenText | None, ChosenText | None, int | None]:
    """Return two texts, split where they differ, and how many tokens they share; None for an empty one."""
    pairs = zip(text, golden, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)) if text and golden else None
    cut = 0 if same is None else same
    return _text(text, cut), _text(golden, cut), same


def _text(tokens: Sequence[int], same: int) -> ChosenText | None:
    if not tokens:
        return None
    shown = tokens[:SHOWN_TOKENS]
    return ChosenText(
        same=" ".join(map(str, shown[:same])),
        rest=" ".join(map(str, shown[same:])),
        left_out=len(tokens) - len(shown),
    )
