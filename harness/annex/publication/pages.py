"""The pages of a publisher's site, a function of the submissions and the day alone."""

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

from harness.annex.conformance.waivers import covers
from harness.annex.publication.entry import LEVEL_TONES, LEVEL_WORDS, NO_CASE, AcceptedSubmission, anchor_of
from harness.annex.publication.gather import Gathered
from harness.annex.publication.index import INDEX_KINDS, index_of
from harness.annex.publication.lines import CaseChanges, Line, product_lines, steps_of
from harness.annex.publication.operator_reach import operator_evidence
from harness.annex.publication.profile_cases import ProfileView, archive_of, view_of
from harness.annex.publication.rerun_command import rerun_of
from harness.report.page import Pages

FILTERS = ("report.js", "publication.js")
"""The pages of a publisher's site, a function of only the submissions and the day."""

TABLES = ("report.js", "tables.js", "publication.js")
"""Scripts of pages with a filter and a table that can be sorted."""


class SitePages:
    """Makes the pages; ``today`` decides which waivers count."""

    def __init__(self, gathered: Gathered, title: str, today: dt.date) -> None:
        self.gathered, self.title, self.today = gathered, title, today
        self.lines = product_lines(gathered.entries)
        self._maker = Pages()
        self._maker.environment.filters["anchor"] = anchor_of

    def all(self) -> Iterator[tuple[str, str]]:
        """Yield the name and text of each page."""
        views = tuple(view_of(profile, self.lines) for profile in self.gathered.profiles.values())
        labels = tuple(self.gathered.profiles)
        yield self._page("index.html", "publication_start.html", TABLES, lines=self.lines, labels=labels)
        yield from self._profiles(views)
        yield self._operators()
        index = index_of(self.lines, self.gathered.profiles.values())
        yield self._page("search.html", "publication_search.html", FILTERS, index=index, kinds=INDEX_KINDS)
        if self.gathered.refused:
            refusals = self.gathered.refused
            yield self._page("refused.html", "publication_refused.html", FILTERS[:1], refusals=refusals)
        for line in self.lines:
            steps = steps_of(line)
            name = f"l/{line.id}/index.html"
            yield self._page(name, "publication_line.html", FILTERS[:1], line=line, steps=steps)
            changes = {newer.id: found for newer, found in steps}
            for label in line.newest:
                for entry in line.of_profile(label):
                    yield self._submission(entry, line, changes.get(entry.id))

    def withdrawn(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield pages for addresses of submissions and lines that no longer exist."""
        for name in names:
            kind = "submission" if name.startswith("s/") else "provider"
            yield self._page(name, "publication_withdrawn.html", FILTERS[:1], kind=kind)

    def _page(self, name: str, template: str, scripts: tuple[str, ...], **context: Any) -> tuple[str, str]:
        text = self._maker.make(
            template,
            scripts=scripts,
            title=self.title,
            root="../" * name.count("/"),
            here=name,
            refused=len(self.gathered.refused),
            **context,
        )
        return name, text

    def _profiles(self, views: tuple[ProfileView, ...]) -> Iterator[tuple[str, str]]:
        levels = [*((LEVEL_WORDS[level], tone) for level, tone in LEVEL_TONES.items()), NO_CASE]
        yield self._page(
            "profiles.html", "publication_profiles.html", FILTERS[:1], views=views, levels=levels
        )
        for view in views:
            home = f"p/{view.profile.label}"
            yield self._page(f"{home}/index.html", "publication_profile.html", FILTERS, view=view)
            yield self._page(
                f"{home}/compare.html",
                "publication_compare.html",
                ("report.js", "publication_compare.js"),
                profile=view.profile,
                archive=archive_of(view.profile, self.lines),
            )

    def _operators(self) -> tuple[str, str]:
        columns = [(line, operator_evidence(line)) for line in self.lines]
        names = sorted({name for _, operators in columns for name in operators})
        return self._page(
            "operators.html", "publication_operators.html", TABLES, columns=columns, names=names
        )

    def _submission(
        self, entry: AcceptedSubmission, line: Line, changes: CaseChanges | None
    ) -> tuple[str, str]:
        waivers = entry.statement.waivers
        rows = [
            (
                one,
                entry.reasons.get(one.label, ""),
                [waiver for waiver in waivers if covers(waiver, one.label)],
            )
            for one in entry.not_passed
        ]
        return self._page(
            f"s/{entry.id}/index.html",
            "publication_submission.html",
            FILTERS[:1],
            entry=entry,
            line=line,
            newest=line.newest[entry.profile],
            changes=changes,
            required=[row for row in rows if row[0].required],
            others=[row for row in rows if not row[0].required],
            again=rerun_of(entry),
            today=self.today,
        )
