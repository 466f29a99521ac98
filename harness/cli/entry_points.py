"""What other distributions add: their entry points of a group, found and loaded one by one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from harness.core.errors import HarnessError, UsageError, one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = TypeVar("Kind")


def entry_points_of(group: str) -> Iterator["EntryPoint"]:
    """Yield the entry points of a group; a distribution whose metadata is damaged has none.

    A distribution that is installed twice counts once, as the first one on the path is what is imported.
    """
    from importlib.metadata import distributions  # takes longer than to find a command of ours

    seen = set[str]()
    for distribution in distributions():
        try:
            entries = distribution.entry_points.select(group=group)
            name = distribution.name if entries else ""
        except Exception:  # noqa: BLE001, S112 - of others; their own tools tell what is wrong
            continue
        if entries and name not in seen:
            seen.add(name)
            yield from entries


def load(entry: "EntryPoint", kind: type[Kind], word: str) -> Kind:
    """Return what an entry point names; ``word`` says what that is to be.

    Raises:
        UsageError: It cannot be imported, or is of another kind.
    """
    whose = f"{entry.value} of {distribution_of(entry)}"
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:
        words = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
        what = f"{whose} cannot be imported: {one_line(words, 200)}"
        raise UsageError.at(entry.name, what, "update or uninstall that package") from error
    if not isinstance(loaded, kind):
        what = f"{whose} is no {word}"
        raise UsageError.at(entry.name, what, "tell its authors: docs/how-to/extend.md has what is expected")
    return loaded


def distribution_of(entry: "EntryPoint") -> str:
    """Return name and version of the distribution that has an entry point."""
    return "?" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
