"""The pages of a publisher's site, a function of the submissions and the day alone."""

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from harness.annex.conformance.waivers import covers
from harness.annex.publication.devices import SiteDevice, device_id, devices_of, driver_of
from harness.annex.publication.entry import LEVEL_TONES, LEVEL_WORDS, NO_CASE, AcceptedSubmission, anchor_of
from harness.annex.publication.gather import Gathered
from harness.annex.publication.index import INDEX_KINDS, index_of
from harness.annex.publication.lines import Line, changes_between, product_lines, steps_of
from harness.annex.publication.operator_page import operator_views
from harness.annex.publication.product_group import FEW, ProductGroup, product_groups, shared_columns
from harness.annex.publication.profile_cases import (
    ProfileView,
    addresses_by_profile,
    archive_of,
    view_of,
)
from harness.annex.publication.rerun_command import rerun_of
from harness.annex.publication.since_table import TRAIT_KINDS, since_table
from harness.annex.publication.site_file import SiteFile, SiteStates
from harness.annex.publication.version_table import version_tables
from harness.report.cells.report_cell import page_file
from harness.report.pages.page import Pages

FILTERS = ("report.js", "publication.js")
"""Scripts of pages with a filter."""

TABLES = ("report.js", "tables.js", "publication.js")
"""Scripts of pages with a filter and a table that can be sorted."""

_SHOWN_DEVICES = 360
"""Devices that the page of an operator lists in each table, over all products."""

_DEVICES_OF_A_PAGE = 300
"""Devices that one page lists, so that it stays below 300 kB."""


