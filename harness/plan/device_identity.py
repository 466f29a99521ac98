"""What a device is, beyond its name: vendor, numbers, firmware, and the build of its provider."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness.core.records.facts import CPU_PROVIDER
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.plan.surroundings import device_facts, matching_devices

NOT_KNOWN = "not known"

_ARCHITECTURE = re.compile(r"(?:device_?)?arch(?:itecture)?", re.IGNORECASE)
_FIRMWARE = re.compile(r"firmware|(?:^|[_ ])fw[_ ]?ver", re.IGNORECASE)
"""Keys of a device's facts, or names of drivers."""

_BUILT_IN = ("onnxruntime_providers_{}.", "onnxruntime_pybind11_state", "onnxruntime.")
"""Beginnings of the file that has a built-in provider, after ``lib``; the first one that is there counts."""

_SUFFIX = "ExecutionProvider"
_DIGITS = 12
_MOST_CHARS = 200


class DeviceIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the first device of a target; empty if the fingerprint lacks them.

    Attributes:
        vendor: Name of the vendor.
        vendor_id: Number of the vendor, as onnxruntime tells it: decimal. ``device_id`` likewise.
        architecture: As the provider tells it; of a processor else as the system does.
        firmware: Its version; with the names of the facts if there are several.
        build: The provider's own version and the first 12 digits of the SHA-256 of its library.
    """

    vendor: str = ""
    vendor_id: str = ""
    device_id: str = ""
    architecture: str = ""
    firmware: str = ""
    build: str = ""

    def in_words(self) -> Iterator[tuple[str, str]]:
        """Yield each fact with its name in words; ``not known`` for one that is missing."""
        vendor = " ".join(filter(None, (self.vendor, self.vendor_id and f"({self.vendor_id})")))
        yield "Vendor", vendor or NOT_KNOWN
        yield "Device id", self.device_id or NOT_KNOWN
        yield "Architecture", self.architecture or NOT_KNOWN
        yield "Firmware", self.firmware or NOT_KNOWN
        yield "EP build", self.build or NOT_KNOWN


def device_identity_of(
    fingerprint: Mapping[str, Any], chain: Sequence[str], device_filter: Mapping[str, str]
) -> DeviceIdentity:
    """Return the identity of the first device that matches; a wrong type counts as missing."""
    devices = matching_devices(fingerprint, device_filter)
    facts = device_facts(devices[0]) if devices else {}
    is_processor = facts.get("type", "").upper() == "CPU" or (not devices and chain[0] == CPU_PROVIDER)
    told = [value for key, value in facts.items() if _ARCHITECTURE.fullmatch(key) and value]
    machine = str(fingerprint.get("machine") or "") if is_processor else ""
    return DeviceIdentity(
        vendor=_text(facts.get("vendor", "")),
        vendor_id=_number(facts.get("vendor_id", "")),
        device_id=_number(facts.get("device_id", "")),
        architecture=_text(next(iter(told), machine)),
        firmware=_text(_firmware(facts, fingerprint.get("drivers"))),
        build=_text(_build(fingerprint, chain[0], facts.get("version", ""))),
    )


def _text(told: str) -> str:
    return one_line(visible(told), _MOST_CHARS)


def _number(text: str) -> str:
    return "" if text == "0" else _text(text)


def _firmware(facts: Mapping[str, str], drivers: object) -> str:
    listed = drivers if isinstance(drivers, Mapping) else {}
    texts = {**facts, **{str(name): str(version) for name, version in listed.items()}}
    found = {key: value for key, value in texts.items() if _FIRMWARE.search(key) and value}
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return ", ".join(f"{key} {value}" for key, value in found.items())


def _build(fingerprint: Mapping[str, Any], provider: str, version: str) -> str:
    """Return the version that the library tells to onnxruntime, and the digits of the library."""
    digests = fingerprint.get("sha256")
    digest = _digest(fingerprint, provider, digests) if isinstance(digests, Mapping) else ""
    is_plugin = isinstance(fingerprint.get("plugin"), Mapping)
    return " ".join(filter(None, (version if is_plugin else "", digest)))


def _digest(fingerprint: Mapping[str, Any], provider: str, digests: Mapping[str, Any]) -> str:
    plugin = fingerprint.get("plugin")
    if isinstance(plugin, Mapping):
        file = re.split(r"[/\\]", str(plugin.get("library") or ""))[-1]
        return str(digests.get(file, ""))[:_DIGITS]
    name = provider.removesuffix(_SUFFIX).lower()
    for start in (each.format(name) for each in _BUILT_IN):
        for file, digest in digests.items():
            if str(file).removeprefix("lib").startswith(start):
                return str(digest)[:_DIGITS]
    return ""
