"""Version and library of an EP, from the fingerprint of its target."""

from collections.abc import Mapping, Sequence
from pathlib import PureWindowsPath

from harness.core.text.errors import one_line

VERSION_CHARS = 60


def library_of(fingerprint: Mapping[str, object], provider: str) -> str:
    """Return version and library of the EP; for a part of onnxruntime, that fact.

    The version is that of its package, else the one that it reports itself.
    """
    plugin = fingerprint.get("plugin")
    if not isinstance(plugin, Mapping) or not plugin.get("library"):
        version = fingerprint.get("onnxruntime")
        return f"of onnxruntime {version}" if version else ""
    if plugin.get("version"):
        return str(plugin["version"])
    file = PureWindowsPath(str(plugin["library"])).name
    version = _told_version(fingerprint.get("devices"), provider)
    return f"{version} ({file})" if version else f"({file})"


def _told_version(devices: object, provider: str) -> str:
    """Return the version that a plugin reports in the metadata of its devices; empty if there is none."""
    for device in devices if isinstance(devices, Sequence) else ():
        metadata = device.get("metadata") if isinstance(device, Mapping) else None
        if isinstance(metadata, Mapping) and device.get("provider") == provider and metadata.get("version"):
            return one_line(metadata["version"], VERSION_CHARS)
    return ""
