"""The published facts about the target and its machine, without anything that identifies their owner."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import PurePath, PureWindowsPath
from typing import Any

from harness.annex.triage.bundle_model import BundleContents
from harness.annex.triage.manifest import BundledPlugin, BundledTarget, FaultEnvironment
from harness.annex.triage.scrub import Scrubber
from harness.core.records.cell import Cell
from harness.plan.target import LIBRARY_SUFFIXES

_RELEVANT = re.compile("onnx|^numpy$", re.IGNORECASE)


def target_with_options(contents: BundleContents, scrub: Scrubber) -> BundledTarget:
    """Return the target with the options of the cell."""
    target = contents.target
    cell = Cell(suite="", model="", target=target.name, axes=tuple(sorted(contents.axes.items())))
    return BundledTarget(
        name=scrub(target.name),
        provider=target.provider,
        plugin=_plugin(contents, scrub),
        device=scrub.table(target.device),
        options=scrub.table(target.options_at(cell)),
        env=scrub.table(target.env),
    )


def fault_environment_of(fingerprint: Mapping[str, Any], scrub: Scrubber) -> FaultEnvironment:
    """Return the published facts about an environment: versions, system and hardware.

    Any part of it may be missing.
    """
    packages = fingerprint.get("packages")
    processor = fingerprint.get("processor")
    return FaultEnvironment(
        onnxruntime=_text(fingerprint.get("onnxruntime")),
        python=_text(fingerprint.get("python")),
        packages={
            str(name): str(version)
            for name, version in sorted((packages if isinstance(packages, Mapping) else {}).items())
            if _RELEVANT.search(str(name))
        },
        os=scrub(_text(fingerprint.get("platform"))),
        architecture=_text(fingerprint.get("machine")),
        processor=scrub(_text(processor.get("model")) if isinstance(processor, Mapping) else ""),
        devices=tuple(_devices(fingerprint, scrub)),
        libraries={scrub(name): digest for name, digest in _digests(fingerprint).items()},
    )


def _plugin(contents: BundleContents, scrub: Scrubber) -> BundledPlugin | None:
    plugin = contents.target.plugin
    if plugin is None:
        return None
    told = contents.fingerprint.get("plugin")
    told = told if isinstance(told, Mapping) else {}
    is_library = "/" in plugin or "\\" in plugin or plugin.lower().endswith(LIBRARY_SUFFIXES)
    library = str(contents.library or told.get("library") or (plugin if is_library else ""))
    path = PureWindowsPath(library) if "\\" in library else PurePath(library)
    digest = _digests(contents.fingerprint).get(path.name, "")
    if not digest and contents.library is not None:
        with contents.library.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BundledPlugin(
        package="" if is_library else plugin,
        library=scrub(path.name),
        version=_text(told.get("version")),
        sha256=digest,
    )


def _devices(fingerprint: Mapping[str, Any], scrub: Scrubber) -> list[dict[str, str]]:
    devices = fingerprint.get("devices")
    found = []
    for one in devices if isinstance(devices, list | tuple) else ():
        device = one.get("device") if isinstance(one, Mapping) else None
        if isinstance(device, Mapping):
            found.append({str(key): scrub(str(value)) for key, value in device.items()})
    return found


def _digests(fingerprint: Mapping[str, Any]) -> dict[str, str]:
    told = fingerprint.get("sha256")
    return {str(key): str(one) for key, one in told.items()} if isinstance(told, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
