"""How fast each model generates text in each column: a part of the page *Performance*."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from harness.core.records.generation_figures import GenerationSpeed
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line
from harness.report.cells.report_cell import ReportCell
from harness.report.view import Report
from harness.report.words.figures import brief, ratio

MOST_TEXT_CELLS = 500
"""Cells that the page shows; ``records.jsonl`` has all."""

_MOST_SIZES = 6
"""Lengths of a prompt, and sizes of a batch, that get a column."""


class SpeedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure, and whether it is the best of several right answers."""

    text: str
    best: bool


class TextSpeedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell.

    Attributes:
        first: Milliseconds until the first token, for each shown length of a prompt.
        rate: Tokens each second, for each shown size of a batch.
        after: Tokens each second, for each shown length of a context.
        right: Whether its text is right; only such cells are compared.
    """

    cell: ReportCell
    first: tuple[SpeedFigure, ...]
    rate: tuple[SpeedFigure, ...]
    after: tuple[SpeedFigure, ...]
    cache: str
    right: bool


class TextSpeedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model's cells, in the order of the columns."""

    name: str
    prompts: tuple[int, ...]
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    cells: tuple[TextSpeedCell, ...]
    sizes_left_out: int


class TextSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """All models by name.

    Attributes:
        cells: Cells whose speed was measured.
    """

    models: tuple[TextSpeedModel, ...]
    cells: int
    left_out: int


_Measured = tuple[ReportCell, GenerationSpeed]


def text_speed(report: Report) -> TextSpeed:
    """Return the speed of every cell that generated text and was measured."""
    order = {column: place for place, column in enumerate(report.columns)}
    by_model: dict[str, list[_Measured]] = {}
    for cell in report.cells:
        generation = cell.record.generation
        if generation is not None and generation.speed is not None:
            name = f"{cell.record.suite}/{cell.record.model}"
            by_model.setdefault(name, []).append((cell, generation.speed))
    models: list[TextSpeedModel] = []
    shown = 0
    for name, measured in by_model.items():
        if shown + len(measured) > MOST_TEXT_CELLS and models:
            break
        shown += len(measured)
        models.append(_model(name, sorted(measured, key=lambda pair: order[pair[0].column])))
    total = sum(map(len, by_model.values()))
    return TextSpeed(models=tuple(models), cells=total, left_out=total - shown)


def _model(name: str, measured: Sequence[_Measured]) -> TextSpeedModel:
    prompts = sorted({size for _, speed in measured for size in speed.first_token_ms})
    batches = sorted({size for _, speed in measured for size in speed.tokens_per_s})
    contexts = sorted({size for _, speed in measured for size in speed.tokens_per_s_at})
    shown_prompts, shown_batches, shown_contexts = map(_some, (prompts, batches, contexts))
    right = [speed for cell, speed in measured if _right(cell)]
    first = _best([speed.first_token_ms for speed in right], shown_prompts, min)
    rate = _best([speed.tokens_per_s for speed in right], shown_batches, max)
    after = _best([speed.tokens_per_s_at for speed in right], shown_contexts, max)
    return TextSpeedModel(
        name=one_line(name, 120),
        prompts=shown_prompts,
        batches=shown_batches,
        contexts=shown_contexts,
        cells=tuple(
            TextSpeedCell(
                cell=cell,
                first=tuple(_figures(cell, speed.first_token_ms, shown_prompts, first)),
                rate=tuple(_figures(cell, speed.tokens_per_s, shown_batches, rate)),
                after=tuple(_figures(cell, speed.tokens_per_s_at, shown_contexts, after)),
                cache=brief(None) if speed.cache_mib is None else f"{brief(speed.cache_mib)} MiB",
                right=_right(cell),
            )
            for cell, speed in measured
        ),
        sizes_left_out=sum(map(len, (prompts, batches, contexts)))
        - sum(map(len, (shown_prompts, shown_batches, shown_contexts))),
    )


def _some(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return at most ``_MOST_SIZES``, evenly chosen, the largest one included."""
    step = max(1, math.ceil(len(sizes) / _MOST_SIZES))
    return tuple(reversed(sizes[::-step]))


def _best(
    right: Sequence[Mapping[int, float]], sizes: Iterable[int], better: Callable[[list[float]], float]
) -> dict[int, float]:
    """Return the best figure for each size that several right answers have."""
    found = {size: [figures[size] for figures in right if size in figures] for size in sizes}
    return {size: better(values) for size, values in found.items() if len(values) > 1}


def _figures(
    cell: ReportCell, figures: Mapping[int, float], sizes: Iterable[int], best: Mapping[int, float]
) -> Iterator[SpeedFigure]:
    for size in sizes:
        value = figures.get(size)
        yield SpeedFigure(
            text=ratio(value),
            best=_right(cell) and value is not None and best.get(size) == value,
        )


def _right(cell: ReportCell) -> bool:
    return cell.record.verdict.family is Family.PASSED
