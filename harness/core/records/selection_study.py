"""What selection policies of onnxruntime choose on a machine: the public JSON contract ``policies.json``."""

from typing import Any

import msgspec

from harness.core.files.json_schema import json_schema_of

_SCHEMA = 1

POLICIES_FILE = "policies.json"
"""The file in a run folder."""

_PREFERRED = {"PREFER_CPU": "CPU", "PREFER_NPU": "NPU", "PREFER_GPU": "GPU"}
"""Policy -> the type of device that it promises, if one is offered. Others promise none."""


class OfferedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device that a registered provider offers.

    Attributes:
        type: ``CPU``, ``GPU`` or ``NPU``.
        device: The same with number and vendor, in words.
    """

    provider: str
    type: str
    device: str


class ChosenProvider(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider of a session that a policy made.

    Attributes:
        devices: The devices that it may use; several if nothing shows which of them it is.
        nodes: Nodes of the model on it; null before onnxruntime 1.25.
    """

    provider: str
    devices: tuple[OfferedDevice, ...] = ()
    nodes: int | None = None


class SelectionAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one policy chose for one small model.

    Attributes:
        chosen: The providers of the session, the preferred one first; empty if there is no session.
        right: Whether the answer is right; null if nothing ran.
        failed: Why nothing ran, or how the process ended, in one line; empty if all is well.
    """

    policy: str
    chosen: tuple[ChosenProvider, ...] = ()
    right: bool | None = None
    failed: str = ""

    @property
    def is_idle(self) -> bool:
        """Whether the preferred provider computes no node, so that the answer shows nothing about it."""
        return bool(self.chosen) and self.chosen[0].nodes == 0

    @property
    def choice(self) -> str:
        """The preferred device and its provider, in words."""
        if not self.chosen:
            return "no session"
        first = self.chosen[0]
        idle = ", which computes no node" if self.is_idle else ""
        return f"{_in_words(first.devices)} by {first.provider}{idle}"


class SelectionStudy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The choices of every policy on one machine, with some plugin libraries registered.

    Attributes:
        machine: Processor and system.
        runtime: Version of onnxruntime.
        libraries: Provider -> why its library takes no part; empty if it does.
        offered: What the policies choose from, with the devices of providers that are built in.
        answers: For each policy of the runtime, in its order.
        declined: Why no policy was tried, in words.
    """

    machine: str = ""
    runtime: str = ""
    libraries: dict[str, str] = {}
    offered: tuple[OfferedDevice, ...] = ()
    answers: tuple[SelectionAnswer, ...] = ()
    declined: str = ""

    def wrong(self, answer: SelectionAnswer) -> str:
        """Return what is wrong with an answer, in one line; empty if nothing is."""
        if answer.failed:
            return answer.failed
        if answer.right is False:
            return "the answer is wrong"
        wanted = _PREFERRED.get(answer.policy)
        used = answer.chosen[0].devices if answer.chosen else ()
        there = [each for each in self.offered if each.type == wanted]
        if not there or not used or any(each.type == wanted for each in used):
            return ""
        return f"uses {_in_words(used)}, but {there[0].device} of {there[0].provider} is offered"


def _in_words(devices: tuple[OfferedDevice, ...]) -> str:
    """Return the devices that a session may use, in words."""
    return " or ".join(dict.fromkeys(each.device for each in devices)) or "a device that it does not name"


class SelectionFile(msgspec.Struct, frozen=True, kw_only=True):
    """``policies.json``: one study for each set of libraries, at most one for an equal set."""

    schema: int = _SCHEMA
    studies: tuple[SelectionStudy, ...]


def decode_selection(content: bytes) -> tuple[SelectionStudy, ...]:
    """Read ``policies.json``.

    Raises:
        ValueError: It is not of this schema.
    """
    try:
        found = msgspec.json.decode(content, type=SelectionFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if found.schema != _SCHEMA:
        raise ValueError(f"schema {found.schema}, but this version reads schema {_SCHEMA}")
    return found.studies


def selection_schema() -> dict[str, Any]:
    """Return the JSON Schema: docs/reference/policies.schema.json."""
    return json_schema_of(SelectionFile, POLICIES_FILE)
