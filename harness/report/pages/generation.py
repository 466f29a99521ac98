"""The page *Generation*: language models that generate text, position by position against the golden."""

import math
from collections.abc import Iterator, Sequence

import msgspec

from harness.core.records.generation_figures import Generated, GenerationFigures
from harness.core.records.scenario import GENERATE
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line
from harness.report.cells.chosen_text import ChosenText, cpu_text, diverging_texts
from harness.report.cells.column import Column
from harness.report.cells.failing_ways import decisive, fails, first_wrong, generates, largest_kl
from harness.report.cells.paging import split
from harness.report.cells.report_cell import REASON_CHARS, ReportCell, page_file
from harness.report.drawings.kl_curve import KlCurve, kl_curve
from harness.report.view import Report
from harness.report.words.figures import brief, multiple, percentage, ratio

MOST_PAGES = 20
"""Largest number of files of the page; ``records.jsonl`` has the cells that do not fit."""

_NAME_CHARS = 80
_SHOWN_WAYS = 40
_NOT_FINITE = "not finite"


class ShownWay(msgspec.Struct, frozen=True, kw_only=True):
    """One way of a cell, with its figures in words.

    Attributes:
        fails: Whether a position or a tensor of the cache fails.
        position: The first failing position; a dash if none fails.
        layer: The first failing tensor of the cache, and since which position; empty if none fails.
        top: Agreement of the first 1, 5 and 10 tokens.
        largest_at: Position of the largest divergence; empty without any.
        noise: The largest error of a logit, in multiples of the noise.
        curve: The divergence over the positions; null without any.
    """

    name: str
    positions: int
    fails: bool
    position: str
    layer: str
    top: tuple[str, str, str]
    largest: str
    largest_at: str
    noise: str
    perplexity: str
    golden_perplexity: str
    curve: KlCurve | None


class GenerationCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell in full.

    Attributes:
        setting: The axes of its column, except the scenario.
        way: The way that represents it; null if none was played.
        ways: Every way; failing ones first, else in the order of playing.
        disagreements: Ways that differ from another one of the same provider.
        declined: ``(way, why it was not played)``.
        text: The text that the provider chose by itself; null without any.
        golden_text: The same of the CPU EP: for this cell, or in a cell of its own that passes.
        equal: Number of tokens that the two have in common at the beginning; null if one is missing.
    """

    cell: ReportCell
    anchor: str
    setting: str
    reason: str
    way: ShownWay | None
    ways: tuple[ShownWay, ...]
    failing: int
    left_out: int
    disagreements: tuple[str, ...]
    declined: tuple[tuple[str, str], ...]
    text: ChosenText | None
    golden_text: ChosenText | None
    equal: int | None

    @property
    def others(self) -> int:
        """Return the failing ways other than the one that represents the cell."""
        return max(0, self.failing - 1)


class GenerationModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model's cells, in the order of the columns."""

    name: str
    cells: tuple[GenerationCell, ...]


class GenerationColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column over all models.

    Attributes:
        setting: Its axes, except the scenario.
        passed: Cells whose text is right, including those computed in part on the provider.
        others: The other cells: refused, excluded, untested or not run.
        declined: Ways that were not played, with a reason.
    """

    column: Column
    setting: str
    passed: int
    failed: int
    others: int
    ways: int
    failing: int
    declined: int


class GenerationPage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of one file.

    Attributes:
        files: ``(file, its first model)`` of all files, for links.
        models: Models of this file; those with a failing cell come first.
        cells: Cells of all files.
    """

    file: str
    files: tuple[tuple[str, str], ...]
    columns: tuple[GenerationColumn, ...]
    models: tuple[GenerationModel, ...]
    cells: int
    failed: int
    left_out: int


def generation_pages(report: Report) -> Iterator[GenerationPage]:
    """Yield a view for each file; none if no cell generates text."""
    cells = [cell for cell in report.cells if generates(cell.record)]
    by_model: dict[str, list[ReportCell]] = {}
    for cell in cells:
        by_model.setdefault(f"{cell.record.suite}/{cell.record.model}", []).append(cell)
    # Stable: models stay in the order of their names within the failing and within the other ones.
    models = sorted(by_model.items(), key=lambda pair: not any(map(_failed, pair[1])))
    parts = list(split(models, lambda pair: sum(map(_chars, pair[1]))))
    shown = parts[:MOST_PAGES]
    files = tuple(
        (page_file("generation", number), one_line(part[0][0], _NAME_CHARS))
        for number, part in enumerate(shown, start=1)
    )
    columns = tuple(_columns(cells, report.columns))
    order = {column: place for place, column in enumerate(report.columns)}
    numbers = {id(cell): number for number, cell in enumerate(cells, start=1)}
    for (file, _), part in zip(files, shown, strict=True):
        yield GenerationPage(
            file=file,
            files=files,
            columns=columns,
            models=tuple(
                GenerationModel(
                    name=one_line(name, 120),
                    cells=tuple(
                        _cell(cell, f"g{numbers[id(cell)]}", cpu_text(cell.record, found))
                        for cell in sorted(found, key=lambda cell: order[cell.column])
                    ),
                )
                for name, found in part
            ),
            cells=len(cells),
            failed=sum(map(_failed, cells)),
            left_out=sum(len(found) for part in parts[MOST_PAGES:] for _, found in part),
        )


