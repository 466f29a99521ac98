"""Devices: what submissions ran on, by which a site counts: each device once."""

import hashlib
import re
from collections.abc import Iterable, Sequence

import msgspec

from harness.annex.publication.entry import AcceptedSubmission, newest_version
from harness.annex.publication.lines import CaseChanges, Line, steps_of

_FACTS = {"vendor_id": re.compile(r"\bvendor_id (\d+)"), "device_id": re.compile(r"\bdevice_id (\d+)")}
_KIND = re.compile(r"^(CPU|GPU|NPU)\b ?")


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a statement tells about its device.

    Attributes:
        kind: ``CPU``, ``GPU`` or ``NPU``; empty if unknown.
        name: Vendor, architecture and description, without numbers.
        vendor_id: The number of the vendor, such as 4318; empty if unknown. ``device_id`` likewise.
    """

    kind: str
    name: str
    vendor_id: str
    device_id: str


class SiteDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device, and everything that was submitted about it.

    Attributes:
        id: Its address on any site: derived from what the statements tell about it.
        label: In one line.
        lines: The providers on it; for equal names signed ones come first.
        history: Every submission, the newest first, with its changes since the one before of its line.
    """

    id: str
    label: str
    facts: tuple[DeviceFacts, ...]
    lines: tuple[Line, ...]
    history: tuple[tuple[AcceptedSubmission, Line, CaseChanges | None], ...]

    @property
    def drivers(self) -> tuple[str, ...]:
        """Drivers with their versions over all submissions, the newest first."""
        found = (driver_of(entry) for entry, *_ in self.history)
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def newest_runtime(self) -> str:
        """The newest onnxruntime of its submissions."""
        return newest_version(entry.statement.environment.onnxruntime for entry, *_ in self.history)

    @property
    def newest(self) -> str:
        """The day of its newest submission."""
        return self.history[0][0].statement.created[:10]


def devices_of(lines: Iterable[Line]) -> tuple[SiteDevice, ...]:
    """Return the devices of all lines, by label."""
    found: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        found.setdefault(_key(line.one), []).append(line)
    return tuple(sorted((_device(its) for its in found.values()), key=lambda one: (one.label, one.id)))


def device_id(entry: AcceptedSubmission) -> str:
    """Return the address of a submission's device."""
    return hashlib.sha256(msgspec.json.encode(_key(entry))).hexdigest()[:16]


def device_kind(entry: AcceptedSubmission) -> str:
    """Return the type and name of a submission's devices, without the numbers that tell one from another."""
    where = entry.statement.environment
    facts = map(_facts, sorted(set(where.devices)) or (where.platform,))
    return ", ".join((*((f"{one.kind} {one.name}") for one in facts), entry.simulated))


def driver_of(entry: AcceptedSubmission) -> str:
    """Return the drivers of a submission with their versions, in one line; empty if unknown."""
    return ", ".join(f"{name} {version}" for name, version in entry.statement.environment.drivers.items())


def counted_lines(lines: Iterable[Line]) -> dict[tuple[str, str, str], dict[str, Line]]:
    """Return product -> device -> the line that counts.

    A product is its vendor, name and provider. Of several lines of one product on one device (other options,
    another signer) a signed one counts before an unsigned one, then the one with the newest submission: a
    stranger's report must not replace that of a key.
    """
    found: dict[tuple[str, str, str], dict[str, Line]] = {}
    for line in lines:
        said = line.one.statement
        product = (said.product.vendor, said.product.name, said.environment.provider)
        on_device = found.setdefault(product, {})
        device = device_id(line.one)
        if device not in on_device or _weight(line) > _weight(on_device[device]):
            on_device[device] = line
    return dict(sorted(found.items()))


def _weight(line: Line) -> tuple[bool, str, str]:
    return bool(line.one.signer), line.one.statement.created, line.id


def _key(entry: AcceptedSubmission) -> tuple[str, ...]:
    where = entry.statement.environment
    return (entry.simulated, *(sorted(set(where.devices)) or (where.platform,)))


def _device(lines: Sequence[Line]) -> SiteDevice:
    one = lines[0].one
    changes = {newer.id: found for line in lines for newer, found in steps_of(line)}
    history = [
        (entry, line, changes.get(entry.id))
        for line in lines
        for label in line.newest
        for entry in line.of_profile(label)
    ]
    history.sort(key=lambda row: (row[0].statement.created, row[0].id), reverse=True)
    where = one.statement.environment
    return SiteDevice(
        id=device_id(one),
        label=one.device,
        facts=tuple(map(_facts, where.devices or (where.platform,))),
        lines=tuple(lines),
        history=tuple(history),
    )


def _facts(text: str) -> DeviceFacts:
    numbers = {name: found[1] if (found := pattern.search(text)) else "" for name, pattern in _FACTS.items()}
    kind = found[1] if (found := _KIND.match(text)) else ""
    name = text
    for pattern in (*_FACTS.values(), _KIND):
        name = pattern.sub("", name)
    return DeviceFacts(kind=kind, name=" ".join(name.split()), **numbers)
