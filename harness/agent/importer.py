"""The importer: what a target's Python executes first, so that it can import the agent's other modules.

Their sources come with it. They are found before anything of the same name that is installed in the target,
which may be another version of this package, and compiled when somebody imports them: what a cell does not
need costs a process nothing but the bytes.
"""

from __future__ import annotations

import binascii
import json
import sys
import zlib
from importlib.machinery import ModuleSpec
from typing import Any


class Importer:
    """Finds and loads modules whose sources are in memory.

    Args:
        sources: The source of each module by its full name; one that others lie under is a package.
    """

    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources

    def install(self) -> None:
        """Be the first to be asked, and forget what others have said before."""
        for name in [name for name in sys.modules if name.partition(".")[0] == "harness"]:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Tell the import system of a module; ``path`` and ``target`` are its protocol's."""
        if name not in self.sources:
            return None
        is_package = any(other.startswith(name + ".") for other in self.sources)
        return ModuleSpec(name, self, origin=self.file_name(name), is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system to make an ordinary module."""

    def exec_module(self, module: Any) -> None:
        """Run a module's source."""
        name = module.__name__
        exec(compile(self.sources[name], self.file_name(name), "exec", dont_inherit=True), module.__dict__)  # noqa: S102

    def get_source(self, name: str) -> str:
        """The source, for the lines that a traceback shows."""
        return self.sources[name]

    def file_name(self, name: str) -> str:
        """The file that a traceback names: where the module is in the harness."""
        return name.replace(".", "/") + ".py"


def arrive(channel: Any, packed: str) -> None:
    """Unpack the sources that ``harness.engine.agent_source`` has packed, and begin to serve."""
    Importer(json.loads(zlib.decompress(binascii.a2b_base64(packed)))).install()
    from harness.agent.agent import main
    from harness.agent.message import Line

    main(Line(channel))
