"""Doors: groups of entry points by which an annex, or another distribution, adds to the harness.

Nothing below the front ends imports an annex: it asks a door for a name.
``pyproject.toml`` registers what ships.
"""

import functools
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from harness.core.errors import UsageError, one_line

SUITES = "ep_harness.suites"
"""Sources of suites, each a ``harness.corpus.suite.SuiteSource``; the name stands before a colon."""

FROZEN_POLICIES = "ep_harness.frozen_policies"
"""How the cases of frozen suites are judged; the name is what stands before a colon in a matrix.

Each is a function of what stands after the colon. It returns the name of the suite in cells, and the
policy of each model and scenario; None if there is no such suite."""

REPORT_PAGES = "ep_harness.report_pages"
"""Pages of a report, each a ``harness.report.site.SitePage``."""

EXPLAINERS = "ep_harness.explainers"
"""What explains the failures of a run when it is over: a ``harness.run.explainer.Explain``."""

Registered = TypeVar("Registered")


@functools.cache
def behind(door: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a door by name, sorted. Loads none of them.

    Raises:
        UsageError: Two distributions have registered one name.
    """
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=door), key=lambda entry: entry.name):
        if found.setdefault(entry.name, entry) != entry:
            what = f"{entry.name!r} is registered as {found[entry.name].value} and as {entry.value}"
            raise UsageError.at(door, what, "uninstall one of the two distributions")
    return found


def load(door: str, name: str, kind: type[Registered]) -> Registered:
    """Return what is registered at a door under a name.

    Raises:
        UsageError: It cannot be imported, or is not of the kind that the door takes.
    """
    entry = behind(door)[name]
    try:
        registered = entry.load()
    except Exception as error:
        what = f"cannot be loaded from {entry.value}: {one_line(repr(error))}"
        raise UsageError.at(f"{door}: {name}", what, _remedy(entry)) from error
    if not isinstance(registered, kind):
        what = f"{entry.value} is of the type {type(registered).__name__}, not {kind.__name__}"
        raise UsageError.at(f"{door}: {name}", what, _remedy(entry))
    return registered


def _remedy(entry: EntryPoint) -> str:
    whose = entry.dist.name if entry.dist is not None else "an unknown distribution"
    return f"the distribution {whose} has registered it: install it again, or uninstall it"
