"""Plugin libraries of execution providers, and their devices."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from harness.agent.installed_packages import installed_version
from harness.agent.safe_text import clean
from harness.agent.target_errors import UnavailableError


def plugin_library(plugin: str) -> tuple[str, str]:
    """Return path and version of a plugin that is given as an import package or as a path.

    Raises:
        UnavailableError: There is no such plugin, or it cannot be imported.
    """
    if os.sep in plugin or "/" in plugin or plugin.lower().endswith((".so", ".dll", ".dylib")):
        path = os.path.abspath(os.path.expanduser(plugin))
        if not os.path.isfile(path):
            raise UnavailableError("not_installed", "no plugin library at %s" % path)
        return path, ""
    try:
        module = importlib.import_module(plugin)
        # By convention get_library_path; onnxruntime-ggml 0.2.0 has the other name.
        named = hasattr(module, "get_library_path") or not hasattr(module, "library_path")
        path = str(module.get_library_path() if named else module.library_path())
    except ModuleNotFoundError as error:
        raise UnavailableError(
            "not_installed", "plugin package %r is not installed in %s" % (plugin, sys.prefix)
        ) from error
    except Exception as error:
        raise UnavailableError("import_failed", "plugin package %r: %s" % (plugin, clean(error))) from error
    return path, installed_version(plugin) or str(getattr(module, "__version__", ""))


def describe_device(device: Any) -> dict[str, Any]:
    """Return an ``OrtEpDevice`` as plain values."""
    hardware = device.device
    return {
        "provider": device.ep_name,
        "device": {
            "type": str(hardware.type).rsplit(".", 1)[-1],
            "vendor": hardware.vendor,
            "vendor_id": str(hardware.vendor_id),
            "device_id": str(hardware.device_id),
            **{str(key): str(value) for key, value in hardware.metadata.items()},
        },
        "metadata": {str(key): str(value) for key, value in device.ep_metadata.items()},
    }


_NUMBER = "number"
"""The key of a device filter that is no fact: which of the devices that match otherwise, from 1."""


def chosen_device(offered: list[Any], device_filter: dict[str, str]) -> list[Any]:
    """Return the first of the offered devices that match, or the one of the filter's number; none if none is.

    The hardware's facts or the provider's metadata have every value of the filter. Two devices of one kind
    have equal facts, so a number has to tell them apart.
    """
    wanted = dict(device_filter)
    number = str(wanted.pop(_NUMBER, 1))
    found = []
    for device in offered:
        described = describe_device(device)
        facts = {**described["metadata"], **described["device"]}
        if all(facts.get(key, "").lower() == str(value).lower() for key, value in wanted.items()):
            found.append(device)
    return [device for at, device in enumerate(found, 1) if str(at) == number]


def device_words(device: Any) -> str:
    """Return a device in words, such as ``NPU 1 of Crooked``."""
    told = describe_device(device)["device"]
    vendor = told["vendor"] or told["vendor_id"]
    return clean("%s %s of %s" % (told["type"], told["device_id"], vendor), limit=200)


def memory_words(info: Any) -> str:
    """Return the name, the number and, if there is one, the vendor of an ``OrtMemoryInfo``."""
    vendor = getattr(info, "device_vendor_id", 0)
    words = "%s %s" % (info.name, info.device_id)
    return clean("%s of vendor 0x%x" % (words, vendor) if vendor else words, limit=200)


def own_memory(ort: Any, device: Any) -> str:
    """Return the memory of an ``OrtEpDevice`` in words; empty if it has none, or nothing tells."""
    kinds = getattr(ort, "OrtDeviceMemoryType", None)
    if kinds is None or not hasattr(device, "memory_info"):
        return ""
    info = device.memory_info(kinds.DEFAULT)
    return "" if info is None else memory_words(info)
