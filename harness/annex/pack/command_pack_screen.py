"""The screen of a checked package: variants by targets, selections, and what is wrong, in 80 columns."""

from collections.abc import Iterator
from typing import Any

from harness.annex.pack.checking import PackageCheck
from harness.cli.output import wrapped
from harness.core.findings.shipping import rounds_of
from harness.core.records.record import Record
from harness.core.records.verdict import lacks_target
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import WIDTH, visible
from harness.core.timing.pace import best_ms
from harness.report.words.figures import ratio

_NAME = 30
_LEAST_NAME = 12
_FIGURES = len(f"{'':2}{'':2}{'':15} {'':8} {'':8} {'':8}")
"""Characters of a row beside the names of its variant and its target."""
_ROWS = 24
"""Rows of variants on the screen; --json has all."""


def check_screen(found: PackageCheck) -> Iterator[str]:
    """Yield the lines."""
    rows = [*_rows(found)]
    places = max(map(len, ["target", *(target for _, target, *_ in rows[:_ROWS])]))
    most = max(_LEAST_NAME, WIDTH - _FIGURES - places)
    wide = max(map(len, ["variant", *(one_line(name, most) for name, *_ in rows[:_ROWS])]))
    yield f"{'variant':<{wide}}  {'target':<{places}}  {'verdict':<15} selected  load ms   run ms"
    for name, target, verdict, chosen, load, run in rows[:_ROWS]:
        what = f"{one_line(name, most):<{wide}}  {target:<{places}}"
        line = f"{what}  {verdict:<15} {chosen:<8} {load:>8} {run:>8}"
        yield line.rstrip()[:WIDTH]
    if len(rows) > _ROWS:
        yield f"and {plural(len(rows) - _ROWS, 'more row')}: --json has all"
    yield ""
    for record in found.holes:
        text = f"on {record.target} nothing of {record.model} matches: an application gets an error there"
        yield from wrapped(visible(text), "hole      ")
    for name in found.untried:
        yield from wrapped(visible(f"{name}: no target at hand can run it"), "untried   ")
    for kind, remarks in (("speed", found.speed), ("no effect", found.idle)):
        for one in remarks:
            text = one_line(f"{one.model} on {one.target}: {one.told}", 300)
            yield from wrapped(visible(text), f"{kind:<10}")
    for record in found.wrong:
        what = f"{record.model} on {record.target}: {str(record.verdict).replace('_', ' ')}"
        yield from wrapped(visible(one_line(f"{what}: {record.reason}", 300)), "wrong     ")
    count, wrong = len(found.alone) + len(found.selected), len(found.wrong)
    yield f"{plural(count, 'result')}: " + (f"{wrong} wrong" if wrong else "nothing is wrong")


def check_json(found: PackageCheck) -> dict[str, Any]:
    """Return the same as plain values, with the records."""
    return {
        "variants": list(found.variants),
        "records": [*found.alone.values(), *found.selected.values()],
        "wrong": [record.cell for record in found.wrong],
        "holes": [record.cell for record in found.holes],
        "untried": list(found.untried),
        "speed": list(found.speed),
        "no_effect": list(found.idle),
    }


def _rows(found: PackageCheck) -> Iterator[tuple[str, str, str, str, str, str]]:
    targets = dict.fromkeys(target for _, target in (*found.selected, *found.alone))
    for name in found.variants:
        component, _, variant = name.partition("/")
        for target in targets:
            alone, selection = found.alone.get((name, target)), found.selected.get((component, target))
            chosen = selection is not None and selection.scenario.get("chosen") == variant
            if alone is None and not chosen:
                continue
            yield (
                one_line(visible(name), _NAME),
                one_line(visible(target), _NAME),
                _verdict(alone),
                "yes" if chosen else "",
                _time(alone, "create"),
                _run_time(alone),
            )


def _verdict(record: Record | None) -> str:
    if record is None:
        return ""
    return "not here" if lacks_target(record.verdict, record.phase) else str(record.verdict).replace("_", " ")


def _run_time(record: Record | None) -> str:
    """Return the median of repeated runs; of a record without them, such as a wrong one, the first run."""
    median = None if record is None else best_ms(rounds_of(record))
    return _time(record, "first_run") if median is None else ratio(median)


def _time(record: Record | None, key: str) -> str:
    timings = {} if record is None else record.timings_ms
    return f"{timings[key]:.1f}" if key in timings else ""
