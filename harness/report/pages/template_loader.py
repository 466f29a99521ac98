"""Templates, compiled once: their byte code is stored beside them, like that of Python's modules."""

import zlib
from collections.abc import Mapping, MutableMapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import jinja2

from harness import __version__

_MADE_BY = f"{jinja2.__version__} {__version__}"
"""What else the compiled code depends on besides the template: other versions compile it again."""


class TemplateLoader(jinja2.FileSystemLoader):
    """Jinja's loader of folders, with Python's own cache of byte code for the shipped one.

    Compiling the templates of a report takes longer than filling them. Jinja's own caches use pickle;
    importlib trusts a file beside the source as much as the source, and obeys ``PYTHONDONTWRITEBYTECODE``.

    Args:
        folders: Folders of templates; the first one that has a template counts.
        shipped: The one of them that belongs to the package. Nothing is written to the others.
    """

    def __init__(self, folders: Sequence[Path], shipped: Path) -> None:
        super().__init__(folders, encoding="utf-8")
        self._shipped = shipped

    def load(
        self,
        environment: jinja2.Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002 - Jinja calls it so
    ) -> jinja2.Template:
        """Return a template.

        Raises:
            jinja2.TemplateError: There is none, or it is wrong.
            UnicodeDecodeError: It is not UTF-8.
        """
        _, path, is_current = self.get_source(environment, name)
        if not Path(path).is_relative_to(self._shipped):
            return super().load(environment, name, globals)
        code: Any = _Compiled(environment, name, path).get_code(name)
        return environment.template_class.from_code(environment, code, globals or {}, is_current)


class _Compiled(SourceFileLoader):
    """A template in place of a Python module."""

    def __init__(self, environment: jinja2.Environment, name: str, path: str) -> None:
        super().__init__(name, path)
        self._environment = environment

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Return time and size, by which importlib recognizes current code; here also the compiler."""
        found = super().path_stats(path)
        return {**found, "mtime": zlib.crc32(f"{found['mtime']} {_MADE_BY}".encode())}

    def source_to_code(self, data: Any, path: Any, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        """Return the code of a template's bytes."""
        return self._environment.compile(data.decode("utf-8"), self.name, str(path))
