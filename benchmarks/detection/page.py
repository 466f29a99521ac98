"""The page of the reference that shows the results."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.detection.faults import FAULTS
from benchmarks.detection.measure import FULL, VISIBLE
from benchmarks.detection.policies import BOTH, CALIBRATED, LIMITS, POLICIES, SWEEP, TABLE, Policy
from benchmarks.detection.rows import Results, Row
from benchmarks.detection.tally import BANDS, accused, bands, curve, found, healthy, seen_from, visible

TEMPLATE = Path(__file__).with_name("page.md")
"""The words of the page."""

COMPARED = (CALIBRATED, TABLE, "Polygraphy")
"""Policies with a column of their own where there is no room for all."""

OWN = tuple(policy for policy in POLICIES if policy.name in {CALIBRATED, BOTH, TABLE})
"""The harness's own; the others have no terms for half precision."""

REDUCED = ("float16", "bfloat16")

TEXT_WIDTH = 110
"""Characters of a reason that the page shows."""


def page(results: Results) -> str:
    """The page, in Markdown."""
    rows = [row for model in results.models for row in model.rows]
    full = [row for row in rows if row.precision == FULL]
    return TEMPLATE.read_text(encoding="utf-8").format(
        visible=VISIBLE,
        full=_both_rates(full),
        deep=_sentence(_deep(full)),
        depths="\n\n".join(_depths(full)),
        fixed=_table(("tolerance", "faults found", "healthy accused"), _rates(full, SWEEP)),
        limits=_banded(full, (POLICIES[0], *LIMITS)),
        curve=_curves(full, COMPARED),
        coarse="\n\n".join(part for precision in REDUCED for part in _coarse(rows, precision)),
        equal=sum(model.equal for model in results.models),
        ways=_ways(rows),
        doubtful=_doubtful(rows),
        missed=_missed(full),
        kind_count=len({row.fault for row in full if row.fault}),
        kinds=_kinds(full),
        unseen=_table(("fault", "sites"), _unseen(results)),
        absent=_table(("way", "models", "why"), _absent(results)),
        model_count=len({model.model for model in results.models}),
        models=_models(results),
        **results.environment,
    )


def _deep(rows: Sequence[Row]) -> list[str]:
    return [model for _, model in sorted({(row.layers, row.model) for row in rows if row.layers is not None})]


def _both_rates(rows: Sequence[Row]) -> str:
    terms = {policy.name: policy.what for policy in POLICIES}
    return _table(
        ("policy", "terms", "faults found", "healthy accused"),
        [(name, terms[name], caught, blamed) for name, caught, blamed in _rates(rows, POLICIES)],
    )


def _rates(rows: Sequence[Row], policies: Iterable[Policy]) -> list[tuple[str, str, str]]:
    return [
        (policy.name, str(found(rows, policy.name)), str(accused(rows, policy.name))) for policy in policies
    ]


def _depths(rows: Sequence[Row]) -> Iterator[str]:
    deep = [row for row in rows if row.layers is not None]
    harmless = [policy for policy in SWEEP if not accused(deep, policy.name).count]
    for layers in sorted({row.layers for row in deep if row.layers is not None}):
        yield f"### {layers} {'layer' if layers == 1 else 'layers'}"
        yield _banded([row for row in deep if row.layers == layers], (*POLICIES, *harmless[-1:]))


def _banded(rows: Sequence[Row], policies: Iterable[Policy]) -> str:
    """What policies find of the faults near the noise, and what they accuse."""
    lines = []
    for policy in policies:
        rates = [str(rate) for _, rate in bands(rows, policy.name, BANDS)]
        least = seen_from(rows, policy.name)
        sure = "-" if least is None else f"{least:.1f} x"
        lines.append((policy.name, str(accused(rows, policy.name)), sure, *rates))
    names = [name for name, _ in bands(rows, CALIBRATED, BANDS)]
    return _table(("policy", "healthy accused", "finds 99 % from", *names), lines)


