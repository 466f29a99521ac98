"""Provider options and precision modes of a matrix, checked with the catalogue before any device is used."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.catalog.catalog import load_catalog
from harness.catalog.check_options import check_options
from harness.catalog.provider import Provider
from harness.core.files.structure import OPTION, FilePlace, shown
from harness.core.records.precision import AS_IS, CONVERSIONS
from harness.core.text.errors import Problem, valid_names
from harness.plan.known_provider import (
    EP,
    OWN_PRECISIONS,
    known_provider,
    release_of,
    valid_precisions,
)
from harness.plan.selector import text

_UNCHECKED = "to pass it anyway, set unchecked_options = true"
_SCALARS = (str, int, float)  # bool is an int


def option_problems(
    targets: Sequence[tuple[FilePlace, dict[str, Any]]], axes: object, axes_place: FilePlace
) -> Iterator[Problem]:
    """Yield options that are wrong according to the catalogue, in tables and axes.

    Targets of unknown providers and targets with ``unchecked_options`` are not checked. Option axes of the
    table ``[axes]`` apply to every target without an axis of that name.
    """
    reported: set[tuple[str, str]] = set()
    for place, target in targets:
        provider = known_provider(target.get("provider"))
        if provider is None or target.get("unchecked_options") is True:
            continue
        own_axes = _table(target.get("axes"))
        shared = {axis: values for axis, values in _table(axes).items() if axis not in own_axes}
        found = [
            (here, here, key, value)
            for key, value in _table(target.get("options")).items()
            for here in [place.key("options").key(key)]
        ]
        found += [*_on_axes(own_axes, place.key("axes")), *_on_axes(shared, axes_place)]
        for entry, where, key, value in found:
            for problem in _in_option(provider, target, where, key, value):
                # Once for all values of an unknown option and for all targets that take [axes].
                if (str(entry), problem.what) not in reported:
                    reported.add((str(entry), problem.what))
                    yield problem


def precision_problems(
    values: object, place: FilePlace, providers: Sequence[str], own: Sequence[str]
) -> Iterator[Problem]:
    """Yield values of a precision axis, for targets of some providers, that name a mode which none has.

    ``own`` are the modes that the targets describe themselves.
    """
    every = tuple(mode for name in load_catalog().names for mode in valid_precisions(name))
    every += tuple(EP + name for name in own)
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if not isinstance(value, str) or not value.startswith(EP) or value in (EP, *every):
            continue
        here = [f"{name}: {', '.join(valid_precisions(name)) or 'none'}" for name in dict.fromkeys(providers)]
        here += [f"of the targets: {', '.join(EP + name for name in own)}"] if own else []
        near = valid_names(value, every, limit=0).partition("valid:")[0]
        what = f"no provider has a precision mode {shown(value)}"
        yield place.item(index).problem(
            what, f"{near}valid: {', '.join((AS_IS, *CONVERSIONS))}; {'; '.join(here)}"
        )


def own_precision_problems(target: Mapping[str, Any], place: FilePlace) -> Iterator[Problem]:
    """Yield precision modes of a target that have no known meaning, or that the catalogue already has."""
    own = _table(target.get("precisions"))
    provider = known_provider(target.get("provider"))
    if own and provider is not None:
        modes = ", ".join(valid_precisions(provider.name)) or "none"
        what = f"the catalogue has the precision modes of {provider.name}: {modes}"
        yield place.key("precisions").problem(what, "remove this key, and vary options by axes")
    for name in own:
        if name not in OWN_PRECISIONS:
            what = f"unknown precision {shown(name)}"
            yield place.key("precisions").problem(what, valid_names(name, OWN_PRECISIONS))


def _in_option(
    provider: Provider, target: Mapping[str, Any], where: FilePlace, key: str, value: object
) -> Iterator[Problem]:
    if not isinstance(value, _SCALARS) or "\0" in str(value):
        return  # ``deviations`` reports it
    runtime = _table(target.get("runtime"))
    packages = runtime.get("packages")
    release = release_of(provider, packages if isinstance(packages, list) else ())
    options = {key: text(value, provider.true_false)}
    in_python = not runtime.keys() & {"node", "browser"}
    for finding in check_options(
        provider, options, plugin="plugin" in target, release=release, in_python=in_python
    ):
        if finding.wrong:
            unknown = provider.option(key, plugin="plugin" in target) is None
            hint = "; ".join(filter(None, (finding.hint, _UNCHECKED if unknown else "")))
            yield where.problem(finding.what, hint)


def _on_axes(axes: Mapping[str, Any], place: FilePlace) -> Iterator[tuple[FilePlace, FilePlace, str, object]]:
    """Yield for each value of an option axis: place of the axis, place of the value, option key, value."""
    for axis, values in axes.items():
        if axis.startswith(OPTION) and axis != OPTION and isinstance(values, list):
            here = place.key(axis)
            for index, value in enumerate(values):
                yield here, here.item(index), axis.removeprefix(OPTION), value


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
