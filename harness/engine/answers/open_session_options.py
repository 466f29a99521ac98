"""Settings of scenarios that follow from a target: what the catalogue documents of its provider."""

from collections.abc import Callable, Mapping
from typing import Any

from harness.catalog.catalog import find_provider
from harness.catalog.option import DynamicOption
from harness.core.records.scenario import CAPTURE, DYNAMIC_OPTIONS
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


def settings_of_capture(target: Target) -> dict[str, Any]:
    """Return the option that makes the provider capture graphs; none if the catalogue has no such."""
    found = graph_capture_of(target)
    return {"option": [found[0], "1"]} if found else {}


def graph_capture_of(target: Target) -> tuple[str, ...]:
    """Return the option with which a target captures graphs, and where values are bound; empty for none.

    For a provider outside the catalogue it is an option of the target with ``graph_capture`` in its name.
    """
    provider = find_provider(target.provider[0])
    if provider is None:
        return next(((key, "cpu") for key in target.options if "graph_capture" in key), ())
    if not provider.graph_capture:
        return ()
    return provider.graph_capture, provider.binding_device or "cpu"


PROVIDER_SETTINGS: Mapping[str, Callable[[Target], dict[str, Any]]] = {
    CAPTURE: settings_of_capture,
    DYNAMIC_OPTIONS: settings_of_dynamic_options,
}
"""Scenario -> the function that gives its settings on a target."""