def _curves(rows: Sequence[Row], policies: Sequence[str]) -> str:
    curves = [curve(rows, name) for name in policies]
    return _table(
        ("effect, multiples of noise", *policies),
        [(classes[0][0], *(str(rate) for _, rate in classes)) for classes in zip(*curves, strict=True)],
    )


def _coarse(rows: Sequence[Row], precision: str) -> Iterator[str]:
    coarse = [row for row in rows if row.precision == precision]
    yield f"### {precision}"
    yield _table(("policy", "faults found", "healthy accused"), _rates(coarse, OWN))
    yield _curves(coarse, COMPARED[:2])


def _ways(rows: Sequence[Row]) -> str:
    ways: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if healthy(row) and row.ratios is not None:
            ways[row.precision, row.way].append(row)
    lines = []
    order = (FULL, *REDUCED)
    for (precision, way), results in sorted(ways.items(), key=lambda item: order.index(item[0][0])):
        rms, largest = ([row.ratios[part] for row in results if row.ratios] for part in (0, 1))
        figures = (f"{statistics.median(rms):.2f}", f"{max(rms):.2f}", f"{max(largest):.1f}")
        lines.append((precision, way, str(len(results)), *figures))
    return _table(("precision", "way", "results", "median rms", "largest rms", "largest element"), lines)


def _missed(rows: Sequence[Row]) -> str:
    """Visible faults that the calibrated tolerance passes."""
    lines = [
        (
            row.model,
            row.fault or "",
            row.way,
            f"{row.effect or 0:.0f} x",
            *map("{:.1f}".format, row.ratios or ()),
        )
        for row in rows
        if visible(row) and CALIBRATED not in row.failed
    ]
    return _table(("model", "fault", "node", "effect", "rms", "largest element"), lines)


def _doubtful(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        if row.doubtful:
            effect = "no number" if row.effect is None else f"{row.effect:.0f} x"
            lines.append(
                (row.model, row.precision, row.way, effect, "no" if CALIBRATED in row.failed else "yes")
            )
    return _table(("model", "precision", "way", "effect", "calibrated passes it"), lines)


def _kinds(rows: Sequence[Row]) -> str:
    lines = []
    for fault in FAULTS.values():
        planted = [row for row in rows if row.fault == fault.name]
        seen = [row for row in planted if visible(row)]
        rates = [str(found(seen, name).count) for name in COMPARED]
        if planted:
            lines.append((fault.name, fault.what, str(len(planted)), str(len(seen)), *rates))
    return _table(("fault", "what", "planted", "visible", *COMPARED), lines)


def _unseen(results: Results) -> list[tuple[str, str]]:
    sites: Counter[str] = Counter()
    for model in results.models:
        sites.update(model.unseen)
    return [(name, str(sites[name])) for name in FAULTS if sites[name]]


def _absent(results: Results) -> list[tuple[str, str, str]]:
    models: dict[tuple[str, str], set[str]] = defaultdict(set)
    for model in results.models:
        for way, why in model.absent.items():
            words = " ".join(why.split())
            models[way, words if len(words) <= TEXT_WIDTH else words[: TEXT_WIDTH - 4] + " ..."].add(
                model.model
            )
    return [
        (way, _sentence(sorted(names)) if len(names) <= 3 else str(len(names)), why)
        for (way, why), names in models.items()
    ]


def _models(results: Results) -> str:
    lines = []
    for model in results.models:
        if model.draw == 0:
            planted = [row for row in model.rows if row.fault is not None and row.precision == FULL]
            seen = [row for row in planted if visible(row)]
            lines.append((model.model, str(len(planted)), str(len(seen)), str(found(seen, CALIBRATED).count)))
    return _table(("model", "faults", "visible", "found by the calibrated tolerance"), sorted(lines))


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    texts = [[_cell(cell) for cell in line] for line in lines]
    rows = [list(head), ["---"] * len(head), *(texts or [["none"] + [""] * (len(head) - 1)])]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _sentence(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
