"""Another Python of this machine, started by an agent, with the agent's own modules."""

from __future__ import annotations

import sys
from typing import Any

BOOTSTRAP = "import sys; exec(eval(sys.stdin.buffer.readline()))"
"""The code of a Python that this process starts, and that reads ``program`` from its standard input."""


def program(then: str, needed: str = "harness") -> bytes:
    """Return the line that makes this process's own modules importable in another Python.

    ``then`` is the code that runs with them; ``needed`` is the prefix of the names of the modules that are
    sent.
    """
    loader: Any = sys.modules["harness.agent"].__spec__.loader  # type: ignore[union-attr]  # an Importer
    always = ("harness", "harness.agent", "harness.agent.posix", __name__)
    sources = {
        name: text for name, text in loader.sources.items() if name in always or name.startswith(needed)
    }
    return program_of(sources, loader.sources["harness.agent.importer"], then, loader.folder)


def program_of(sources: dict[str, str], importer: str, then: str, folder: str = "") -> bytes:
    """Return the line that makes modules importable in another Python, and then runs some code."""
    return repr("%s\nImporter(%r, %r).install()\n%s\n" % (importer, sources, folder, then)).encode() + b"\n"
