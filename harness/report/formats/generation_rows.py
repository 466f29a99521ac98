"""Generated text as rows of plain values, for the formats that programs read."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from harness.core.records.generation_figures import Generated, GenerationFigures
from harness.core.records.verdict import Verdict
from harness.report.cells.failing_ways import fails, largest_kl
from harness.report.formats.cell_columns import RecordRow
from harness.report.formats.rows import with_columns
from harness.report.runs.merged_run import MergedRun


class WayRow(RecordRow, frozen=True, kw_only=True):
    """One way of generating text in a cell, played or declined.

    Attributes:
        label: Target and axes, as the report names them.
        run: Name of the run folder.
        declined: Why it was not played; empty if it was. Then there are no figures.
        positions: Positions that were compared.
        fails: Whether a position, a tensor of the cache, or a value between sessions fails.
        first_bad: The first position whose logits fail.
        first_cache: The first output of the cache that fails, in the order of the layers; empty if none does.
        cache_from: The position from which it fails.
        first_stage: For a folder of several sessions, the first one that gives a wrong value; else empty.
        largest_kl: Largest divergence from the golden, in nats; null if one is not finite, or there is none.
        largest_kl_at: Its position, or that of the first one that is not finite.
        top1: Share of positions with the same first token, among those where the golden's margin exceeds the
            noise.
        top5: The same for the first five tokens.
        top10: The same for the first ten tokens.
        noise: Largest error of a logit as a multiple of the model's noise.
        perplexity: Perplexity of the text on the provider.
        golden_perplexity: Perplexity of the text under the golden.
    """

    verdict: Verdict
    way: str
    declined: str
    positions: int
    fails: bool
    first_bad: int | None
    first_cache: str
    cache_from: int | None
    first_stage: str
    largest_kl: float | None
    largest_kl_at: int | None
    top1: float | None
    top5: float | None
    top10: float | None
    noise: float | None
    perplexity: float | None
    golden_perplexity: float | None


class SpeedRow(RecordRow, frozen=True, kw_only=True):
    """One figure about how fast a cell generates text.

    Attributes:
        label: Target and axes, as the report names them.
        run: Name of the run folder.
        figure: ``first_token_ms``, ``tokens_per_s``, ``tokens_per_s_at`` or ``cache_mib``.
        size: Length of the prompt for the first token, size of the batch for tokens, length of the context
            for tokens after it; null for the cache.
    """

    verdict: Verdict
    figure: Literal["first_token_ms", "tokens_per_s", "tokens_per_s_at", "cache_mib"]
    size: int | None
    value: float


_FIGURES = (
    *("positions", "first_bad", "first_cache", "cache_from", "first_stage"),
    *("top1", "top5", "top10", "noise"),
    *("perplexity", "golden_perplexity"),
)


def way_rows(run: MergedRun) -> Iterator[WayRow]:
    """Yield a row for each way, those declined last, in the order of the runs and cells."""
    for generation, common in _generating(run):
        for way in generation.ways:
            yield _way(way, common)
        for name, why in generation.declined.items():
            yield _way(Generated(way=name, positions=0), common, declined=why)


def speed_rows(run: MergedRun) -> Iterator[SpeedRow]:
    """Yield a row for each figure of speed, in the order of the runs and cells."""
    for generation, common in _generating(run):
        speed = generation.speed
        if speed is None:
            continue
        for size, value in sorted(speed.first_token_ms.items()):
            yield SpeedRow(**common, figure="first_token_ms", size=size, value=value)
        for size, value in sorted(speed.tokens_per_s.items()):
            yield SpeedRow(**common, figure="tokens_per_s", size=size, value=value)
        for size, value in sorted(speed.tokens_per_s_at.items()):
            yield SpeedRow(**common, figure="tokens_per_s_at", size=size, value=value)
        if speed.cache_mib is not None:
            yield SpeedRow(**common, figure="cache_mib", size=None, value=speed.cache_mib)


def _generating(run: MergedRun) -> Iterator[tuple[GenerationFigures, Mapping[str, Any]]]:
    for record, columns in with_columns(run):
        if record.generation is not None:
            yield record.generation, {**columns, "verdict": record.verdict}


def _way(way: Generated, common: Mapping[str, Any], declined: str = "") -> WayRow:
    place, value = largest_kl(way) or (None, math.inf)
    figures = {name: getattr(way, name) for name in _FIGURES}
    return WayRow(
        **common,
        **figures,
        way=way.way,
        declined=declined,
        fails=fails(way),
        largest_kl=value if math.isfinite(value) else None,
        largest_kl_at=place,
    )
