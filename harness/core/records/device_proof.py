"""On which device the inputs of a session lie, as onnxruntime tells after the session was made."""

from typing import Annotated

import msgspec

MOST_DEVICE_TEXT = 1000
"""Characters of a device or a memory in words."""

_Words = Annotated[str, msgspec.Meta(max_length=MOST_DEVICE_TEXT)]


class DeviceProof(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Whether a session uses the device that it was asked to use.

    Placement shows which provider computes, and not on which of its devices. An input is judged if
    onnxruntime names a device of the provider for it: one that the CPU EP reads rightly lies on the CPU.

    Attributes:
        asked: The device that the session was made for, in words.
        judged: How many inputs were judged.
        memory: In which memories these lie, by their names; each once.
        wrong: The first judged input that lies on another device, and on which; empty if none does.
        not_proven: Why the device is not known; empty if it is.
    """

    asked: _Words = ""
    judged: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    memory: Annotated[tuple[_Words, ...], msgspec.Meta(max_length=64)] = ()
    wrong: _Words = ""
    not_proven: _Words = ""