def _chars(cell: ReportCell) -> int:
    """Return the approximate size of a cell in the page, most of it the curves of its ways."""
    generation = cell.record.generation
    ways = 0 if generation is None else len(generation.ways) + len(generation.declined)
    return 2000 + 1500 * min(_SHOWN_WAYS, ways)


def _failed(cell: ReportCell) -> bool:
    return cell.record.verdict.family is Family.FAILED


def _columns(cells: Sequence[ReportCell], order: Sequence[Column]) -> Iterator[GenerationColumn]:
    for column in order:
        records = [cell.record for cell in cells if cell.column == column]
        if not records:
            continue
        generations = [record.generation for record in records if record.generation is not None]
        passed = sum(record.verdict.family is Family.PASSED for record in records)
        failed = sum(record.verdict.family is Family.FAILED for record in records)
        yield GenerationColumn(
            column=column,
            setting=_setting(column),
            passed=passed,
            failed=failed,
            others=len(records) - passed - failed,
            ways=sum(len(found.ways) for found in generations),
            failing=sum(fails(way) for found in generations for way in found.ways),
            declined=sum(len(found.declined) for found in generations),
        )


def _setting(column: Column) -> str:
    # All columns of this page have the same scenario.
    axes = tuple(pair for pair in column.axes if pair != ("scenario", GENERATE))
    return msgspec.structs.replace(column, axes=axes).setting


def _cell(cell: ReportCell, anchor: str, cpu_text: Sequence[int]) -> GenerationCell:
    found = cell.record.generation or GenerationFigures()
    standing = decisive(found)
    text, golden_text, equal = diverging_texts(found.text, found.golden_text or cpu_text)
    return GenerationCell(
        cell=cell,
        anchor=anchor,
        setting=_setting(cell.column),
        reason=one_line(cell.record.reason, REASON_CHARS),
        way=None if standing is None else _way(standing),
        ways=tuple(map(_way, sorted(found.ways, key=lambda way: not fails(way))[:_SHOWN_WAYS])),
        failing=sum(map(fails, found.ways)),
        left_out=max(0, len(found.ways) - _SHOWN_WAYS),
        disagreements=tuple(one_line(told, REASON_CHARS) for told in found.disagreements[:_SHOWN_WAYS]),
        declined=tuple(
            (one_line(name, _NAME_CHARS), one_line(why, REASON_CHARS))
            for name, why in list(found.declined.items())[:_SHOWN_WAYS]
        ),
        text=text,
        golden_text=golden_text,
        equal=equal,
    )


def _way(way: Generated) -> ShownWay:
    layer = one_line(first_wrong(way), _NAME_CHARS)
    if layer and way.cache_from is not None and not way.first_stage:
        layer += f" from position {way.cache_from:,}"
    largest, largest_at = _largest(way)
    return ShownWay(
        name=one_line(way.way, _NAME_CHARS),
        positions=way.positions,
        fails=fails(way),
        position=brief(None) if way.first_bad is None else f"{way.first_bad:,}",
        layer=layer,
        top=(percentage(way.top1), percentage(way.top5), percentage(way.top10)),
        largest=largest,
        largest_at=largest_at,
        noise="unknown" if way.noise is None else multiple(way.noise),
        perplexity=_perplexity(way.perplexity, way),
        golden_perplexity=ratio(way.golden_perplexity),
        curve=kl_curve(way.kl, way.first_bad),
    )


def _largest(way: Generated) -> tuple[str, str]:
    found = largest_kl(way)
    if found is None:
        return brief(None), ""
    place, value = found
    return brief(value) if math.isfinite(value) else _NOT_FINITE, f"{place:,}"


def _perplexity(value: float | None, way: Generated) -> str:
    # Without a golden's, nothing was computed; otherwise the provider's own is not finite.
    return _NOT_FINITE if value is None and way.golden_perplexity is not None else ratio(value)
