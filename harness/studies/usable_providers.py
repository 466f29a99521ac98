"""Which providers work here, why others do not, and what to do: each is tried in a session."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.catalog.catalog import load_catalog
from harness.catalog.provider import Provider
from harness.core.files.structure import OPTION
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.records.verdict import Cause
from harness.engine.processes.launch import is_local
from harness.places.place_list import list_places
from harness.plan.matrix import Matrix
from harness.plan.target import Target
from harness.studies.ask import Notify
from harness.studies.drivers import browsers_here, driver_versions, seen_devices
from harness.studies.newer_releases import newer_than_tried
from harness.studies.plugins import installed_plugins, named_plugin
from harness.studies.repair_advice import next_step
from harness.studies.trial import ProviderTrial, ProviderWay, TrialResult

_HERE = "here/"
_MATRIX = "matrix/"
"""Prefixes of series names."""

_PLATFORMS = {"linux": "linux", "win32": "windows", "darwin": "macos", "android": "android", "ios": "ios"}
"""``sys.platform`` -> the catalogue's name."""

SPELLED = {
    "linux": "Linux",
    "windows": "Windows",
    "macos": "macOS",
    "android": "Android",
    "ios": "iOS",
    "browser": "web browsers",
}
"""The catalogue's name -> the usual spelling."""

ABSENT = frozenset({Cause.NOT_IN_BUILD, Cause.NOT_INSTALLED})
"""Causes that need no explanation for a provider of the harness's own interpreter."""

_IDLE = "do not rely on it: the CPU provider computes its right answers, and a run reports `fallback`"


class DoctorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One provider here, or one target of a matrix, with what was found out.

    Attributes:
        provider: The exact name.
        target: The target's name in the matrix; empty for the harness's own interpreter.
        state: ``usable`` if a session with it gave the right answer.
        cause: Why it is unavailable: a ``Cause``, or the verdict of the session; empty if usable.
        reason: The cause in one line.
        advice: What to do next; empty if nothing.
        nodes: Number of nodes that it computed; 0 if the CPU provider computed all, null if nothing ran.
        versions: Versions of onnxruntime, packages, plugin and drivers, by name.
        devices: Devices that the provider offers, with metadata.
        plugin: Package or path of the plugin library; null for a provider of the build.
        options: Provider options that it was tried with.
        env: Environment variables that it was tried with.
    """

    provider: str
    target: str = ""
    state: Literal["usable", "unavailable"]
    cause: str = ""
    reason: str = ""
    advice: str = ""
    nodes: int | None = None
    remarks: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    devices: tuple[dict[str, Any], ...] = ()
    plugin: str | None = None
    options: dict[str, str] = {}
    env: dict[str, str] = {}

    @property
    def usable(self) -> bool:
        """Whether sessions with it give right answers, even if the CPU provider computes everything."""
        return self.state == "usable"

    @property
    def computes(self) -> bool:
        """Whether it works and computes nodes itself."""
        return self.usable and bool(self.nodes)


def examine(matrix: Matrix | None, notify: Notify, plugins: Sequence[str] = ()) -> tuple[DoctorRow, ...]:
    """Try every provider of the catalogue, every installed plugin, and the targets of a matrix.

    The models, exclusions and expectations of the matrix do not matter. ``plugins`` are further ones:
    packages, or absolute paths of libraries.

    Returns:
        The matrix's targets in their order, each of their places by itself, then providers by name. A
        provider that is both in the build and installed as a plugin has two rows.

    Raises:
        UsageError: The cache cannot be written, or the places of a target cannot be listed.
    """
    targets = [each for target in matrix.targets for each in _at_each_place(target)] if matrix else []
    of_matrix = {_MATRIX + target.name: (_way(target, matrix),) for target in targets} if matrix else {}
    built_in, with_plugin = dict(_built_in()), dict(_plugins(plugins))
    asked = _HERE + CPU
    trial = ProviderTrial(
        of_matrix | built_in | with_plugin, waiting=frozenset(built_in) - {asked}, asked=asked, notify=notify
    )
    found = trial.run()
    rows = [
        msgspec.structs.replace(_tried(found[name]), target=name.removeprefix(_MATRIX)) for name in of_matrix
    ]
    here = [_tried(each) for name, each in found.items() if name not in of_matrix]
    names = {row.provider for row in here}
    here += [_untried(each, found[asked]) for each in load_catalog().providers if each.name not in names]
    return (*rows, *sorted(here, key=lambda row: (row.provider.lower(), row.plugin or "")))


def examine_provider(name: str, notify: Notify) -> DoctorRow | None:
    """Try one provider of the catalogue, by its exact name, in the build and as an installed plugin.

    Returns:
        Return the first way in which it computes something, else one in which it was tried; None if it is not
        here.

    Raises:
        UsageError: The cache cannot be written.
    """
    asked = _HERE + CPU
    every = {**dict(_built_in()), **dict(_plugins())}
    series = {key: ways for key, ways in every.items() if key == asked or ways[0].target.provider[0] == name}
    waiting = frozenset(key for key in series if key == _HERE + name != asked)
    found = ProviderTrial(series, waiting=waiting, asked=asked, notify=notify).run()
    rows = [_tried(each) for each in found.values() if each.target.provider[0] == name]
    return next((row for row in rows if row.computes), rows[0] if rows else None)


def _at_each_place(target: Target) -> Iterator[Target]:
    """Yield a target once for each of its places; as it is without any."""
    if target.places is None:
        yield target
        return
    for place in list_places(target.places, target.name):
        name = f"{target.name} at {place.name}"
        yield msgspec.structs.replace(
            target,
            name=name,
            runtime=msgspec.structs.replace(target.runtime, places=name),
            places=msgspec.structs.replace(target.places, each=(place,), file=None, list=()),
        )


def _way(target: Target, matrix: Matrix) -> ProviderWay:
    """Return a target of a matrix with the first value of each of its options."""
    axes = {
        axis: values[:1] for axis, values in (matrix.axes | target.axes).items() if axis.startswith(OPTION)
    }
    reduced = msgspec.structs.replace(
        target, name=_MATRIX + target.name, axes=axes, workers=1, retries=0, alone=False
    )
    return ProviderWay(target=reduced)


def _built_in() -> Iterator[tuple[str, tuple[ProviderWay, ...]]]:
    """Yield the series of providers that the harness's own onnxruntime may contain."""
    for provider in load_catalog().providers:
        if provider.registration != ("plugin",):
            name = _HERE + provider.name
            yield name, tuple(_ways(Target(name=name, provider=(provider.name,)), provider))


