"""Makes sessions of the execution provider (EP) as manifest.json says, and runs them."""

import importlib
import json
import os
import re
import tempfile
from concurrent.futures import Future

import numpy as np
from repro_values import feeds, found, narrow

CPU = "CPUExecutionProvider"
HERE = os.path.dirname(os.path.abspath(__file__))


class Target:
    """The EP with its options, as sessions are made of it."""

    def __init__(self, ort, manifest, replaced):
        told = manifest["target"]
        self.ort, self.chain, self.axes, self.devices = ort, told["provider"], manifest["axes"], []
        plugin, library = told.get("plugin"), replaced.pop("plugin", "")
        self.options = {**told.get("options", {}), **replaced}
        unknown = [key for key, value in self.options.items() if "<path>" in value]
        if unknown:
            raise RuntimeError(f"give a path for the option: {unknown[0]}=...")
        if not plugin and self.chain[0] not in ort.get_available_providers():
            raise RuntimeError(f"{self.chain[0]} is not in this onnxruntime {ort.__version__}")
        if plugin:
            if not library and not plugin.get("package"):
                raise RuntimeError("give the EP's library: plugin=PATH; it was {}".format(plugin["library"]))
            self.library = library or importlib.import_module(plugin["package"]).get_library_path()
            self.wanted = told.get("device", {})
            self.register()
        version = tuple(int(part) for part in re.findall(r"\d+", ort.__version__)[:2])
        # A profile tells who ran each node where no record does: before 1.27 it lacks some nodes of the CPU,
        # and for models in ORT format it is empty.
        self.profiles = version < (1, 27) or self.axes["scenario"] == "ort_format"
        self.fallback = {"enable_fallback": 0} if version >= (1, 23) else {}
        self.folder = tempfile.mkdtemp()
        self.graph_capture = manifest.get("graph_capture", [])  # option and device
        self.dynamic_options = manifest.get("dynamic_options", [])
        self.fixed = {}  # symbolic dimension -> its size
        print("onnxruntime {}, {}, options {}".format(ort.__version__, " > ".join(self.chain), self.options))

    def register(self):
        """Register the plugin library, and find its device."""
        self.ort.register_execution_provider_library(self.chain[0], self.library)
        offered = [one for one in self.ort.get_ep_devices() if one.ep_name == self.chain[0]]
        self.devices = [one for one in offered if matches(one, self.wanted)][:1]
        if not self.devices:
            raise RuntimeError("{} offers no device like {}".format(self.chain[0], self.wanted or "any"))

    def unregister(self):
        """Unregister the plugin library; none of its sessions may be alive."""
        self.devices = []
        self.ort.unregister_execution_provider_library(self.chain[0])

    def session(self, model, scenario="plain"):
        """Make a session as the scenario asks for it."""
        settings, model = self.settings(), os.path.join(HERE, model)
        if scenario == "cpu_fallback_disabled":
            settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        if scenario == "ort_format":
            model = self.saved(model, "session.save_model_format", "ORT", "model.ort")
        if scenario == "ep_context":
            settings.add_session_config_entry("ep.context_enable", "1")
            settings.add_session_config_entry("ep.context_embed_mode", "1")
            settings.add_session_config_entry(
                "ep.context_file_path", os.path.join(self.folder, "context.onnx")
            )
            self.made(model, settings)
            settings, model = self.settings(), os.path.join(self.folder, "context.onnx")
        if scenario == "from_bytes":
            settings.add_session_config_entry("session.model_external_initializers_file_folder_path", HERE)
            with open(model, "rb") as file:
                model = file.read()
        return self.made(model, settings)

    def settings(self):
        """Return the session options."""
        ort, settings = self.ort, self.ort.SessionOptions()
        threads = int(self.axes.get("intra_op_threads", 1))
        # A run that is started needs a thread beside the one that starts it.
        settings.intra_op_num_threads = max(threads, 2 if self.axes["scenario"] == "async_runs" else 1)
        settings.inter_op_num_threads = 1
        level = self.axes["graph_optimization"].upper()
        level = "ORT_DISABLE_ALL" if level == "DISABLED" else "ORT_ENABLE_" + level
        settings.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        if self.axes["execution_mode"] == "parallel":
            settings.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        for name, size in self.fixed.items():
            settings.add_free_dimension_override_by_name(name, size)
        for axis, value in self.axes.items():
            if axis.startswith("session."):
                settings.add_session_config_entry(axis[len("session.") :], value)
        if not self.profiles:
            settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        else:
            settings.enable_profiling = True
            settings.profile_file_prefix = os.path.join(self.folder, "profile")
        return settings

    def made(self, model, settings):
        """Return a session of the EP: no silent fallback to the CPU as a whole."""
        arguments = dict(self.fallback)
        if self.devices:
            settings.add_provider_for_devices(self.devices, self.options)
            for name in self.chain[1:]:
                if name != CPU:
                    settings.add_provider(name, {})
        else:
            arguments["providers"] = [(self.chain[0], self.options), *self.chain[1:]]
        session = self.ort.InferenceSession(model, settings, **arguments)
        if self.chain[0] not in session.get_providers():
            raise RuntimeError(f"onnxruntime made the session without {self.chain[0]}")
        return session

    def fix(self, model, inputs):
        """Have later sessions know the size of each symbolic dimension, as some inputs have it."""
        ports = self.ort.InferenceSession(os.path.join(HERE, model), providers=[CPU]).get_inputs()
        for port in ports:
            for name, size in zip(port.shape, getattr(inputs.get(port.name), "shape", ())):
                if isinstance(name, str):
                    self.fixed[name] = size

    def saved(self, model, key, value, name):
        """Return the path of the model as the CPU EP writes it in another format."""
        settings, path = self.settings(), os.path.join(self.folder, name)
        settings.optimized_model_filepath = path
        settings.add_session_config_entry(key, value)
        off = [] if self.chain == [CPU] else ["NchwcTransformer"]
        self.ort.InferenceSession(model, settings, providers=[CPU], disabled_optimizers=off)
        return path

    def nodes(self, session):
        """Count the nodes on the EP and on others."""
        if not self.profiles:
            placed = [
                (part.ep_name, len(part.get_nodes())) for part in session.get_provider_graph_assignment_info()
            ]
        else:
            with open(session.end_profiling(), encoding="utf-8", errors="replace") as file:
                ran = {
                    event["name"]: event["args"]["provider"]
                    for event in json.load(file)
                    if event.get("cat") == "Node" and event.get("args", {}).get("provider")
                }
            placed = [(provider, 1) for provider in ran.values()]
        own = {name.lower() for name in self.chain if name != CPU} or {CPU.lower()}
        on_ep = sum(count for name, count in placed if name.lower() in own)
        return {"EP": on_ep, "others": sum(count for _, count in placed) - on_ep}