class SitePages:
    """Makes the pages; ``today`` decides which waivers count."""

    def __init__(self, gathered: Gathered, title: str, today: dt.date) -> None:
        self.gathered, self.title, self.today = gathered, title, today
        self.lines = product_lines(gathered.entries)
        self.groups, self.devices = product_groups(self.lines), devices_of(self.lines)
        self.states = SiteStates(title, len(gathered.refused))
        self._maker = Pages()
        self._maker.environment.filters.update(anchor=anchor_of, device_id=device_id, driver=driver_of)

    def all(self) -> Iterator[SiteFile]:
        """Yield each page."""
        few = [line for group in self.groups if not group.is_large for line in group.lines]
        views = tuple(view_of(profile, few) for profile in self.gathered.profiles.values())
        labels = tuple(self.gathered.profiles)
        yield self._page("index.html", "publication_start.html", TABLES, groups=self.groups, labels=labels)
        for group in self.groups:
            if group.is_large:
                yield from self._product(group, labels)
        yield from self._profiles(views)
        yield from self._operators()
        yield self._page(
            "since.html",
            "publication_since.html",
            FILTERS,
            rows=since_table(self.lines),
            kinds=TRAIT_KINDS,
        )
        yield from self._devices()
        found = addresses_by_profile(self.lines, labels)
        scripts = ("report.js", "publication_find.js")
        yield self._page("compare.html", "publication_find.html", scripts, labels=labels, archive=found)
        tables = version_tables(self.lines)
        yield self._page("versions.html", "publication_versions.html", FILTERS, tables=tables)
        index = index_of(self.groups, self.gathered.profiles.values())
        yield self._page("search.html", "publication_search.html", FILTERS, index=index, kinds=INDEX_KINDS)
        if self.gathered.refused:
            refusals = self.gathered.refused
            yield self._page("refused.html", "publication_refused.html", FILTERS[:1], refusals=refusals)
        for line in self.lines:
            name = f"l/{line.id}/index.html"
            yield self._known(
                name, "publication_line.html", self.states.of_line(line), partial(self._line, line)
            )
            for label in line.newest:
                entries = line.of_profile(label)
                for entry, older in itertools.zip_longest(entries, entries[1:]):
                    yield self._submission(entry, line, older)

    def withdrawn(self, names: Iterable[str]) -> Iterator[SiteFile]:
        """Yield pages for addresses of submissions and lines that no longer exist."""
        for name in names:
            kind = {"s": "submission", "l": "provider", "d": "device", "m": "product"}[name[0]]
            yield self._page(name, "publication_withdrawn.html", FILTERS[:1], kind=kind)

    def _page(self, name: str, template: str, scripts: tuple[str, ...], **context: Any) -> SiteFile:
        """Return a page that is made each time."""
        return SiteFile(name, "", lambda: self._make(name, template, scripts, context))

    def _known(
        self,
        name: str,
        template: str,
        state: str,
        context: Callable[[], dict[str, Any]],
        scripts: tuple[str, ...] = FILTERS[:1],
    ) -> SiteFile:
        """Return a page that is made only if its state is new."""
        return SiteFile(name, state, lambda: self._make(name, template, scripts, context()))

    def _make(self, name: str, template: str, scripts: tuple[str, ...], context: dict[str, Any]) -> bytes:
        return self._maker.make(
            template,
            scripts=scripts,
            title=self.title,
            root="../" * name.count("/"),
            here=name,
            refused=len(self.gathered.refused),
            **context,
        ).encode()

    def _profiles(self, views: tuple[ProfileView, ...]) -> Iterator[SiteFile]:
        levels = [*((LEVEL_WORDS[level], tone) for level, tone in LEVEL_TONES.items()), NO_CASE]
        yield self._page(
            "profiles.html", "publication_profiles.html", FILTERS[:1], views=views, levels=levels
        )
        for view in views:
            home = f"p/{view.profile.label}"
            yield self._page(
                f"{home}/index.html",
                "publication_profile.html",
                FILTERS,
                view=view,
                shared=shared_columns(self.groups, view.profile.label),
            )
            yield self._page(
                f"{home}/compare.html",
                "publication_compare.html",
                ("report.js", "compare.js"),
                profile=view.profile,
                archive=archive_of(view.profile, self.lines),
            )

    def _product(self, group: ProductGroup, labels: tuple[str, ...]) -> Iterator[SiteFile]:
        starts = range(0, len(group.lines), _DEVICES_OF_A_PAGE)
        files = [page_file("index", number) for number in range(1, len(starts) + 1)]
        for file, start in zip(files, starts, strict=True):
            lines = group.lines[start : start + _DEVICES_OF_A_PAGE]
            context: Callable[[], dict[str, Any]] = partial(
                dict, group=group, lines=lines, labels=labels, files=files
            )
            shown = len(group.counted), labels, files
            state = self.states.of(group.named, group.id, shown, [self.states.of_line(one) for one in lines])
            yield self._known(f"m/{group.id}/{file}", "publication_product.html", state, context, TABLES)

    def _operators(self) -> Iterator[SiteFile]:
        views = operator_views(self.lines)
        products = sorted({(one.named, one.id) for view in views for one in view.products})
        rows = []
        for view in views:
            by_product = {one.id: one for one in view.products}
            rows.append((view, [by_product.get(key) for _, key in products]))
        listed = [(key, named) for named, key in products]
        yield self._page("operators.html", "publication_operators.html", TABLES, rows=rows, products=listed)
        for view in views:
            name = f"{view.home}/index.html"
            yield self._page(
                name,
                "publication_operator.html",
                TABLES,
                view=view,
                shown=max(FEW, _SHOWN_DEVICES // len(view.products)),
            )

    def _devices(self) -> Iterator[SiteFile]:
        devices = self.devices
        starts = range(0, len(devices), _DEVICES_OF_A_PAGE)
        files = [page_file("devices", number) for number in range(1, len(starts) + 1)] or ["devices.html"]
        for file, start in zip(files, starts or [0], strict=True):
            shown = devices[start : start + _DEVICES_OF_A_PAGE]
            yield self._page(file, "publication_devices.html", TABLES, devices=shown, files=files)
        for device in devices:
            yield self._known(
                f"d/{device.id}/index.html",
                "publication_device.html",
                self.state_of(device),
                partial(dict, device=device),
                TABLES,
            )

    def state_of(self, device: SiteDevice) -> str:
        """Return the state of a device with all its submissions."""
        return self.states.of(device.id, [self.states.of_line(line) for line in device.lines])

    def _line(self, line: Line) -> dict[str, Any]:
        return {"line": line, "steps": steps_of(line)}

    def _submission(
        self, entry: AcceptedSubmission, line: Line, older: AcceptedSubmission | None
    ) -> SiteFile:
        newest, waivers = line.newest[entry.profile], entry.statement.waivers
        day = self.today if waivers else None  # which decides about nothing else
        neighbours = [self.states.of_entry(one) for one in (newest, older) if one is not None]
        state = self.states.of(self.states.of_entry(entry), line.id, day, older is None, neighbours)

        def context() -> dict[str, Any]:
            rows = [
                (
                    one,
                    entry.reasons.get(one.label, ""),
                    [waiver for waiver in waivers if covers(waiver, one.label)],
                )
                for one in entry.not_passed
            ]
            return {
                "entry": entry,
                "line": line,
                "newest": newest,
                "changes": None if older is None else changes_between(older, entry),
                "required": [row for row in rows if row[0].required],
                "others": [row for row in rows if not row[0].required],
                "again": rerun_of(entry),
                "today": self.today,
            }

        return self._known(f"s/{entry.id}/index.html", "publication_submission.html", state, context)
