"""The process that asks onnxruntime which devices one of its selection policies chooses.

All plugin libraries are registered in it, because a policy chooses among them. It announces each step, as any
may be its last.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np

from harness.agent.fresh_process import message_descriptor
from harness.agent.ort_runtime import import_onnxruntime
from harness.agent.plugin_library import (
    describe_device,
    device_words,
    memory_words,
    own_memory,
    plugin_library,
)
from harness.agent.safe_text import clean
from harness.agent.system import PARENT, die_with
from harness.agent.target_errors import UnavailableError

_CHARACTERS = 400


def serve_selection(request: dict[str, Any]) -> None:
    """Register the libraries of a request, and open and run its model under its policy.

    A request has ``libraries`` (names with plugins), ``policy``, ``model`` (its path) and the ``inputs`` of
    that. Without a policy the answer is which ``policies`` and ``devices`` there are. Messages are lines of
    JSON on standard output, each a kind with a value: ``step``, ``runtime``, ``declined``, ``refused`` (a
    library), ``policies``, ``devices``, ``chosen``, ``nodes``, ``outputs``, ``error``.
    """
    die_with(os.environ.pop(PARENT, ""))
    with os.fdopen(message_descriptor(), "w", encoding="utf-8") as messages:

        def tell(kind: str, value: Any) -> None:
            messages.write(json.dumps([kind, value]) + "\n")
            messages.flush()

        try:
            _answer(request, tell)
        except Exception as error:  # noqa: BLE001 - any error of a provider is the result
            said = error.args[1] if isinstance(error, UnavailableError) else error
            told = "%s: %s" % (type(error).__name__, clean(said, limit=_CHARACTERS))
            tell("error", told.replace(request["model"], "the model"))
        tell("step", "exit")


def _answer(request: dict[str, Any], tell: Any) -> None:
    tell("step", "import")
    ort = import_onnxruntime()
    tell("runtime", str(ort.__version__))
    if not hasattr(ort.SessionOptions, "set_provider_selection_policy"):
        # C has them from 1.22 on.
        tell("declined", "onnxruntime %s has no policies in Python; 1.23 is the first" % ort.__version__)
        return
    for name, plugin in request["libraries"]:
        tell("step", "register %s" % name)
        try:
            ort.register_execution_provider_library(name, plugin_library(plugin)[0])
        except UnavailableError as error:
            tell("refused", [name, clean(error.args[1], limit=_CHARACTERS)])
        except Exception as error:  # noqa: BLE001 - the text is the result
            tell("refused", [name, clean(error, limit=_CHARACTERS)])
    tell("step", "devices")
    # At the registration: a provider that lies about its devices may change them for a session.
    offered = [_offered(ort, device) for device in ort.get_ep_devices()]
    policies = ort.OrtExecutionProviderDevicePolicy.__members__
    if not request["policy"]:
        tell("policies", list(policies))
        tell("devices", [device[:3] for device in offered])
        return
    tell("step", "create")
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.set_provider_selection_policy(policies[request["policy"]])
    records = _version(ort) >= (1, 25) and hasattr(ort.InferenceSession, "get_provider_graph_assignment_info")
    if records:
        settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort.InferenceSession(request["model"], settings, enable_fallback=0)
    providers = session.get_providers()
    tell("chosen", [_chosen(session, name, offered) for name in providers])
    if records:
        nodes: dict[str, int] = {}
        for part in session.get_provider_graph_assignment_info():
            nodes[part.ep_name] = nodes.get(part.ep_name, 0) + len(part.get_nodes())
        tell("nodes", nodes)
    tell("step", "run")
    feed = {name: np.array(values, np.float32) for name, values in request["inputs"].items()}
    outputs = session.run(None, feed)
    tell("outputs", [np.asarray(value).astype(np.float64).tolist() for value in outputs])
    tell("step", "release")
    del session


def _chosen(session: Any, provider: str, offered: list[tuple[str, str, str, str]]) -> list[Any]:
    """Return a provider, and the types and words of its devices that the session may use.

    It is one device if the provider offers no other, or if the memory of its inputs is that of one.
    onnxruntime names the first device of the provider, whichever the session was made for.
    """
    own = [device for device in offered if device[0] == provider]
    if len(own) > 1 and hasattr(session, "get_input_memory_infos"):
        pairs = zip(session.get_input_epdevices(), session.get_input_memory_infos())
        used = {
            memory_words(memory) for named, memory in pairs if named is not None and named.ep_name == provider
        }
        # A device without memory of its own keeps inputs in the host's memory.
        owners = [device for device in own if (device[3] or "host") in {_or_host(memory) for memory in used}]
        own = owners if used and owners else own
    return [provider, [device[1] for device in own], [device[2] for device in own]]


def _or_host(memory: str) -> str:
    """Return the memory in words, or ``host`` for that of the processor."""
    return "host" if re.match(r"Cpu \d+$", memory, re.IGNORECASE) else memory


def _offered(ort: Any, device: Any) -> tuple[str, str, str, str]:
    """Return the provider of a device, its type, the device in words, and its own memory or an empty text."""
    memory = own_memory(ort, device)
    kind = describe_device(device)["device"]["type"]
    return device.ep_name, kind, device_words(device), _or_host(memory) if memory else ""


def _version(ort: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", ort.__version__)[:2])
