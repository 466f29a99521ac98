"""Plugin packages installed in the harness's own interpreter, found without importing them."""

import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.catalog.catalog import Catalog

LIMIT_S = 30.0
"""Most seconds for a package to print its provider's name."""

# A plugin package may have either function; without both it is registered under its own name.
_ASK = """
import importlib, sys
package = importlib.import_module(sys.argv[1])
names = package.get_ep_names() if hasattr(package, "get_ep_names") else [package.get_ep_name()]
sys.stdout.write("\\nEP_HARNESS_NAME=" + str(names[0]) + "\\n")
"""


def installed_plugins(catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Return ``(provider, package)`` for each installed package with ``get_library_path()``, sorted.

    Packages that the catalogue does not have are imported in a process of their own.
    """
    known = {package: each.name for each in catalog.providers for package in each.plugin_packages}
    found = {package for package in known if _source(package) is not None}
    found |= {package for package in _packages() if "def get_library_path" in (_source(package) or "")}
    return tuple(sorted((known.get(package) or _provider(package, catalog), package) for package in found))


def _packages() -> Iterator[str]:
    """Yield the import packages of distributions with ``onnxruntime`` in their name."""
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower().replace("-", "_")
        if "onnxruntime" in name:
            for file in distribution.files or ():
                package, _, rest = file.as_posix().partition("/")
                if rest == "__init__.py" and package != "onnxruntime":
                    yield package


def _source(package: str) -> str | None:
    """Return the source of a package's ``__init__.py``; None if there is no such package."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    try:
        return Path(spec.origin).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _provider(package: str, catalog: Catalog) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - an argument list, never a shell
            [sys.executable, "-c", _ASK, package],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return package
    _, _, name = done.stdout.rpartition("\nEP_HARNESS_NAME=")
    known = catalog.find(name.strip())
    return known.name if known else name.strip() or package
