"""A provider with its options, and how its sessions are created."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.plugin_library import (
    chosen_device,
    describe_device,
    device_words,
    own_memory,
    plugin_library,
)
from harness.agent.safe_text import clean
from harness.agent.target_errors import FallbackError, OptionRejectedError, UnavailableError, UnfeedableError
from harness.agent.tensor_files import TensorFiles

# A Relu over float32[4] at opset 13, IR 7: the smallest model that any provider runs.
_PROBE_MODEL = bytes.fromhex(
    "080712003a330a0c0a0178120179220452656c751201705a0f0a0178120a0a08080112040a020804"
    "620f0a0179120a0a08080112040a02080442040a00100d"
)
CPU = "CPUExecutionProvider"
FOLDER_KEY = "session.model_external_initializers_file_folder_path"
"""The folder of external weights; without a model's path, onnxruntime (from 1.21 on) cannot derive it."""
_PROBE_INPUT = (-2.0, -0.5, 0.5, 3.0)  # exact at every precision that a provider may use


class SessionTarget:
    """A provider with its options, as sessions of this process use it; it adds its facts to the fingerprint.

    Raises:
        UnavailableError: The target cannot be used.
    """

    def __init__(self, ort: Any, config: dict[str, Any], fingerprint: dict[str, Any]) -> None:
        self.ort = ort
        self.config = config
        self.chain = list(config["providers"])
        self.options = dict(config["options"])
        self.entries = dict(config.get("session") or {})
        self.where_possible = dict(config.get("session_where_possible") or {})
        self.devices: list[Any] = []
        self.memories: list[tuple[str, str]] = []
        """Each of the plugin's devices in words, and its memory at the registration; the used one first."""
        self.held: Any = None
        self.registered = ""
        """The name under which the plugin library is registered; empty if none is."""
        self.files = TensorFiles(config.get("tensor_folders") or [], "out", "the outputs")
        self.version = tuple(int(part) for part in re.findall(r"\d+", ort.__version__)[:2])
        self.fingerprint = fingerprint
        fingerprint.update(providers=self.chain, options=self.options)
        self._load_libraries()
        if config.get("plugin"):
            self._register(config["plugin"], config.get("device") or {})
        else:
            self._check_built()

    def _load_libraries(self) -> None:
        """Load CUDA and cuDNN from pip's packages, if this onnxruntime is built for them.

        Their folders are on no search path: a session finds the libraries only after they are loaded, and
        otherwise onnxruntime uses the CPU. Missing ones are printed, and reported when a session fails.
        """
        if self.chain != [CPU] and hasattr(self.ort, "preload_dlls"):  # since 1.21
            try:
                self.ort.preload_dlls(msvc=False)
            except Exception as error:  # noqa: BLE001 - it only helps
                sys.stderr.write("preload_dlls: %s\n" % clean(error))

    def _check_built(self) -> None:
        """Refuse a provider that this build lacks: onnxruntime would silently take the CPU."""
        if hasattr(self.ort, "get_ep_devices"):  # it lists devices of some built-in providers, too
            offered = [device for device in self.ort.get_ep_devices() if device.ep_name == self.chain[0]]
            if offered:
                self.fingerprint["devices"] = [describe_device(device) for device in offered]
        available = self.ort.get_available_providers()
        for name in self.chain:
            if name not in available:
                raise UnavailableError(
                    "not_in_build", "%s is not in this onnxruntime; it has %s" % (name, ", ".join(available))
                )

    def _register(self, plugin: str, device_filter: dict[str, str]) -> None:
        path, version = plugin_library(plugin)
        self.fingerprint["plugin"] = {"library": path, "version": version}
        name = self.chain[0]
        if not hasattr(self.ort, "register_execution_provider_library"):
            reason = "onnxruntime %s has no plugins; 1.23 is the first" % self.ort.__version__
            raise UnavailableError("version_conflict", reason)
        try:
            # QNN takes its provider name from this registration name; the others ignore it.
            self.ort.register_execution_provider_library(name, path)
        except Exception as error:
            raise UnavailableError("registration_failed", clean(error)) from error
        self.registered = name
        offered = [device for device in self.ort.get_ep_devices() if device.ep_name == name]
        self.devices = chosen_device(offered, device_filter)
        self.fingerprint["devices"] = [describe_device(device) for device in offered]
        first = sorted(offered, key=lambda device: device not in self.devices)
        self.memories = [(device_words(device), own_memory(self.ort, device)) for device in first]
        if not self.devices:
            names = sorted({device.ep_name for device in self.ort.get_ep_devices()} - {CPU})
            offer = "; ".join(json.dumps(describe_device(device)["device"]) for device in offered)
            raise UnavailableError(
                "no_device",
                "%s is registered but offers no device%s; offered: %s"
                % (name, " matching %s" % json.dumps(device_filter) if device_filter else "", offer or names),
            )

    def check_options(self) -> None:
        """Create a session of a one-node model; if that fails, find the refused option.

        Raises:
            OptionRejectedError: The provider refuses an option.
            UnavailableError: It creates no session even without options.
        """
        error = self._refusal(self.options)
        if error is None:
            return
        for key in self.options:
            if self._refusal({other: self.options[other] for other in self.options if other != key}) is None:
                raise OptionRejectedError(key, error)
        if self.options and self._refusal({}) is None:
            raise OptionRejectedError(", ".join(self.options), error)
        raise UnavailableError("registration_failed", error)

    def _refusal(self, options: dict[str, str]) -> str | None:
        """Return why a session of the probe model cannot be created with these options; None if it can."""
        try:
            # Kept as long as the process. Closing a provider's last session also frees what its sessions
            # share (WebGPU's device and its compiled shaders), which each model would have to create again.
            self.held = self.session(_PROBE_MODEL, {}, options)
        except Exception as error:  # noqa: BLE001 - the text is the result
            return clean(error)
        return None

    def sickness(self) -> str:
        """Return what is wrong with the provider in this process; empty if it still computes."""
        values = np.array(_PROBE_INPUT, np.float32)
        try:
            outputs = self.held.run(["y"], {"x": values})
        except Exception as error:  # noqa: BLE001 - the text is the result
            return "%s: %s" % (clean(type(error).__name__), clean(error))
        if not outputs or np.array_equal(outputs[0], np.maximum(values, 0)):
            return ""  # no outputs: a run that replays a CUDA graph returns none unless they are bound
        return "it computes Relu(%s) as %s" % (list(_PROBE_INPUT), clean(outputs[0], limit=100))

    def release(self) -> None:
        """Release the session of the probe model, the last one of this process."""
        self.held = None

    def unload(self) -> None:
        """Unregister the plugin library, where onnxruntime can, unless one of its sessions is still alive."""
        if not self.registered or not hasattr(self.ort, "unregister_execution_provider_library"):
            return
        self.devices = []
        gc.collect()  # an exception keeps the frames that it went through, and their sessions
        kind = self.ort.InferenceSession
        if any(issubclass(type(each), kind) for each in gc.get_objects()):
            return  # its code must stay loaded
        try:
            self.ort.unregister_execution_provider_library(self.registered)
        except Exception as error:  # noqa: BLE001 - the exit goes on
            sys.stderr.write("unregister: %s\n" % clean(error))

    def session(
        self,
        model: str | bytes,
        job: dict[str, Any],
        options: dict[str, str] | None = None,
        adjust: Callable[[Any], None] = lambda _: None,
    ) -> Any:
        """Return a new session, which falls back to the CPU only node by node, as the placement shows.

        Missing settings of the job keep onnxruntime's default; ``adjust`` changes the session options last.

        Raises:
            FallbackError: onnxruntime silently left out a provider.
        """
        options = self.options if options is None else options
        if self.where_possible:
            wanted = {**job, "entries": {**self.where_possible, **job.get("entries", {})}}
            with contextlib.suppress(Exception):  # the model does not go with them; the next error counts
                return self._create(model, wanted, options, adjust)
        return self._create(model, job, options, adjust)

    def _create(
        self, model: str | bytes, job: dict[str, Any], options: dict[str, str], adjust: Callable[[Any], None]
    ) -> Any:
        settings = self.settings(job)
        adjust(settings)
        arguments: dict[str, Any] = {}
        if self.devices:
            settings.add_provider_for_devices(self.devices, options)
            for name in self.chain[1:]:
                if name != CPU:
                    settings.add_provider(name, {})
        else:
            arguments["providers"] = [(self.chain[0], options), *self.chain[1:]]
        if self.version >= (1, 23):
            arguments["enable_fallback"] = 0  # otherwise a refused session is silently remade on the CPU
        session = self.ort.InferenceSession(model, settings, **arguments)
        if self.version < (1, 23):
            session.disable_fallback()
        # Older versions fall back anyway, and no version raises an error if a library is missing.
        missing = [name for name in self.chain if name not in session.get_providers()]
        if missing:
            raise FallbackError("onnxruntime made the session without %s" % ", ".join(missing))
        return session

    def compiling(self, job: dict[str, Any]) -> Any:
        """Return the session options for onnxruntime's ``ModelCompiler``, which name the provider."""
        settings = self.settings(job)
        if self.devices:
            settings.add_provider_for_devices(self.devices, self.options)
        else:
            settings.add_provider(self.chain[0], self.options)
        return settings

    def settings(self, job: dict[str, Any]) -> Any:
        """Return the session options that a job asks for."""
        ort = self.ort
        settings = ort.SessionOptions()
        # One thread per session: sums keep their order, and workers do not compete for cores.
        settings.intra_op_num_threads = job.get("intra_op_threads", 1)
        settings.inter_op_num_threads = 1
        level = job.get("graph_optimization", "all").upper()
        name = "ORT_DISABLE_ALL" if level == "DISABLED" else "ORT_ENABLE_" + level
        if not hasattr(ort.GraphOptimizationLevel, name):
            reason = "onnxruntime %s has no optimization level %r" % (ort.__version__, level.lower())
            raise UnfeedableError(reason)
        settings.graph_optimization_level = getattr(ort.GraphOptimizationLevel, name)
        if job.get("execution_mode") == "parallel":
            settings.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        if self.records_assignment():
            settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        for key, value in {**self.entries, **job.get("entries", {})}.items():
            settings.add_session_config_entry(key, value)
        for name, size in job.get("fixed", {}).items():
            settings.add_free_dimension_override_by_name(name, size)
        return settings

    def records_assignment(self) -> bool:
        """Return whether this onnxruntime records the provider of nodes; 1.24 leaves some of them out."""
        return self.version >= (1, 25) and hasattr(
            self.ort.InferenceSession, "get_provider_graph_assignment_info"
        )

    def records_every_node(self) -> bool:
        """Return whether that record has the float16 nodes that onnxruntime casts and leaves to the CPU.

        Before 1.27 it lacks them, so a model seems to be wholly on the provider (onnxruntime PR 28268).
        """
        return self.version >= (1, 27) and self.records_assignment()
