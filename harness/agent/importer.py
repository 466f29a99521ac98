"""The importer: the first code that a target's Python runs; it makes the agent's other modules importable.

Their sources come with it. They take precedence over installed modules of the same name, which may belong to
another version of this package. A module is compiled on import: modules that a cell does not need cost only
their bytes. On the harness's own machine, a file that was compiled before from the same source saves that.
"""

from __future__ import annotations

import binascii
import gc
import json
import os
import sys
import zlib
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType
from typing import Any


class Importer:
    """Finds and loads modules by full name -> source; a name that is a prefix of others is a package.

    ``folder`` is that of ``harness.agent`` if this machine has it, else empty.
    """

    def __init__(self, sources: dict[str, str], folder: str = "") -> None:
        self.sources = sources
        self.folder = folder

    def install(self) -> None:
        """Become the first importer, and unload modules of this package that were loaded from elsewhere."""
        for name in [name for name in sys.modules if name.partition(".")[0] == "harness"]:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of a module; the import system passes ``path`` and ``target``."""
        if name not in self.sources:
            return None
        return ModuleSpec(name, self, origin=_file_name(name), is_package=self._is_package(name))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make an ordinary module."""

    def exec_module(self, module: Any) -> None:
        """Run a module's source."""
        name = module.__name__
        code = self._compiled_before(name)
        if code is None:
            code = compile(self.sources[name], _file_name(name), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102

    def get_source(self, name: str) -> str:
        """Return the source, whose lines a traceback shows."""
        return self.sources[name]

    def _is_package(self, name: str) -> bool:
        return any(other.startswith(name + ".") for other in self.sources)

    def _compiled_before(self, name: str) -> CodeType | None:
        """Return the code that Python keeps beside the module's file here, if the file has this source."""
        if not self.folder:
            return None
        parts = name.split(".")[2:] + (["__init__"] if self._is_package(name) else [])
        path = os.path.join(self.folder, *parts) + ".py"
        try:
            with open(path, encoding="utf-8") as file:
                is_same = file.read() == self.sources[name]
            code = SourceFileLoader(name, path).get_code(name) if is_same else None
        except (OSError, ValueError, ImportError, EOFError):
            return None
        return code and _with_file_name(code, _file_name(name))


def _with_file_name(code: CodeType, name: str) -> CodeType:
    """Return code whose tracebacks name another file."""
    inner = (_with_file_name(part, name) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=name, co_consts=tuple(inner))


def _file_name(name: str) -> str:
    """Return the file that a traceback names: the module's place in the harness."""
    return name.replace(".", "/") + ".py"


def packed_sources(sources: dict[str, str]) -> str:
    """Return sources as text of a third of their size.

    Each process gets them, and a connection may be slow.
    """
    return binascii.b2a_base64(zlib.compress(json.dumps(sources).encode()), newline=False).decode()


def arrive(text: str, folder: str) -> None:
    """Unpack the sources from ``packed_sources``, and start the agent."""
    start_agent(json.loads(zlib.decompress(binascii.a2b_base64(text))), folder)


def start_agent(sources: dict[str, str], folder: str) -> None:
    """Start the agent from its sources; it greets before it imports numpy."""
    Importer(sources, folder).install()
    from harness.agent.stream import serve

    serve(_main)


def _main(stream: Any) -> None:
    gc.disable()  # what imports make is no garbage: to look for it takes a tenth of importing numpy
    from harness.agent.agent import main

    gc.enable()
    main(stream)
