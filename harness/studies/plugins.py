"""Plugins for the harness's own interpreter: installed packages, and libraries or packages that are named.

None is loaded into this process.
"""

import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

from harness.catalog.catalog import Catalog
from harness.plan.target import is_library

_LIMIT_S = 30.0
"""Most seconds for a package to print its provider's name."""

# A plugin package may have either function; without both it is registered under its own name.
_ASK = """
import importlib, sys
package = importlib.import_module(sys.argv[1])
names = package.get_ep_names() if hasattr(package, "get_ep_names") else [package.get_ep_name()]
sys.stdout.write("\\nEP_HARNESS_NAME=" + str(names[0]) + "\\n")
"""


# A library tells the names of its providers by the devices that it offers.
_ASK_LIBRARY = """
import sys
import onnxruntime as ort
before = {device.ep_name for device in ort.get_ep_devices()}
ort.register_execution_provider_library("ep-harness-asks", sys.argv[1])
names = [device.ep_name for device in ort.get_ep_devices() if device.ep_name not in before]
sys.stdout.write("\\nEP_HARNESS_NAME=" + (names or [""])[0] + "\\n")
"""


def named_plugin(plugin: str, catalog: Catalog) -> str:
    """Return the provider of a package, or of a library by its path; the name of either if it tells none.

    A library that offers no device here, or cannot be loaded, tells no name.
    """
    if is_library(plugin):
        return _asked(_ASK_LIBRARY, plugin, catalog) or PurePath(plugin).stem
    return _provider(plugin, catalog)


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
    return _asked(_ASK, package, catalog) or package


def _asked(program: str, plugin: str, catalog: Catalog) -> str:
    """Return the provider that a process prints, as the catalogue spells it; empty if it prints none."""
    try:
        done = subprocess.run(  # noqa: S603 - an argument list, never a shell
            [sys.executable, "-c", program, plugin],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    name = done.stdout.rpartition("\nEP_HARNESS_NAME=")[2].partition("\n")[0].strip()
    known = catalog.find(name)
    return known.name if known else name
