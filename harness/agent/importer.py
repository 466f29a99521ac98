"""The importer: the first code that a target's Python runs; it makes the agent's other modules importable.

Their sources come with it. They take precedence over installed modules of the same name, which may belong to
another version of this package. A module is compiled on import: modules that a cell does not need cost only
their bytes.
"""

from __future__ import annotations

import binascii
import json
import sys
import zlib
from importlib.machinery import ModuleSpec
from typing import Any


class Importer:
    """Finds and loads modules by full name -> source; a name that is a prefix of others is a package."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources

    def install(self) -> None:
        """Become the first importer, and unload modules of this package that were loaded from elsewhere."""
        for name in [name for name in sys.modules if name.partition(".")[0] == "harness"]:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of a module; the import system passes ``path`` and ``target``."""
        if name not in self.sources:
            return None
        is_package = any(other.startswith(name + ".") for other in self.sources)
        return ModuleSpec(name, self, origin=_file_name(name), is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make an ordinary module."""

    def exec_module(self, module: Any) -> None:
        """Run a module's source."""
        name = module.__name__
        exec(compile(self.sources[name], _file_name(name), "exec", dont_inherit=True), module.__dict__)  # noqa: S102

    def get_source(self, name: str) -> str:
        """Return the source, whose lines a traceback shows."""
        return self.sources[name]


def _file_name(name: str) -> str:
    """Return the file that a traceback names: the module's place in the harness."""
    return name.replace(".", "/") + ".py"


def packed_sources(sources: dict[str, str]) -> str:
    """Return sources as text of a third of their size.

    Each process gets them, and a connection may be slow.
    """
    return binascii.b2a_base64(zlib.compress(json.dumps(sources).encode()), newline=False).decode()


def arrive(text: str) -> None:
    """Unpack the sources from ``packed_sources``, and start the agent."""
    start_agent(json.loads(zlib.decompress(binascii.a2b_base64(text))))


def start_agent(sources: dict[str, str]) -> None:
    """Start the agent from its sources; it greets before it imports numpy."""
    Importer(sources).install()
    from harness.agent.stream import serve

    serve(_main)


def _main(stream: Any) -> None:
    from harness.agent.agent import main

    main(stream)
