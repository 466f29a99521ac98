"""View model -> the site: pages of HTML that refer to each other, and to nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import Problem, UsageError
from harness.core.leak import LEAK_KIB, LEAK_MIB, LEAK_SESSIONS
from harness.core.noise import DEFAULT_LIMITS
from harness.report.archive import packed
from harness.report.headroom import BANDS
from harness.report.noise import on_log_scale
from harness.report.operators import REACHES
from harness.report.page import GENERATOR, Pages
from harness.report.precision import on_scale
from harness.report.view import Report

SHOWN_CHANGES = 500
"""How many changes of each kind are listed."""

SHOWN_CONFLICTS = 200
"""How many conflicts between runs are listed."""

SHOWN_OPERATORS = 300
"""How many failing operators are listed."""

_NUMBERED = ("models-*.html", "cells-*.html", "operators-*.html")


class SitePage(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the site.

    Attributes:
        file: Its name.
        title: What it is called in the navigation.
        template: What makes it.
        scripts: The scripts that it has, in this order.
        part: The part of the report that this file shows, where others of its kind show other parts.
        listed: Whether the navigation names it.
    """

    file: str
    title: str
    template: str
    scripts: tuple[str, ...] = ("report.js", "tables.js")
    part: Any = None
    listed: bool = True


def write_site(report: Report, out: Path, *, templates: Path | None = None) -> Path:
    """Write every page.

    Args:
        report: What to show.
        out: Folder of the site; created where it does not exist. Pages of a larger one that stood there go.
        templates: Folder whose files take the place of the shipped ones of the same name.

    Returns:
        The first page, ``out/index.html``.

    Raises:
        UsageError: A template is wrong, or ``out`` cannot be written.
    """
    pages = tuple(_pages(report))
    listed = [page for page in pages if page.listed]
    maker = Pages(templates)
    leak = {"kib": int(LEAK_KIB), "sessions": LEAK_SESSIONS, "mib": int(LEAK_MIB)}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for page in pages:
            text = maker.make(
                page.template,
                scripts=page.scripts,
                report=report,
                page=page,
                part=page.part,
                listed=listed,
                leak=leak,
                bands=BANDS,
                reaches=REACHES,
                on_scale=on_scale,
                on_log_scale=on_log_scale,
                limits=DEFAULT_LIMITS,
                packed=packed,
                shown_changes=SHOWN_CHANGES,
                shown_conflicts=SHOWN_CONFLICTS,
                shown_operators=SHOWN_OPERATORS,
            )
            # The page states hashes of its own style and script, so its line ends must not be translated.
            (out / page.file).write_text(text, "utf-8", newline="\n")
        _clear(out, {page.file for page in pages})
    except OSError as error:
        problem = f"the report cannot be written: {error.strerror or error}"
        raise UsageError(Problem(where=str(out), what=problem, hint="choose another --out")) from error
    return out / "index.html"


def _pages(report: Report) -> Iterator[SitePage]:
    """The pages that this report has something for."""
    yield SitePage(file="index.html", title="Overview", template="page_overview.html")
    for part in report.models:
        yield SitePage(
            file=part.file,
            title="Models × targets",  # noqa: RUF001 - a typographic cross
            template="page_models.html",
            scripts=("report.js", "grid.js", "drawer.js"),
            part=part,
            listed=part is report.models[0],
        )
    if report.operators.names:
        yield SitePage(file="operators.html", title="Operators", template="page_operators.html")
        for number, lane in enumerate(report.operators.lanes, start=1):
            yield SitePage(
                file=f"operators-{number}.html",
                title="Operators",
                template="page_operators_of.html",
                part=lane,
                listed=False,
            )
    yield SitePage(file="precision.html", title="Precision", template="page_precision.html")
    if report.performance is not None:
        yield SitePage(file="performance.html", title="Performance", template="page_performance.html")
    yield SitePage(file="failures.html", title="Failures", template="page_failures.html")
    if report.changes is not None:
        yield SitePage(file="changes.html", title="Changes", template="page_changes.html")
    for details in report.details:
        yield SitePage(
            file=details.file,
            title="Details",
            template="page_cells.html",
            part=details,
            listed=details is report.details[0],
        )


def _clear(out: Path, written: set[str]) -> None:
    """Remove numbered pages of an earlier report, which nothing leads to any more."""
    mark = f'<meta name="generator" content="{GENERATOR}">'
    for pattern in _NUMBERED:
        for old in out.glob(pattern):
            if old.name not in written:
                with old.open(encoding="utf-8", errors="replace") as file:
                    ours = mark in file.read(2048)
                if ours:
                    old.unlink()
