"""The packages installed in the target's Python: their versions, and which of them own onnxruntime."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any

_DESCRIPTION = re.compile(r"(.*)\.(?:dist|egg)-info", re.IGNORECASE)
"""The folder with the description of an installed package, beside the packages."""

_OF_RUNTIME = re.compile(r"onnx|numpy", re.IGNORECASE)
"""Part of the names of packages that matter; reading all takes longer than importing onnxruntime."""

_HEADER = re.compile(r"^(Name|Version):[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)


def describe_packages() -> dict[str, Any]:
    """Return the installed versions; if several distributions own ``onnxruntime``, their names too.

    A folder of the search path hides packages in a later one, so only distributions in one folder overwrite
    each other.
    """
    packages: dict[str, str] = {}
    owners: dict[str, list[str]] = {}
    for folder, stem in _descriptions():
        if not _OF_RUNTIME.search(stem):
            continue
        headers = _headers(folder)
        name = headers.get("Name", "")
        if "onnx" in name.lower() or name.lower() == "numpy":
            packages.setdefault(name, headers.get("Version", ""))  # none if pip left a broken installation
        if name.lower().startswith("onnxruntime"):
            # Search the text: parsing it as a table takes longer than importing onnxruntime.
            files = "\n" + _text(folder, "RECORD").replace("\\", "/")
            if "\nonnxruntime/__init__.py," in files:
                owners.setdefault(os.path.dirname(folder), []).append(name)
    used = next(iter(owners.values()), [])
    return {"packages": packages, **({"owners": used} if len(used) > 1 else {})}


def installed_version(name: str) -> str:
    """Return the version of a distribution, by its name or that of its package; empty if it is not there."""
    wanted = _normalized(name)
    for folder, stem in _descriptions():
        if _normalized(stem.partition("-")[0]) == wanted:
            return _headers(folder).get("Version", "")
    return ""


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _descriptions() -> Iterator[tuple[str, str]]:
    """Yield the folders that describe installed packages, as ``importlib.metadata`` finds them.

    Beside each its name without the suffix. Importing that module took a tenth of the start of an agent.
    """
    for path in dict.fromkeys(sys.path):
        try:
            names = os.listdir(path or os.curdir)
        except OSError:
            continue
        for name in names:
            match = _DESCRIPTION.fullmatch(name)
            if match:
                yield os.path.join(path, name), match.group(1)


def _headers(folder: str) -> dict[str, str]:
    """Return the name and the version of a described package."""
    text = _text(folder, "METADATA") or _text(folder, "PKG-INFO")
    return dict(reversed(_HEADER.findall(text.partition("\n\n")[0])))  # the first of each counts


def _text(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
