"""A target's identity when it ran: releases, library, device, and whether a program stood for it."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.plan.device_identity import DeviceIdentity, device_identity_of
from harness.plan.surroundings import surroundings_of
from harness.report.runs.merged_run import MergedRun, RunEnvironment, target_settings

_SUFFIX = "ExecutionProvider"
_OF_A_RUN = re.compile(r" (?:@|at) .*", re.DOTALL)
"""Suffix of a target's own name where runs or places differ."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a target; empty if its fingerprint lacks them.

    Attributes:
        target: Its shown name.
        onnxruntime: Release of the runtime.
        provider: The first preferred provider, without ``ExecutionProvider``.
        ep_version: Version of the plugin, or of the runtime that the provider is built into.
        library: File name of the plugin's library; empty if the provider is built in.
        driver: Drivers with their versions.
        device: Name of the device; ``facts`` has what else is known of it.
        simulated: Whether a program stands for the accelerator; null if unknown.
        unavailable: Why it could not be used; empty if it could.
    """

    target: str
    onnxruntime: str = ""
    provider: str = ""
    ep_version: str = ""
    library: str = ""
    driver: str = ""
    device: str = ""
    facts: DeviceIdentity = DeviceIdentity()
    simulated: bool | None = None
    unavailable: str = ""

    @property
    def line(self) -> str:
        """Return all of it in one line: ``onnxruntime 1.32.0, QNN 2.7.0, driver 1.2, Hexagon, simulated``."""
        return ", ".join(self._parts())

    @property
    def hardware(self) -> str:
        """``simulated``, ``hardware``, or ``not known``."""
        return {True: "simulated", False: "hardware", None: "not known"}[self.simulated]

    def _parts(self) -> Iterator[str]:
        if self.onnxruntime:
            yield f"onnxruntime {self.onnxruntime}"
        if self.ep_version != self.onnxruntime:
            yield f"{self.provider} {self.ep_version}".strip()
        if self.driver:
            yield f"driver {self.driver}"
        if self.device:
            yield self.device
        if self.simulated:
            yield "simulated"


NOTHING_KNOWN = Identity(target="")


def identities(run: MergedRun) -> tuple[Identity, ...]:
    """Return one entry for each environment of a run, in the order of the matrix."""
    settings = target_settings(run.matrix)
    rank = {name: index for index, name in enumerate(settings)}
    found = sorted(run.environments, key=lambda each: rank.get(_own_name(each.target), len(rank)))
    return tuple(identity_of(each, settings) for each in found)


def identity_of(environment: RunEnvironment, settings: Mapping[str, Mapping[str, object]]) -> Identity:
    """Return the identity of an environment; ``settings`` are those of the targets in the matrix, by name."""
    facts = environment.fingerprint
    entry = settings.get(_own_name(environment.target), {})
    chain = _texts(facts.get("providers")) or _texts(entry.get("provider")) or [""]
    wanted = entry.get("device")
    chosen = {str(key): str(value) for key, value in wanted.items()} if isinstance(wanted, dict) else {}
    seen = surroundings_of(facts, chain, chosen)
    plugin = facts.get("plugin")
    library = str(plugin.get("library") or "") if isinstance(plugin, dict) else ""
    return Identity(
        target=environment.target,
        onnxruntime=seen.onnxruntime,
        provider=chain[0].removesuffix(_SUFFIX),
        ep_version=seen.ep_version,
        library=re.split(r"[/\\]", library)[-1],
        driver=", ".join(dict.fromkeys(filter(None, map(_driver, seen.drivers.items())))),
        device=seen.device,
        facts=device_identity_of(facts, chain, chosen),
        simulated=seen.simulator,
        unavailable=str(facts.get("unavailable") or ""),
    )


def _own_name(target: str) -> str:
    return _OF_A_RUN.sub("", target)


def _driver(named: tuple[str, str]) -> str:
    name, version = named
    plain = re.sub(r"(?i)_?driver_?(version)?", "", name).strip("_ ")
    return f"{plain} {version}".strip()


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else []
