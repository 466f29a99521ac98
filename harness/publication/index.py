"""The entries of a site's search: names without results, so that it stays small with many submissions."""

from collections.abc import Iterable, Iterator

import msgspec

from harness.conformance.level import case_label
from harness.profiles.profile import Profile
from harness.publication.entry import anchor_of
from harness.publication.lines import Line

KINDS = ("operator", "provider", "profile", "case")
"""The kinds in the order of the list."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the search: its address within the site, and a short description."""

    kind: str
    name: str
    about: str
    href: str


def index_of(lines: Iterable[Line], profiles: Iterable[Profile]) -> tuple[Found, ...]:
    """Return all entries, by kind and name."""
    profiles = tuple(profiles)
    found = [*_operators(profiles), *_providers(lines), *_cases(profiles)]
    for one in profiles:
        href = f"p/{one.label}/index.html"
        found.append(Found(kind="profile", name=one.label, about=one.title, href=href))
    return tuple(sorted(found, key=lambda one: (KINDS.index(one.kind), one.name.casefold(), one.href)))


def _operators(profiles: Iterable[Profile]) -> Iterator[Found]:
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
        href = f"operators.html#op-{op}" if op in alone else f"p/{labels[0]}/index.html#op-several-operators"
        yield Found(kind="operator", name=op, about=", ".join(labels), href=href)


def _providers(lines: Iterable[Line]) -> Iterator[Found]:
    for line in lines:
        said = line.one.statement
        words = (said.product.vendor, said.environment.provider, line.one.device, ", ".join(line.newest))
        about = " · ".join(words)
        yield Found(kind="provider", name=line.current.label, about=about, href=f"l/{line.id}/index.html")


def _cases(profiles: Iterable[Profile]) -> Iterator[Found]:
    for profile in profiles:
        for case in profile.cases:
            label = case_label(case)
            yield Found(
                kind="case",
                name=label,
                about=f"{profile.label} · {', '.join(case.ops)} · {', '.join(case.types)} · {case.feature}",
                href=f"p/{profile.label}/index.html#{anchor_of(label)}",
            )
