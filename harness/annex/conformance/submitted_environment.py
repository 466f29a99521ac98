"""The environment of a run, from its agent's fingerprint: ``Statement.environment``."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.annex.conformance.submission import SubmittedEnvironment
from harness.annex.conformance.submission_scrub import without_folders
from harness.core.records.facts import CPU_PROVIDER
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible

_ABOUT_DEVICE = ("type", "vendor", "architecture", "device", "description", "vendor_id", "device_id")
"""Facts of a device in a line, in this order."""

_ABOUT_METADATA = ("name", "Description", "description")


def submitted_environment_of(provider: str, fingerprint: Mapping[str, Any]) -> SubmittedEnvironment:
    """Return the environment of a run; ``fingerprint`` is empty if the target's process never answered."""
    return SubmittedEnvironment(
        provider=provider,
        provider_options=harmless_texts(fingerprint.get("options")),
        runtime=next((name for name in ("browser", "node") if name in fingerprint), "python"),
        onnxruntime=_text(fingerprint.get("onnxruntime", "")),
        libraries=harmless_texts(fingerprint.get("sha256")),
        devices=tuple(dict.fromkeys(_devices(provider, fingerprint))),
        drivers=harmless_texts(fingerprint.get("drivers")),
        packages=harmless_texts(fingerprint.get("packages")),
        platform=_platform(fingerprint),
    )


def version_of(environment: SubmittedEnvironment, fingerprint: Mapping[str, Any]) -> str:
    """Return the version of a product: of the plugin, of a JavaScript package, or of onnxruntime.

    A bare library has the version that it reports to onnxruntime, never onnxruntime's own: otherwise two of
    its releases would be one in a table.
    """
    plugin = fingerprint.get("plugin")
    if isinstance(plugin, dict):
        metadata = (each.get("metadata") or {} for each in fingerprint.get("devices") or [])
        told = (plugin.get("version"), *(each.get("version") for each in metadata))
        return _text(next(filter(None, told), "")) or "unknown"
    web = (environment.packages.get(name) for name in ("onnxruntime-web", "onnxruntime-node"))
    return _text(next(filter(None, web), "") or environment.onnxruntime) or "unknown"


def _devices(provider: str, fingerprint: Mapping[str, Any]) -> Iterator[str]:
    listed = fingerprint.get("devices") or []
    for each in listed:
        device, metadata = each.get("device") or {}, each.get("metadata") or {}
        words = [*_words(device, _ABOUT_DEVICE), *_words(metadata, _ABOUT_METADATA)]
        if words:
            yield _text(" ".join(words))
    processor = fingerprint.get("processor") or {}
    if not listed and provider == CPU_PROVIDER and processor.get("model"):
        yield _text(f"CPU {processor['model']}")


def _words(table: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        value = str(table.get(key, "")).strip()
        if value:
            yield f"{key} {value}" if key.endswith("_id") else value


def _platform(fingerprint: Mapping[str, Any]) -> str:
    system, machine = (_text(fingerprint.get(key, "")) for key in ("platform", "machine"))
    return system if machine in system else f"{system} {machine}".strip()


def harmless_texts(table: Any) -> dict[str, str]:
    """Return a table of a fingerprint or matrix in a statement's form: harmless texts, without folders."""
    if not isinstance(table, dict):
        return {}
    return {_text(key): _text(value) for key, value in sorted(table.items())}


def _text(value: object) -> str:
    return one_line(visible(without_folders(str(value))), 1000)
