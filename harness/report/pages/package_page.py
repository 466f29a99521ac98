"""The page *Package*: the variants of each component of a model package, and what is selected of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness.core.findings.shipping import rounds_of
from harness.core.findings.variant_pace import beside_others
from harness.core.records.record import Record
from harness.core.records.scenario import PACKAGE_SCENARIO, PLAIN
from harness.core.records.variant_use import ANSWER_WORDS
from harness.core.records.verdict import Family, Verdict
from harness.core.timing.pace import best_ms
from harness.report.view import Report
from harness.report.words.figures import ratio


class VariantCell(msgspec.Struct, frozen=True, kw_only=True):
    """One variant on one target.

    Attributes:
        verdict: Its verdict by itself; null if it did not run there.
        chosen: Whether the runtime selects it.
        answer: What the provider answers to it, in its words; empty if it was not asked.
        create: Making its session, with the unit; empty if it was not measured.
        first_run: Its first run, likewise.
        run: The median of repeated runs, likewise.
        idle: Options that changed no bit of its answer.
    """

    verdict: Verdict | None
    chosen: bool
    answer: str
    create: str = ""
    first_run: str = ""
    run: str = ""
    idle: str = ""


class SelectionColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One target: what is selected, and what that means."""

    target: str
    selected: str
    verdict: Verdict
    by: str
    first_load: str
    warm_load: str
    folder: str
    policies: tuple[str, ...]
    told: str


class PackageTable(msgspec.Struct, frozen=True, kw_only=True):
    """One component: its variants by rows, and targets by columns."""

    suite: str
    component: str
    columns: tuple[SelectionColumn, ...]
    rows: tuple[tuple[str, tuple[VariantCell, ...]], ...]


class PackageView(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page."""

    tables: tuple[PackageTable, ...]


def package_view(report: Report) -> Iterator[PackageView]:
    """Yield the view, if a component of a package was tried."""
    selections: dict[tuple[str, str], dict[str, Record]] = {}
    alone: dict[tuple[str, str, str], Record] = {}
    for cell in report.cells:
        record = cell.record
        scenario = record.axes.get("scenario", PLAIN)
        if scenario == PACKAGE_SCENARIO:
            selections.setdefault((record.suite, record.model), {}).setdefault(record.target, record)
        elif scenario == PLAIN:
            alone.setdefault((record.suite, record.model, record.target), record)
    tables = tuple(_table(suite, name, found, alone) for (suite, name), found in sorted(selections.items()))
    if tables:
        yield PackageView(tables=tables)


def _table(
    suite: str,
    component: str,
    selections: Mapping[str, Record],
    alone: Mapping[tuple[str, str, str], Record],
) -> PackageTable:
    names = {name: None for record in selections.values() for name in _texts(record, "variants")}
    inside = f"{component}/"
    for of, model, _ in alone:
        if of == suite and model.startswith(inside):
            names.setdefault(model.removeprefix(inside))
    by_target = {
        target: {name: alone.get((suite, inside + name, target)) for name in names} for target in selections
    }
    return PackageTable(
        suite=suite,
        component=component,
        columns=tuple(_column(record, by_target[target]) for target, record in selections.items()),
        rows=tuple(
            (
                name,
                tuple(_cell(name, record, by_target[target][name]) for target, record in selections.items()),
            )
            for name in names
        ),
    )


def _cell(name: str, selection: Record, alone: Record | None) -> VariantCell:
    answers = dict(zip(_texts(selection, "variants"), _texts(selection, "answers"), strict=False))
    timings = {} if alone is None else alone.timings_ms
    effect = None if alone is None else alone.effect
    median = None if alone is None else best_ms(rounds_of(alone))
    return VariantCell(
        verdict=None if alone is None else alone.verdict,
        chosen=selection.scenario.get("chosen") == name,
        answer=ANSWER_WORDS.get(answers.get(name, ""), answers.get(name, "")),
        create=_ms(timings.get("create")),
        first_run=_ms(timings.get("first_run")),
        run="" if median is None else f"{ratio(median)} ms",
        idle="" if effect is None or effect.seen else ", ".join(effect.options),
    )


def _column(record: Record, alone: Mapping[str, Record | None]) -> SelectionColumn:
    facts = record.scenario
    folder = facts.get("folder_bytes")
    return SelectionColumn(
        target=record.target,
        selected=str(facts.get("chosen", "")),
        verdict=record.verdict,
        by=str(facts.get("selected_by", "")),
        first_load=_ms(record.timings_ms.get("create")),
        warm_load=_ms(facts.get("create_warm_ms")),
        folder=f"{folder / 1024:,.0f} KiB" if isinstance(folder, int) else "",
        policies=_texts(record, "policies"),
        told=_told(record, alone),
    )


def _told(record: Record, alone: Mapping[str, Record | None]) -> str:
    """Return what the selection means for an application on this target, in words."""
    chosen = str(record.scenario.get("chosen", ""))
    if record.verdict is Verdict.NO_VARIANT:
        return "Nothing matches: the selection fails, and an application gets an error."
    if record.verdict.family is not Family.PASSED or not chosen:
        return record.reason
    slower = beside_others(chosen, {name: one for name, one in alone.items() if one is not None})
    return f"{chosen} is right, but {slower}, which is right, too." if slower else f"{chosen} is right."


def _texts(record: Record, key: str) -> tuple[str, ...]:
    found: Any = record.scenario.get(key, ())
    return tuple(map(str, found)) if isinstance(found, Sequence) and not isinstance(found, str) else ()


def _ms(value: object) -> str:
    return f"{value:,.1f} ms" if isinstance(value, int | float) else ""
