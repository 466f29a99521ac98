"""Words for another build: the digest of a library changed, whatever its version is."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SHOWN = 12
"""Digits of a digest that messages show."""

_OF_RUNTIME = re.compile(
    r"onnxruntime_pybind11_state|libonnxruntime\.|onnxruntime\.dll|onnxruntime_providers_shared"
)

PLUGIN, RUNTIME = "the plugin", "onnxruntime"


def other_builds(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the libraries that are other builds according to two fingerprints; both sides need digests.

    Such as ``other build of the plugin (libep.so, sha256 0123456789ab... -> ba9876543210...)``.
    """
    before, after = (_table(each.get("sha256")) for each in (old, new))
    plugin = {_name(_table(each.get("plugin")).get("library", "")) for each in (old, new)}
    for name in before:
        if name in after and before[name] != after[name]:
            what = built(name, plugin) or name
            listed = "" if what == name else f"{name}, "
            digests = " -> ".join(f"{str(each)[:_SHOWN]}..." for each in (before[name], after[name]))
            yield f"other build of {what} ({listed}sha256 {digests})"


def built(name: str, plugin: set[str]) -> str:
    """Return the role of a library by its name and the plugin's name: ``PLUGIN``, ``RUNTIME`` or empty."""
    if name in plugin:
        return PLUGIN
    return RUNTIME if _OF_RUNTIME.search(name) else ""


def library_names(paths: tuple[str, ...]) -> set[str]:
    """Return the names of libraries by their paths, of any system."""
    return {_name(path) for path in paths if path}


def _name(path: object) -> str:
    return re.split(r"[/\\]", str(path))[-1]


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
