"""The sources of an agent, from the harness's own folder."""

from __future__ import annotations

import os
import sys

NOT_PART = (
    "launcher.py",
    "work.py",
    "selection_process.py",
    "__main__.py",
)  # files of the folder that are no part of an agent
LATER = "float64"  # a package that only the harness's own interpreter needs, and then reads from its folder


def sources_in(folder: str, *, later: bool = False) -> dict[str, str]:
    """Return the agent's modules from a folder, or those that it only needs later: full name -> source."""
    sources = {} if later else {"harness": ""}
    for home, _, names in os.walk(folder):
        if later != (os.path.relpath(home, folder).split(os.sep)[0] == LATER):
            continue
        for name in names:
            if name.endswith(".py") and name not in NOT_PART:
                path = os.path.join(home, name)
                parts = os.path.relpath(path, folder)[: -len(".py")].split(os.sep)
                with open(path, encoding="utf-8") as file:
                    sources[".".join(["harness", "agent", *parts]).replace(".__init__", "")] = file.read()
    return dict(sorted(sources.items()))


def add_later(folder: str) -> None:
    """Make the package that does not travel with an agent importable, from the harness's own folder."""
    for finder in sys.meta_path:
        sources = getattr(finder, "sources", None)
        if sources is not None:
            sources.update(sources_in(folder, later=True))
