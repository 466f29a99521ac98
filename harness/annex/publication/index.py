"""The entries of a site's search: names without results, so that it stays small with many submissions."""

from collections.abc import Iterable, Iterator

import msgspec

from harness.annex.conformance.level import case_label
from harness.annex.conformance.profiles.profile import Profile
from harness.annex.publication.entry import anchor_of
from harness.annex.publication.operator_page import operator_home
from harness.annex.publication.product_group import ProductGroup

INDEX_KINDS = ("operator", "provider", "profile", "case")
"""The kinds in the order of the list."""


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the search: its address within the site, and a short description."""

    kind: str
    name: str
    about: str
    href: str


def index_of(groups: Iterable[ProductGroup], profiles: Iterable[Profile]) -> tuple[IndexEntry, ...]:
    """Return all entries, by kind and name."""
    profiles = tuple(profiles)
    found = [*_operators(profiles), *_providers(groups), *_cases(profiles)]
    for one in profiles:
        href = f"p/{one.label}/index.html"
        found.append(IndexEntry(kind="profile", name=one.label, about=one.title, href=href))
    return tuple(sorted(found, key=lambda one: (INDEX_KINDS.index(one.kind), one.name.casefold(), one.href)))


def _operators(profiles: Iterable[Profile]) -> Iterator[IndexEntry]:
    """Yield each operator, with its table if a case has only this operator, else its first profile."""
    alone: set[str] = set()
    inside: dict[str, list[str]] = {}
    for profile in profiles:
        for case in profile.cases:
            for op in case.ops:
                inside.setdefault(op, [])
                if profile.label not in inside[op]:
                    inside[op].append(profile.label)
            if len(case.ops) == 1:
                alone.update(case.ops)
    for op, labels in inside.items():
        href = (
            f"{operator_home(op)}/index.html"
            if op in alone
            else f"p/{labels[0]}/index.html#op-several-operators"
        )
        yield IndexEntry(kind="operator", name=op, about=", ".join(labels), href=href)


def _providers(groups: Iterable[ProductGroup]) -> Iterator[IndexEntry]:
    groups = tuple(groups)
    for group in groups:
        if group.is_large:
            about = f"{group.named[0]} · {group.named[2]} · {len(group.counted):,} devices"
            href = f"m/{group.id}/index.html"
            yield IndexEntry(kind="provider", name=group.named[1], about=about, href=href)
    for line in (line for group in groups if not group.is_large for line in group.lines):
        said = line.one.statement
        words = (said.product.vendor, said.environment.provider, line.one.device, ", ".join(line.newest))
        about = " · ".join(words)
        yield IndexEntry(
            kind="provider", name=line.current.label, about=about, href=f"l/{line.id}/index.html"
        )


def _cases(profiles: Iterable[Profile]) -> Iterator[IndexEntry]:
    for profile in profiles:
        for case in profile.cases:
            label = case_label(case)
            yield IndexEntry(
                kind="case",
                name=label,
                about=f"{profile.label} · {', '.join(case.ops)} · {', '.join(case.types)} · {case.feature}",
                href=f"p/{profile.label}/index.html#{anchor_of(label)}",
            )
