"""What the scenario ``dynamic_options`` sets on a target: what the catalogue documents of its provider."""

from typing import Any

from harness.catalog.catalog import find_provider
from harness.catalog.option import DynamicOption
from harness.plan.target import Target

_GENERAL = (("ep.dynamic.workload_type", ("Default", "Efficient")),)
"""Onnxruntime's own key, for a provider outside the catalogue: it may refuse it."""


def settings_of_dynamic_options(target: Target) -> dict[str, Any]:
    """Return the settings of the scenario: keys with their values, and what becomes of an unknown key."""
    provider = find_provider(target.provider[0])
    return {
        "options": [[key, list(values)] for key, values in dynamic_options_of(target)],
        "documented": provider is not None,
        "unknown": "unconfirmed" if provider is None else provider.unknown_dynamic_options,
    }


def dynamic_options_of(target: Target) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the keys that a target has, with their values, the default first."""
    provider = find_provider(target.provider[0])
    if provider is None:
        return _GENERAL
    return tuple((option.key, option.values) for option in provider.dynamic_options if _has(target, option))


def _has(target: Target, option: DynamicOption) -> bool:
    """Return whether the device of a target has an option, as far as the matrix names the device."""
    named = {
        str(value).partition(".")[0].upper()
        for value in (target.device.get("type"), target.options.get("device_type"))
        if value
    }
    return not option.devices or not named.isdisjoint(option.devices)
