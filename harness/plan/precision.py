"""The precision axis, as far as it is the provider's affair: ``ep:<mode>``, a mode that the catalogue lists.

The other values are in ``harness.core.precision``.
"""

from collections.abc import Mapping
from functools import cache

from harness.catalog.check_options import check_options
from harness.catalog.option import PrecisionMode
from harness.core.errors import one_line
from harness.plan.known_provider import known_provider

EP = "ep:"
"""What a value of the axis begins with that names a mode of a provider."""


@cache
def precision_mode(provider: str, precision: str) -> PrecisionMode | None:
    """The mode that a value of the axis names; None where it names none, or the provider has no such mode."""
    known = known_provider(provider) if precision.startswith(EP) else None
    return known.precision(precision.removeprefix(EP)) if known else None


@cache
def valid_precisions(provider: str) -> tuple[str, ...]:
    """The modes of a provider as values of the axis; none where the catalogue does not know it."""
    known = known_provider(provider)
    return tuple(EP + mode.name for mode in known.precision_modes) if known else ()


def why_not(provider: str, precision: str, device: Mapping[str, str], *, plugin: bool, release: str) -> str:
    """Why a target cannot compute in a precision, in one line; empty where it can be tried.

    Args:
        provider: The first of the target's chain.
        precision: A value of the axis.
        device: The target's device filter.
        plugin: Whether the provider comes from a plugin library.
        release: onnxruntime's release; empty where it is not known.
    """
    if not precision.startswith(EP):
        return ""
    known, mode = known_provider(provider), precision_mode(provider, precision)
    if known is None:
        return f"the catalogue does not know {provider}, nor any precision mode of it"
    if mode is None:
        return f"{known.name} has no {precision}; it has {', '.join(valid_precisions(provider)) or 'none'}"
    findings = check_options(known, mode.options, plugin=plugin, release=release)
    obstacles = [
        *(() if mode.runnable else (f"cannot be chosen by options alone; it takes {mode.needs}",)),
        *(
            f"is for a device of {key} {value}, and this target's is {device[key]}"
            for key, value in mode.device.items()
            if key in device and device[key].casefold() != value.casefold()
        ),
        *(f"is not to be had here: {finding.what}" for finding in findings if finding.wrong),
    ]
    return one_line(f"{precision} {obstacles[0]}") if obstacles else ""
