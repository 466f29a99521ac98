"""The facts that ``where`` of an ``[[expect]]`` entry asks for: the target that ran, by its fingerprint."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness.core.records.facts import CPU_PROVIDER
from harness.plan.known_provider import known_provider

SYSTEMS = {"linux": "linux", "windows": "windows", "macos": "macos", "darwin": "macos"}
"""Beginning of ``platform`` in a fingerprint, in lower case -> the system's name in a matrix."""

_OF_ONE_FAMILY = (("x86_64", "AMD64"), ("aarch64", "arm64"))
"""Names of one architecture on different systems."""

_SOFTWARE = re.compile(
    r"swiftshader|llvmpipe|lavapipe|softpipe|basic render|\bwarp\b|\bpocl\b|portable computing language"
    r"|oclgrind|software (?:adapter|device|render|rasteri)|simulat|emulat",
    re.IGNORECASE,
)
"""Names of devices that are programs."""

_EMULATED = re.compile(r"android virtual|goldfish|ranchu", re.IGNORECASE)
"""Names that an emulated phone reports for its processor."""
_NAME = re.compile(r"(?:full_?)?(?:device_?)?(?:name|description)|product", re.IGNORECASE)
"""Facts of a device that contain its name."""

_PACKAGES_OF_JAVASCRIPT = ("onnxruntime-web", "onnxruntime-node")


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a target where it ran; empty or None if the fingerprint lacks them.

    Attributes:
        onnxruntime: The release of the runtime.
        ep_version: The version of the plugin, or of the runtime that the provider is built into.
        drivers: Name -> version in the words of the system.
        devices: The known facts of the devices that match the target's filter, each separately.
        architecture: The names of the processor's architecture.
        os: ``linux``, ``windows`` or ``macos``.
        features: The processor's features that change numerics; None if the agent cannot list them.
        simulator: Whether a program stands for the accelerator.
        simulated_by: The name of this program, if known; empty without one.
        device: The name of the first device that matches; else its vendor and type.
        device_types: The types of the devices that match, in upper case.
        accelerated: Whether a device other than the processor computes, with no program in its place.
    """

    onnxruntime: str = ""
    ep_version: str = ""
    drivers: dict[str, str] = {}
    devices: tuple[str, ...] = ()
    architecture: tuple[str, ...] = ()
    os: str = ""
    features: frozenset[str] | None = None
    simulator: bool | None = None
    simulated_by: str = ""
    device: str = ""
    device_types: frozenset[str] = frozenset()
    accelerated: bool = False


def surroundings_of(
    fingerprint: Mapping[str, Any], chain: Sequence[str], device_filter: Mapping[str, str]
) -> Surroundings:
    """Return the facts of a fingerprint; a wrong type counts as missing.

    ``chain`` and ``device_filter`` are the providers and the device of the target.
    """
    processor = _table(fingerprint.get("processor"))
    devices = matching_devices(fingerprint, device_filter)
    facts = [device_facts(each) for each in devices]
    machine = str(fingerprint.get("machine", ""))
    names = next((names for names in _OF_ONE_FAMILY if machine in names), (machine,))
    features = processor.get("features")
    simulated_by = _simulated_by(chain, devices, facts, str(processor.get("model", "")))
    own_processor = [str(processor.get("model", ""))] if chain[0] == CPU_PROVIDER else []
    types = frozenset(each.get("type", "").upper() for each in facts)
    return Surroundings(
        onnxruntime=str(fingerprint.get("onnxruntime", "")),
        ep_version=_ep_version(fingerprint, devices),
        drivers=_drivers(fingerprint, facts),
        devices=tuple(filter(None, (*(value for each in facts for value in each.values()), *own_processor))),
        architecture=tuple(filter(None, names)),
        os=_system(str(fingerprint.get("platform", ""))),
        features=frozenset(map(str, features)) if isinstance(features, list | tuple) else None,
        simulator=None if simulated_by is None else bool(simulated_by),
        simulated_by=simulated_by or "",
        device=_name(facts[0], str(processor.get("model", ""))) if facts else " ".join(own_processor),
        device_types=types,
        accelerated=bool(types) and types != {"CPU"} and not simulated_by and not own_processor,
    )


def matching_devices(
    fingerprint: Mapping[str, Any], device_filter: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """Return the devices of a fingerprint that match a filter; the one of its number, if it has one."""
    wanted = dict(device_filter)
    number = wanted.pop("number", None)
    found = []
    for device in _devices(fingerprint):
        facts = device_facts(device)
        if all(facts.get(key, "").lower() == str(value).lower() for key, value in wanted.items()):
            found.append(device)
    return found if number is None else [each for at, each in enumerate(found, 1) if str(at) == number]


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _devices(fingerprint: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = fingerprint.get("devices")
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list | tuple) else []


def device_facts(device: Mapping[str, Any]) -> dict[str, str]:
    """Return the known facts of a device: what its provider tells, then what onnxruntime does."""
    return dict(_facts(device))


def _facts(device: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for part in ("metadata", "device"):
        for key, value in _table(device.get(part)).items():
            if value is not None and not str(key).endswith("path"):
                yield str(key), str(value)


def _name(facts: Mapping[str, str], processor: str) -> str:
    """Return the name of a device by its facts; one of type CPU is the processor."""
    named = (value for key, value in facts.items() if _NAME.fullmatch(key) and value)
    own = processor if facts.get("type", "").upper() == "CPU" else ""
    kind = " ".join(filter(None, (facts.get("vendor", ""), facts.get("type", ""))))
    return next(named, "") or own or kind


def _ep_version(fingerprint: Mapping[str, Any], devices: list[Mapping[str, Any]]) -> str:
    plugin = fingerprint.get("plugin")
    if isinstance(plugin, Mapping):
        told = (plugin.get("version"), *(_table(each.get("metadata")).get("version") for each in devices))
        return str(next(filter(None, told), ""))
    packages = _table(fingerprint.get("packages"))
    of_javascript = (packages.get(name) for name in _PACKAGES_OF_JAVASCRIPT)
    return str(next(filter(None, of_javascript), "") or fingerprint.get("onnxruntime", ""))


def _drivers(fingerprint: Mapping[str, Any], facts: list[dict[str, str]]) -> dict[str, str]:
    found = {str(name): str(version) for name, version in _table(fingerprint.get("drivers")).items()}
    for each in facts:
        found |= {key: value for key, value in each.items() if "driver" in key.lower() and value}
    return found


def _system(platform: str) -> str:
    text = platform.lower()
    return next((name for start, name in SYSTEMS.items() if text.startswith(start)), "")


def _simulated_by(
    chain: Sequence[str], devices: list[Mapping[str, Any]], facts: list[dict[str, str]], processor: str
) -> str | None:
    """Return what stands in for the accelerator, empty if it is a real one; None if no device is known.

    The processor also stands in if the provider drives only GPUs or NPUs: QNN's HTP library for x86-64, and
    the software adapters of WebGPU, offer a device of type CPU.
    """
    if chain[0] != CPU_PROVIDER and _EMULATED.search(processor):
        return processor
    if not devices:
        return "" if chain[0] == CPU_PROVIDER else None
    named = (value for each in facts for value in each.values() if _SOFTWARE.search(value))
    if name := next(named, ""):
        return name
    known = known_provider(list(chain))
    types = {each.get("type", "").upper() for each in facts}
    if known is not None and known.kind in ("gpu", "npu") and types == {"CPU"}:
        return f"the processor, in place of {'a GPU' if known.kind == 'gpu' else 'an NPU'}"
    return ""