def _plugins(named: Sequence[str] = ()) -> Iterator[tuple[str, tuple[ProviderWay, ...]]]:
    catalog = load_catalog()
    wanted = [(named_plugin(plugin, catalog), plugin) for plugin in named]
    for provider, package in dict.fromkeys((*installed_plugins(catalog), *wanted)):
        name = f"{_HERE}{provider}/{package}"
        target = Target(name=name, provider=(provider,), plugin=package)
        yield name, tuple(_ways(target, catalog.find(provider)))


def _ways(target: Target, provider: Provider | None) -> Iterator[ProviderWay]:
    yield ProviderWay(target=target)
    for number, probe in enumerate(provider.probes if provider else (), start=1):
        if not probe.needs_file or Path(probe.needs_file).is_file():
            other = msgspec.structs.replace(
                target, name=f"{target.name}#{number}", options=probe.options, env=probe.env
            )
            yield ProviderWay(target=other, meaning=probe.meaning)


def _tried(found: TrialResult) -> DoctorRow:
    target, provider = found.target, found.provider
    is_here = target.places is None and is_local(target.runtime)
    hardware = provider.hardware if provider and is_here else ""
    first = {axis.removeprefix(OPTION): values[0] for axis, values in target.axes.items()}
    row = DoctorRow(
        provider=target.provider[0],
        state="usable" if found.works else "unavailable",
        nodes=found.nodes,
        remarks=tuple(_remarks(found)),
        versions=_versions(found.fingerprint) | driver_versions(hardware),
        devices=_devices(found.fingerprint) or seen_devices(hardware),
        plugin=target.plugin,
        options={**target.options, **first},
        env=target.env,
    )
    if found.works:
        return row if found.nodes else msgspec.structs.replace(row, advice=_IDLE)
    reason = found.record.reason
    return msgspec.structs.replace(row, cause=found.cause, reason=reason, advice=next_step(found))


def _untried(provider: Provider, runtime: TrialResult) -> DoctorRow:
    """Return the row of a provider that the harness's own onnxruntime lacks, or if it is not installed."""
    row = DoctorRow(
        provider=provider.name,
        state="unavailable",
        advice=provider.advice,
        versions=_versions(runtime.fingerprint, packages=False) | driver_versions(provider.hardware),
        devices=seen_devices(provider.hardware),
        remarks=tuple(browsers_here()) if provider.kind == "browser" else (),
    )
    where = ""
    if _PLATFORMS.get(sys.platform) not in provider.platforms:
        where = f"; for {' and '.join(SPELLED[platform] for platform in provider.platforms)} only"
    if provider.registration == ("plugin",):
        reason = f"no plugin package for it is installed{where}"
        return msgspec.structs.replace(row, cause=Cause.NOT_INSTALLED, reason=reason)
    if "available_providers" not in runtime.fingerprint:
        broken = _tried(runtime)
        advice = provider.advice if broken.cause == Cause.NOT_INSTALLED else broken.advice
        return msgspec.structs.replace(row, cause=broken.cause, reason=broken.reason, advice=advice)
    reason = f"not in this onnxruntime {runtime.fingerprint.get('onnxruntime', '')}{where}"
    if provider.state == "removed":
        reason += f"; dropped with {provider.removed_in}" if provider.removed_in else "; dropped long ago"
    return msgspec.structs.replace(row, cause=Cause.NOT_IN_BUILD, reason=reason)


def _remarks(found: TrialResult) -> Iterator[str]:
    provider, target = found.provider, found.target
    if found.works and not found.nodes:
        note = f": {provider.state_note}" if provider and provider.state_note else ""
        yield f"it computed 0 nodes; the CPU provider computed all of them{note}"
    if found.works and found.way.meaning:
        settings = ", ".join(f"{key}={value}" for key, value in {**target.options, **target.env}.items())
        yield f"{found.way.meaning}: {settings}"
    owners = found.fingerprint.get("owners")
    if owners:
        yield f"{' and '.join(map(str, owners))} overwrite each other: only the one installed last works"
    versions = _versions(found.fingerprint, packages=False)
    yield from newer_than_tried(provider, versions, plugin=target.plugin is not None)


def _versions(fingerprint: dict[str, Any], *, packages: bool = True) -> dict[str, str]:
    """Return the versions of a fingerprint by name."""
    versions = {}
    if packages:
        programs = {name: fingerprint.get(name, "") for name in ("python", "node", "browser")}
        versions = {**programs, **fingerprint.get("packages", {})}
    # The imported version, which may differ from that of a distribution.
    versions["onnxruntime"] = fingerprint.get("onnxruntime", "")
    plugin = fingerprint.get("plugin", {})
    versions |= {"plugin": plugin.get("version", ""), "plugin_library": plugin.get("library", "")}
    return {str(name): str(version) for name, version in versions.items() if version}


def _devices(fingerprint: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"device": each["device"], "metadata": each["metadata"]} for each in fingerprint.get("devices", ())
    )
