"""Doors: names at which an annex of ours, or another distribution, adds to the harness.

Nothing below the front ends imports an annex: it asks a door for a name, and what is there is imported then.

Our own are a table, not entry points of our distribution: a checkout that runs without being installed has no
entry points, and an editable one has those of the day of its installation. Nobody can replace one of ours.
Other distributions add theirs by entry points of the group that has the door's name: docs/how-to/extend.md.
"""

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from harness.core.text.errors import HarnessError, UsageError, one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "ep_harness.commands"
"""Commands, each a ``harness.cli.command_type.Command``; ours are in ``harness.cli.commands``."""

SUITES = "ep_harness.suites"
"""Sources of suites, each a ``harness.corpus.suites.suite.SuiteSource``; the name stands before a colon."""

FROZEN_POLICIES = "ep_harness.frozen_policies"
"""How the cases of frozen suites are judged; the name is what stands before a colon in a matrix.

Each is a function of what stands after the colon. It returns the name of the suite in cells, and the
policy of each model and scenario; None if there is no such suite."""

REPORT_PAGES = "ep_harness.report_pages"
"""Pages of a report, each a ``harness.report.site.SitePage``."""

SCHEDULERS = "ep_harness.schedulers"
"""Systems that number the jobs of an array, each a ``harness.plan.auto_shard.Counter``: `--shard auto`."""

_OWN: dict[str, dict[str, str]] = {
    SUITES: {
        "fuzz": "harness.annex.made.made_suites:FUZZ_SUITES",
        "generate": "harness.annex.made.made_suites:DECODER_SUITE",
        "profile": "harness.annex.conformance.profiles.profile_suite:SOURCE",
        "zoo": "harness.annex.made.made_suites:ZOO_SUITE",
    },
    REPORT_PAGES: {"ship": "harness.annex.advise.ship_page:SHIP_PAGE"},
    FROZEN_POLICIES: {"profile": "harness.annex.conformance.profiles.profile_suite:frozen_policies"},
}
"""Door -> name -> module and attribute, as an entry point has them."""

_Registered = TypeVar("_Registered")


class Entry(NamedTuple):
    """What is registered: ``value`` is its module and attribute, ``whose`` the distribution that has it."""

    value: str
    whose: str


def behind(door: str) -> Mapping[str, tuple[Entry, ...]]:
    """Return what is registered at a door, by sorted names; several entries if distributions share a name."""
    found = {name: (Entry(value, ""),) for name, value in _OWN.get(door, {}).items()}
    others: dict[str, tuple[Entry, ...]] = {}
    for entry in _entry_points(door):
        if entry.name not in found:
            others[entry.name] = (*others.get(entry.name, ()), Entry(entry.value, _whose(entry)))
    return dict(sorted({**found, **others}.items()))


def load_registered(door: str, name: str, kind: type[_Registered]) -> _Registered:
    """Import what is registered at a door under a name.

    Raises:
        UsageError: It cannot be imported, or is not of the kind that the door takes, or several distributions
            have registered the name.
    """
    entries = behind(door)[name]
    if len(entries) > 1:
        whose = ", ".join(entry.whose for entry in entries)
        raise UsageError.at(name, f"several packages have this name: {whose}", "uninstall one")
    (entry,) = entries
    module, _, attribute = entry.value.partition(":")
    try:
        registered = functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as error:
        if not entry.whose:
            raise
        words = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
        what = f"{entry.value} of {entry.whose} cannot be imported: {one_line(words, 200)}"
        raise UsageError.at(name, what, "update or uninstall that package") from error
    if not isinstance(registered, kind):
        what = f"{entry.value} of {entry.whose} is of the type {type(registered).__name__}"
        hint = "tell its authors: docs/how-to/extend.md has what is expected"
        raise UsageError.at(name, what, hint)
    return registered


def _entry_points(door: str) -> Iterator["EntryPoint"]:
    """Yield what other distributions register; a distribution whose metadata is damaged has nothing.

    A distribution that is installed twice counts once, as the first one on the path is what is imported.
    """
    from importlib.metadata import distributions  # takes longer than all else here

    seen = set[str]()
    for distribution in distributions():
        try:
            entries = distribution.entry_points.select(group=door)
            name = distribution.name if entries else ""
        except Exception:  # noqa: BLE001, S112 - of others; their own tools tell what is wrong
            continue
        if entries and name not in seen:
            seen.add(name)
            yield from entries


def _whose(entry: "EntryPoint") -> str:
    return "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
