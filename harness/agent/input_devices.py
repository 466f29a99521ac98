"""Which device the inputs of a session belong to, and in whose memory they lie, as onnxruntime tells it."""

from __future__ import annotations

from typing import Any

from harness.agent.plugin_library import memory_words
from harness.agent.safe_text import clean
from harness.agent.session_target import CPU, SessionTarget

_CHARACTERS = 300
_MOST_MEMORIES = 8


def device_proof(target: SessionTarget, session: Any) -> dict[str, Any] | None:
    """Return whether a session uses the device that it was made for; None before onnxruntime 1.24.

    An input counts if onnxruntime names a device of the provider for it, so that a node of the provider reads
    it first. Which device it names is no evidence: releases up to 1.32 name the first one of the provider,
    whichever the session was made for. The memory is: each device has its own, or the host's. It is wrong
    only if it is that of another device which the provider offers; a provider may keep inputs in the memory
    of the host, and nodes of the CPU EP need them there.
    """
    if target.chain == [CPU] or not hasattr(session, "get_input_epdevices"):
        return None
    if not target.devices:
        return {"not_proven": "onnxruntime tells the devices of plugins alone"}
    (asked, own), *others = target.memories
    try:
        named = session.get_input_epdevices()
        memories = map(memory_words, session.get_input_memory_infos())
        names = [given.name for given in session.get_inputs()]
    except Exception as error:  # noqa: BLE001 - the text is the result
        return {"asked": asked, "not_proven": clean(error, limit=_CHARACTERS)}
    judged = {
        name: memory
        for name, device, memory in zip(names, named, memories)
        if device is not None and device.ep_name == target.chain[0]
    }
    memory = sorted(set(judged.values()))[:_MOST_MEMORIES]
    found: dict[str, Any] = {"asked": asked, "judged": len(judged), "memory": memory}
    owners = {memory: words for words, memory in others if memory not in ("", own)}
    lost = [name for name, memory in judged.items() if memory in owners]
    if lost:
        there = judged[lost[0]]
        told = "input %r lies in the memory %s of %s" % (lost[0], there, owners[there])
        found["wrong"] = clean(told, limit=_CHARACTERS)
    elif not judged:
        found["not_proven"] = "no input is read first by a node of the provider"
    elif others and memory != [own]:
        found["not_proven"] = "inputs lie in memory that is of none of the provider's %d devices" % (
            1 + len(others)
        )
    elif any(memory == own for _, memory in others):
        found["not_proven"] = "another device of the provider has the same memory"
    return found
