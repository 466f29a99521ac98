"""The page of the reference that shows the results."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.planted.faults.elements import LATER, LATER_WHOLE
from benchmarks.planted.models.later import later
from benchmarks.planted.rows import Results, Row, is_aside
from benchmarks.planted.subject import BENEATH_EACH, BENEATH_RMS, DRAWS, VISIBLE_EACH, VISIBLE_RMS

TEMPLATE = Path(__file__).with_name("page.md")
"""The words of the page."""

TEXT_WIDTH = 420
"""Characters of a reason that the page shows."""

MANY = 6
"""Models that a cell of the table names."""


def page(results: Results) -> str:
    """Return the page, in Markdown."""
    rows = results.rows
    faults = [row for row in rows if not row.honest]
    honest = [row for row in rows if row.honest]
    return TEMPLATE.read_text(encoding="utf-8").format(
        models=len(results.models),
        draws=DRAWS,
        each=VISIBLE_EACH,
        rms=VISIBLE_RMS,
        low=BENEATH_EACH,
        low_rms=BENEATH_RMS,
        kinds=len({row.kind for row in faults}),
        cells=f"{len(rows):,}",
        parts=_table(
            (
                "part",
                "visible faults found",
                "passed",
                "passed by a documented rule",
                "excluded",
                "honest accused",
            ),
            _parts(rows),
        ),
        kinds_table=_table(("fault", "found", "passed on", "between", "beneath", "verdicts"), _kinds(faults)),
        missed=_named([row for row in faults if row.is_missed]),
        allowed=_allowed([row for row in faults if row.passes and row.allowed]),
        real=results.real,
        otherwise="\n".join(f"* {text}" for text in results.otherwise) or "None is judged otherwise.",
        providers=_providers(results),
        excluded=_named([row for row in faults if row.effect == "visible" and row.family == "excluded"]),
        honest_table=_table(("kind", "accused", "verdicts"), _honest(honest)),
        accused=_named([row for row in honest if row.is_accused]),
        verdicts=_table(("model", *_words(rows)), _by_model(results)),
        **results.environment,
    )


def _parts(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    parts: tuple[tuple[str, Callable[[Row], bool]], ...] = (
        ("tuned on", lambda row: not row.is_aside and not _is_later(row)),
        ("set aside: the model or the kind", lambda row: row.is_aside and not _is_later(row)),
        ("set aside: both", lambda row: is_aside(row.kind) and is_aside(row.model) and not _is_later(row)),
        ("written after the rules were final: the model or the kind", _is_later),
        ("all", lambda _: True),
    )
    return [(name, *_figures([row for row in rows if wanted(row)])) for name, wanted in parts]


def _is_later(row: Row) -> bool:
    return row.kind in {*LATER, *LATER_WHOLE} or row.model in {model.name for model in later()}


def _figures(rows: Sequence[Row]) -> tuple[str, ...]:
    visible = [row for row in rows if not row.honest and row.effect == "visible"]
    honest = [row for row in rows if row.honest]
    return (
        _share(sum(row.family == "failed" for row in visible), len(visible)),
        str(sum(row.is_missed for row in visible)),
        str(sum(row.passes and not row.is_missed for row in visible)),
        str(sum(row.family == "excluded" for row in visible)),
        _share(sum(row.is_accused for row in honest), len(honest)),
    )


def _share(count: int, of: int) -> str:
    return f"{100 * count / of:.2f}% ({count} of {of})" if of else "none"


def _kinds(faults: Sequence[Row]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for kind in dict.fromkeys(row.kind for row in faults):
        own = [row for row in faults if row.kind == kind]
        visible = [row for row in own if row.effect == "visible"]
        missed = [row.model for row in own if row.passes]
        between = [row for row in own if row.effect == "between"]
        found.append(
            (
                kind + (" *" if is_aside(kind) else ""),
                f"{sum(row.family == 'failed' for row in visible)} of {len(visible)}",
                ", ".join(missed[:MANY]) + (f" and {len(missed) - MANY} more" if len(missed) > MANY else ""),
                f"{sum(row.family == 'failed' for row in between)} of {len(between)}" if between else "",
                str(sum(row.effect == "beneath" for row in own) or ""),
                _counted(row.verdict for row in visible),
            )
        )
    return found


def _honest(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for kind in dict.fromkeys(row.kind for row in rows):
        own = [row for row in rows if row.kind == kind]
        found.append(
            (
                kind + (" *" if is_aside(kind) else ""),
                f"{sum(row.is_accused for row in own)} of {len(own)}",
                _counted(row.verdict for row in own),
            )
        )
    return found


def _counted(verdicts: Iterable[str]) -> str:
    return ", ".join(f"{count} `{verdict}`" for verdict, count in Counter(verdicts).most_common())


def _named(rows: Sequence[Row]) -> str:
    shown = [
        (row.kind, row.model, f"{row.size:.2g}", row.verdict, row.reason[:TEXT_WIDTH].replace("|", "/"))
        for row in rows
    ]
    return _table(("kind", "model", "times its noise", "verdict", "reason"), shown) if shown else "None."


def _providers(results: Results) -> str:
    if not results.providers:
        return "No other provider was asked for."
    head = (
        "target",
        "computes in",
        "models that pass",
        "faults found in them that are visible at that precision",
        "passed by what is documented",
        "pass all the same",
    )
    lines = [
        (
            one.name,
            one.precision,
            str(one.passed),
            _share(one.visible - len(one.missed) - one.documented, one.visible),
            str(one.documented),
            ", ".join(f"{kind}: {model}" for kind, model, _ in one.missed) or "none",
        )
        for one in results.providers
    ]
    own = [
        (one.name, model, verdict, reason[:TEXT_WIDTH].replace("|", "/"))
        for one in results.providers
        for model, verdict, reason in one.failed
    ]
    failing = _table(("target", "model", "verdict", "reason"), own) if own else "None."
    return f"{_table(head, lines)}\n\nFailures of the providers' own, without a fault:\n\n{failing}"


def _allowed(rows: Sequence[Row]) -> str:
    shown = []
    for rule, model in dict.fromkeys((row.allowed, row.model) for row in rows):
        own = [f"{row.kind} ({row.size:.2g})" for row in rows if (row.allowed, row.model) == (rule, model)]
        shown.append((rule, model, ", ".join(own)))
    return _table(("rule", "model", "faults (times the noise by hand)"), sorted(shown)) if shown else "None."


def _words(rows: Sequence[Row]) -> list[str]:
    return [word for word, _ in Counter(row.verdict for row in rows if not row.honest).most_common()]


def _by_model(results: Results) -> list[tuple[str, ...]]:
    words = _words(results.rows)
    found: list[tuple[str, ...]] = []
    for model in results.models:
        counts = Counter(row.verdict for row in results.rows if row.model == model and not row.honest)
        found.append(
            (model + (" *" if is_aside(model) else ""), *(str(counts[word] or "") for word in words))
        )
    return found


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
