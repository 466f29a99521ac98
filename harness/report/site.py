"""The site: the table of its pages, and their files, which link only to each other."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec

from harness.doors import REPORT_PAGES, behind, load_registered
from harness.report.cells.report_cell import page_file
from harness.report.pages.any_two import compared_columns
from harness.report.pages.changes import changes_view
from harness.report.pages.depth_page import depth_view
from harness.report.pages.details import detail_pages
from harness.report.pages.failures import failures_view
from harness.report.pages.faults_page import fault_pages
from harness.report.pages.generation import generation_pages
from harness.report.pages.model_grid import model_pages
from harness.report.pages.nights_page import nights_view
from harness.report.pages.operator_pages import column_views, operators_view
from harness.report.pages.overview import overview_view
from harness.report.pages.package_page import package_view
from harness.report.pages.page import PAGE_GENERATOR, Pages, write_pages
from harness.report.pages.performance import performance_view
from harness.report.pages.precision_page import precision_view
from harness.report.pages.surfaces_page import surfaces_view
from harness.report.pages.targets_page import targets_view
from harness.report.pages.time_page import time_view
from harness.report.runs.fault_bundle import copy_bundles
from harness.report.view import Report


class SitePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the site, in one file or several.

    Attributes:
        stem: Name of its file without the ending; a second file is named ``stem-2.html``.
        template: Its template, which sees ``report``, ``page``, ``listed`` and its own ``view``.
        views: Returns the view of each file; none if the report has nothing to show on this page.
        listed: Whether the navigation links to it. If not, its files are numbered from 1.
        templates: Folder of its template, if that is not shipped.
    """

    title: str
    stem: str
    template: str
    views: Callable[[Report], Iterable[object]]
    scripts: tuple[str, ...] = ("report.js", "tables.js")
    listed: bool = True
    templates: Path | None = None

    def file(self, number: int) -> str:
        """Return the name of a file; ``number`` counts from 1."""
        return page_file(self.stem, number) if self.listed else f"{self.stem}-{number}.html"


PAGES = (
    SitePage(title="Overview", stem="index", template="page_overview.html", views=overview_view),
    SitePage(title="Targets", stem="targets", template="page_targets.html", views=targets_view),
    SitePage(
        title="Models × targets",  # noqa: RUF001 - a typographic cross
        stem="models",
        template="page_models.html",
        views=model_pages,
        scripts=("report.js", "grid.js", "drawer.js"),
    ),
    SitePage(title="Operators", stem="operators", template="page_operators.html", views=operators_view),
    SitePage(
        title="Operators",
        stem="operators",
        template="page_operators_of.html",
        views=column_views,
        listed=False,
    ),
    SitePage(title="API", stem="api", template="page_api.html", views=surfaces_view),
    SitePage(title="Precision", stem="precision", template="page_precision.html", views=precision_view),
    SitePage(
        title="Performance", stem="performance", template="page_performance.html", views=performance_view
    ),
    SitePage(title="Time", stem="time", template="page_time.html", views=time_view),
    SitePage(title="Generation", stem="generation", template="page_generation.html", views=generation_pages),
    SitePage(title="Package", stem="package", template="page_package.html", views=package_view),
    SitePage(title="Failures", stem="failures", template="page_failures.html", views=failures_view),
    SitePage(title="Faults", stem="faults", template="page_faults.html", views=fault_pages),
    SitePage(title="Depth", stem="depth", template="page_depth.html", views=depth_view),
    SitePage(
        title="Compare",
        stem="compare",
        template="page_compare.html",
        views=compared_columns,
        scripts=("report.js", "compare.js"),
    ),
    SitePage(title="Changes", stem="changes", template="page_changes.html", views=changes_view),
    SitePage(title="Nights", stem="nights", template="page_nights.html", views=nights_view),
    SitePage(title="Details", stem="cells", template="page_cells.html", views=detail_pages),
)
"""Every shipped page, in the order of the navigation."""


def site_pages() -> tuple[SitePage, ...]:
    """Return every page: the shipped ones, and those of other distributions after them.

    Raises:
        UsageError: One of them cannot be loaded.
    """
    return (*PAGES, *(load_registered(REPORT_PAGES, name, SitePage) for name in behind(REPORT_PAGES)))


def write_site(report: Report, out: Path, *, templates: Path | None = None) -> Path:
    """Write every page, and return the first, ``out/index.html``. Files of an earlier report are removed.

    Templates in the folder ``templates`` replace the shipped ones of the same name.

    Raises:
        UsageError: A template is wrong, or ``out`` cannot be written.
    """
    pages = site_pages()
    files = [
        (page, page.file(number), view)
        for page in pages
        for number, view in enumerate(page.views(report), start=1)
    ]
    listed = [page for page in dict.fromkeys(page for page, *_ in files) if page.listed]
    folders = [page.templates for page in pages if page.templates is not None]
    make = partial(Pages(templates, *folders).make, report=report, listed=listed)
    write_pages(
        out,
        (
            (name, make(page.template, scripts=page.scripts, page=page, view=view))
            for page, name, view in files
        ),
    )
    copy_bundles((fault.bundle for fault in report.faults if fault.bundle is not None), out)
    _clear(out, {page.stem for page in pages}, {name for _, name, _ in files})
    return out / "index.html"


def _clear(out: Path, stems: set[str], written: set[str]) -> None:
    """Remove files of an earlier report, to which no page links any more."""
    mark = f'<meta name="generator" content="{PAGE_GENERATOR}">'
    for stem in stems:
        for old in (out / f"{stem}.html", *out.glob(f"{stem}-*.html")):
            if old.name in written or not old.is_file():
                continue
            with old.open(encoding="utf-8", errors="replace") as file:
                ours = mark in file.read(2048)
            if ours:
                old.unlink()