def run(ort, session, inputs, *, bound=False, only=None):
    """Run once; return the outputs by name, or a single one."""
    fed = {name: feeds(value, ort) for name, value in inputs.items()}
    ports = [port for port in session.get_outputs() if only in (None, port.name)]
    names = [port.name for port in ports]
    if bound:
        binding = session.io_binding()
        for name, value in fed.items():
            if isinstance(value, np.ndarray):
                binding.bind_cpu_input(name, value)
            else:
                binding.bind_ortvalue_input(name, value)
        for name in names:
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        outputs = binding.get_outputs()
    elif any(narrow(port.type) for port in ports):  # numpy cannot hold these outputs
        values = {
            name: ort.OrtValue.ortvalue_from_numpy(value) if isinstance(value, np.ndarray) else value
            for name, value in fed.items()
        }
        outputs = session.run_with_ort_values(names, values)
    else:
        outputs = session.run(names, fed)
    return {port.name: found(output, port.type) for port, output in zip(ports, outputs)}


def start(ort, session, inputs):
    """Start a run with ``run_async``, and return the future of its outputs by name."""
    ended, ports = Future(), session.get_outputs()

    def take(values, _, error):
        if error:
            ended.set_exception(RuntimeError(error))
        else:
            ended.set_result({port.name: found(value, port.type) for port, value in zip(ports, values)})

    fed = {name: feeds(value, ort) for name, value in inputs.items()}
    session.run_async([port.name for port in ports], fed, take, None)
    return ended


def matches(device, wanted):
    """Whether a device has all properties of a filter."""
    told = device.device
    known = {
        "type": str(told.type).rsplit(".", 1)[-1],
        "vendor": told.vendor,
        **device.ep_metadata,
        "vendor_id": str(told.vendor_id),
        "device_id": str(told.device_id),
    }
    return all(str(known.get(key, "")).lower() == value.lower() for key, value in wanted.items())
