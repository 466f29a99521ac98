"""The agent: runs models inside a target's own process and reports what happened.

It is sent as source to the target's interpreter, so it depends on nothing of this package, only on the
standard library, numpy and whatever ``onnxruntime`` (>= 1.16) the target has; Python >= 3.9.

Messages are plain tuples over one channel. From the harness: one configuration dict, then jobs
``("job", id, job)`` until ``("stop",)``. To the harness:

* ``("phase", id or None, phase)`` before a phase, so that a death or a hang is placed; a job begins in
  ``create`` and its result ends in ``teardown`` without saying so, for each message has its price;
* ``("ready", fingerprint)``, or ``("unavailable", cause, reason, output, fingerprint)``, or
  ``("rejected", key, reason, output, fingerprint)`` where one provider option is refused;
* ``("result", id, result)`` once outputs are known, then ``("done", id, teardown_ms, output)``.

The process serves one set of provider options: numeric state of some providers leaks from session to
session (QNN keeps the first ``soc_model``, CANN the first ``precision_mode``).
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.metadata
import json
import os
import platform
import re
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# A Relu over float32[4] at opset 13, IR 7: what the smallest session on any provider can be made of.
PROBE_MODEL = bytes.fromhex(
    "080712003a330a0c0a0178120179220452656c751201705a0f0a0178120a0a08080112040a020804"
    "620f0a0179120a0a08080112040a02080442040a00100d"
)
OUTPUT_LIMIT = 16384  # bytes of captured native output kept for one cell, from its head and its tail
REPEAT_LIMIT_MS = 500  # a first run that took longer is not repeated
CPU = "CPUExecutionProvider"

# ONNX TensorProto.DataType numbers of the element types that numpy lacks, and their width in bits.
NARROW = {
    "bfloat16": (16, 16),
    "float8e4m3fn": (17, 8),
    "float8e4m3fnuz": (18, 8),
    "float8e5m2": (19, 8),
    "float8e5m2fnuz": (20, 8),
    "uint4": (21, 4),
    "int4": (22, 4),
    "float4e2m1": (23, 4),
    "float8e8m0": (24, 8),
    "uint2": (25, 2),
    "int2": (26, 2),
}
MAP_TYPE = re.compile(r"map\((\w+),tensor\((\w+)\)\)")
MAP_DTYPES = {"float": "float32", "double": "float64", "int64": "int64", "string": "O"}
MISSING_LIBRARY = re.compile(
    # Linux, with nothing between the name and the complaint: a loader names the asking library before it.
    r"([\w.+-]+\.so[.\d]*)[^\w\n]{1,6}(?:cannot open shared object file|not found|No such file)"
    r"|which depends on \"([^\"\n]+)\" which is missing"  # onnxruntime, on Windows
    r"|Library not loaded: ([^\s\"]+)"  # macOS
)


class UnavailableError(Exception):
    """The target cannot be used; ``args`` are the cause and the reason."""


class OptionRejectedError(Exception):
    """A provider option is refused; ``args`` are the option's key and the reason."""


class FallbackError(Exception):
    """onnxruntime made a session on other providers than it was asked for, without an error of its own."""


class UnfeedableError(Exception):
    """A value that the Python API of this onnxruntime cannot take or give; never the provider's fault."""


def main(channel: Any) -> None:
    """Serve one harness over ``channel`` until it says stop or goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness's to handle; it stops its agents
    capture = Capture()
    config = channel.receive()
    limit_memory(config.get("memory_limit_mb"))
    fingerprint = {"python": platform.python_version(), "platform": platform.platform()}
    try:
        channel.send(("phase", None, "start"))
        ort = import_onnxruntime()
        fingerprint.update(describe_runtime(ort))
        channel.send(("phase", None, "register"))
        target = Target(ort, config)
        fingerprint.update(target.fingerprint)
        target.prove()
    except UnavailableError as error:
        printed = capture.take()
        cause, reason = diagnose(error.args[0], error.args[1], printed)
        channel.send(sendable(("unavailable", cause, reason, printed, fingerprint)))
        return
    except OptionRejectedError as error:
        key, reason = error.args
        channel.send(sendable(("rejected", key, reason, capture.take(), fingerprint)))
        return
    capture.take()
    channel.send(sendable(("ready", fingerprint)))
    while True:
        try:
            message = channel.receive()
        except EOFError:
            return
        if message[0] == "stop":
            return
        serve(channel, target, capture, message[1], message[2])


def serve(channel: Any, target: Target, capture: Capture, job_id: int, job: dict[str, Any]) -> None:
    """Run one job: create, run, send the result, then tear the session down."""
    result: dict[str, Any] = {"status": "ok", "phase": "create", "timings_ms": {}}
    session = None

    def enter(phase: str) -> None:
        result["phase"] = phase
        channel.send(("phase", job_id, phase))

    try:
        started = time.perf_counter()
        session = target.session(job["model"], job)
        result["timings_ms"]["create"] = elapsed_ms(started)
        result["providers"] = sendable(session.get_providers())
        run(session, job, result, enter)
        result["providers_after"] = sendable(session.get_providers())
        result["placement"] = sendable(target.placement(session, job, enter))
    except UnfeedableError as error:
        result.update(status="unfeedable", message=clean(error))
    except MemoryError as error:
        result.update(status="error", kind="MemoryError", message=clean(error) or "out of memory")
    except Exception as error:  # noqa: BLE001 - whatever the provider raises is this cell's result
        result.update(status="error", kind=clean(type(error).__name__), message=clean(error))
    result["output"] = capture.take(keep=True)
    channel.send(("result", job_id, result))
    started = time.perf_counter()
    del session
    channel.send(("done", job_id, elapsed_ms(started), capture.take()))


def run(session: Any, job: dict[str, Any], result: dict[str, Any], enter: Callable[[str], None]) -> None:
    """Run every data set; the first one twice where that is cheap, to see results that differ by run."""
    names = [output.name for output in session.get_outputs()]
    types = [output.type.lower() for output in session.get_outputs()]
    result["names"] = sendable(names)
    result["outputs"] = []
    for index, inputs in enumerate(job["data_sets"]):
        enter("run")  # each time: the limit holds for one run
        feeds = {name: to_feed(wire) for name, wire in inputs}
        started = time.perf_counter()
        outputs = call(session, names, types, feeds)
        if index == 0:
            result["timings_ms"]["first_run"] = elapsed_ms(started)
        result["outputs"].append(outputs)
        if index == 0 and result["timings_ms"]["first_run"] < REPEAT_LIMIT_MS:
            again = call(session, names, types, feeds)
            if again != outputs:
                result["second"] = again


def call(session: Any, names: list[str], types: list[str], feeds: dict[str, Any]) -> list[Any]:
    """Run once; outputs in wire form, in the order of ``names``."""
    if not any(narrow_type(output_type) for output_type in types):
        return [to_wire(value, kind) for value, kind in zip(session.run(names, feeds), types)]
    # numpy cannot hold these outputs, so they are read from the memory of OrtValues instead.
    values = {}
    for name, feed in feeds.items():
        if isinstance(feed, (list, dict, type(None))) or (
            isinstance(feed, np.ndarray) and feed.dtype.kind == "O"
        ):
            raise UnfeedableError("containers or strings together with an output type that numpy lacks")
        values[name] = ort_value().ortvalue_from_numpy(feed) if isinstance(feed, np.ndarray) else feed
    return [
        value_to_wire(value, narrow_type(output_type))
        for value, output_type in zip(session.run_with_ort_values(names, values), types)
    ]


def to_feed(wire: Any) -> Any:
    """A value in wire form as what ``InferenceSession.run`` takes."""
    if wire is None:
        return None
    if "sequence" in wire:
        items = [to_feed(item) for item in wire["sequence"]]
        if any(not isinstance(item, (np.ndarray, dict, list)) for item in items):
            raise UnfeedableError("a sequence of an element type that numpy lacks")
        return items
    if "keys" in wire:
        return dict(zip(to_feed(wire["keys"]).tolist(), to_feed(wire["values"]).tolist()))
    dtype, shape, data = wire["dtype"], wire["shape"], wire["data"]
    if dtype == "string":
        return np.array(data, dtype=object).reshape(shape)
    if dtype not in NARROW:
        return np.frombuffer(data, dtype=dtype).reshape(shape)
    try:
        value = ort_value().ortvalue_from_shape_and_type(shape, NARROW[dtype][0])
    except Exception as error:  # onnxruntime < 1.20 knows numpy's types only
        reason = "this onnxruntime's Python API takes no %s tensors: %s" % (dtype, error)
        raise UnfeedableError(reason) from error
    if data:
        ctypes.memmove(value.data_ptr(), data, len(data))
    return value


def to_wire(value: Any, onnx_type: str = "") -> Any:
    """What ``InferenceSession.run`` gave, in wire form; a map's element types come from the declared type."""
    if value is None:
        return None
    if isinstance(value, dict):
        found = MAP_TYPE.search(onnx_type)
        kinds = [MAP_DTYPES.get(kind) for kind in found.groups()] if found else [None, None]
        keys, values = np.array(list(value), kinds[0]), np.array(list(value.values()), kinds[1])
        return {"keys": to_wire(keys), "values": to_wire(values)}
    if isinstance(value, (list, tuple)):
        return {"sequence": [to_wire(item, onnx_type) for item in value]}
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        texts = [str(item).encode("utf-8", "replace").decode("utf-8") for item in array.ravel().tolist()]
        return {"dtype": "string", "shape": list(array.shape), "data": texts}
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.tobytes()}


def value_to_wire(value: Any, narrow: str) -> Any:
    """An OrtValue on the CPU, in wire form."""
    if not narrow:
        return to_wire(value.numpy())
    shape = list(value.shape())
    elements = 1
    for extent in shape:
        elements *= extent
    nbytes = (elements * NARROW[narrow][1] + 7) // 8
    data = ctypes.string_at(value.data_ptr(), nbytes) if nbytes else b""
    return {"dtype": narrow, "shape": shape, "data": data}


def ort_value() -> Any:
    """The class ``onnxruntime.OrtValue``; long since imported where this is called."""
    return importlib.import_module("onnxruntime").OrtValue


def narrow_type(onnx_type: str) -> str:
    """``bfloat16`` for ``tensor(bfloat16)``; an empty string for a type that numpy can hold."""
    inner = onnx_type[len("tensor(") : -1] if onnx_type.startswith("tensor(") else ""
    return inner if inner in NARROW else ""


class Target:
    """A provider with its options, as sessions of this process use it."""

    def __init__(self, ort: Any, config: dict[str, Any]) -> None:
        self.ort = ort
        self.chain = list(config["providers"])
        self.options = dict(config["options"])
        self.devices: list[Any] = []
        self.held: Any = None
        self.version = tuple(int(part) for part in re.findall(r"\d+", ort.__version__)[:2])
        self.fingerprint: dict[str, Any] = {"providers": self.chain, "options": self.options}
        if config.get("plugin"):
            self.register(config["plugin"], config.get("device") or {})
        else:
            self.check_built()

    def check_built(self) -> None:
        """Refuse a provider that this build does not have: onnxruntime would take the CPU without a word."""
        available = self.ort.get_available_providers()
        for name in self.chain:
            if name not in available:
                raise UnavailableError(
                    "not_in_build", "%s is not in this onnxruntime; it has %s" % (name, ", ".join(available))
                )

    def register(self, plugin: str, device_filter: dict[str, str]) -> None:
        """Register the plugin library and choose the device that matches the filter."""
        path, version = plugin_library(plugin)
        self.fingerprint["plugin"] = {"library": path, "version": version}
        name = self.chain[0]
        if not hasattr(self.ort, "register_execution_provider_library"):
            reason = "onnxruntime %s knows no plugins; 1.23 is the first" % self.ort.__version__
            raise UnavailableError("version_conflict", reason)
        try:
            # QNN takes its provider name from this registration name; the others ignore it.
            self.ort.register_execution_provider_library(name, path)
        except Exception as error:
            raise UnavailableError("registration_failed", clean(error)) from error
        offered = [device for device in self.ort.get_ep_devices() if device.ep_name == name]
        self.devices = [device for device in offered if device_matches(device, device_filter)][:1]
        self.fingerprint["devices"] = [describe_device(device) for device in offered]
        if not self.devices:
            names = sorted({device.ep_name for device in self.ort.get_ep_devices()} - {CPU})
            offer = "; ".join(json.dumps(describe_device(device)["device"]) for device in offered)
            raise UnavailableError(
                "no_device",
                "%s is registered but offers no device%s; offered: %s"
                % (name, " matching %s" % json.dumps(device_filter) if device_filter else "", offer or names),
            )

    def prove(self) -> None:
        """Make a session of a one-node model: with the options, else find out which option is refused."""
        error = self.refusal(self.options)
        if error is None:
            return
        for key in self.options:
            if self.refusal({other: self.options[other] for other in self.options if other != key}) is None:
                raise OptionRejectedError(key, error)
        if self.options and self.refusal({}) is None:
            raise OptionRejectedError(", ".join(self.options), error)
        raise UnavailableError("registration_failed", error)

    def refusal(self, options: dict[str, str]) -> str | None:
        """Why a session of the probe model cannot be made with these options; None where it can."""
        try:
            # Held for as long as the process: the last session to go would take with it what sessions of a
            # provider share (WebGPU's device and its compiled shaders), to be made anew for each model.
            self.held = self.session(PROBE_MODEL, {}, options)
        except Exception as error:  # noqa: BLE001 - the text is the result
            return clean(error)
        return None

    def session(
        self,
        model: str | bytes,
        job: dict[str, Any],
        options: dict[str, str] | None = None,
        profile_prefix: str = "",
    ) -> Any:
        """Create a session whose only fallback is the node-wise one, which placement shows.

        Args:
            model: Path or bytes of the model.
            job: Session settings of the cell; absent ones keep onnxruntime's default.
            options: Provider options in place of the target's own.
            profile_prefix: Switches profiling on, with this prefix for the file.
        """
        options = self.options if options is None else options
        settings = self.settings(job)
        if profile_prefix:
            settings.enable_profiling = True
            settings.profile_file_prefix = profile_prefix
        arguments: dict[str, Any] = {}
        if self.devices:
            settings.add_provider_for_devices(self.devices, options)
            for name in self.chain[1:]:
                if name != CPU:
                    settings.add_provider(name, {})
        else:
            arguments["providers"] = [(self.chain[0], options), *self.chain[1:]]
        if self.version >= (1, 23):
            arguments["enable_fallback"] = 0  # else a refused session is silently remade on the CPU
        session = self.ort.InferenceSession(model, settings, **arguments)
        if self.version < (1, 23):
            session.disable_fallback()
        # Older versions cannot be told so; and where a library is missing no version raises an error.
        missing = [name for name in self.chain if name not in session.get_providers()]
        if missing:
            raise FallbackError("onnxruntime made the session without %s" % ", ".join(missing))
        return session

    def settings(self, job: dict[str, Any]) -> Any:
        """The session options that a job asks for."""
        ort = self.ort
        settings = ort.SessionOptions()
        # One thread a session: sums keep their order, and workers do not fight for cores.
        settings.intra_op_num_threads = 1
        settings.inter_op_num_threads = 1
        level = job.get("graph_optimization", "all").upper()
        levels = ort.GraphOptimizationLevel
        if not hasattr(levels, "ORT_ENABLE_" + level) and level != "DISABLED":
            reason = "onnxruntime %s has no optimization level %r" % (ort.__version__, level.lower())
            raise UnfeedableError(reason)
        settings.graph_optimization_level = (
            levels.ORT_DISABLE_ALL if level == "DISABLED" else getattr(levels, "ORT_ENABLE_" + level)
        )
        if job.get("execution_mode") == "parallel":
            settings.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        if self.records_assignment():
            settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        return settings

    def records_assignment(self) -> bool:
        """Whether this onnxruntime can say which node went where."""
        return hasattr(self.ort.InferenceSession, "get_provider_graph_assignment_info")

    def placement(self, session: Any, job: dict[str, Any], enter: Callable[[str], None]) -> dict[str, Any]:
        """Count nodes on the chain's providers and on the CPU.

        The assignment record comes first. Where it is absent (before 1.24), known to be incomplete (1.24)
        or empty (nothing left to run, or an ORT-format model), a profiled run of the same model decides.
        """
        groups: list[tuple[str, list[str]]] = []
        if self.records_assignment():
            groups = [
                (subgraph.ep_name, [node.op_type for node in subgraph.get_nodes()])
                for subgraph in session.get_provider_graph_assignment_info()
            ]
        source = "assignment"
        if self.version < (1, 25) or not groups:
            groups, source = self.profiled(job, enter), "profile"
        own = {name.lower() for name in self.chain if name != CPU} or {CPU.lower()}
        count: dict[bool, dict[str, int]] = {True: {}, False: {}}
        for provider, op_types in groups:
            ops = count[provider.lower() in own]
            for op_type in op_types:
                ops[op_type] = ops.get(op_type, 0) + 1
        return {
            "ep_nodes": sum(count[True].values()),
            "cpu_nodes": sum(count[False].values()),
            "ep_ops": count[True],
            "cpu_ops": count[False],
            "partitions": sum(provider.lower() in own for provider, _ in groups),
            "source": source,
        }

    def profiled(self, job: dict[str, Any], enter: Callable[[str], None]) -> list[tuple[str, list[str]]]:
        """``(provider, [operator type])`` of each node that a profiled run executed."""
        with tempfile.TemporaryDirectory() as folder:
            enter("create")
            session = self.session(job["model"], job, profile_prefix=os.path.join(folder, "profile"))
            names = [output.name for output in session.get_outputs()]
            types = [output.type.lower() for output in session.get_outputs()]
            enter("run")
            call(session, names, types, {name: to_feed(wire) for name, wire in job["data_sets"][0]})
            with open(session.end_profiling(), encoding="utf-8", errors="replace") as file:
                events = json.load(file)
        executed: dict[str, tuple[str, list[str]]] = {}
        for event in events:
            arguments = event.get("args") or {}
            # A node in a loop runs many times, hence the dict; copies between devices are no nodes.
            if event.get("cat") == "Node" and arguments.get("provider"):
                op_type = arguments.get("op_name", "")
                if not op_type.startswith("Memcpy"):
                    executed[event["name"]] = (arguments["provider"], [op_type])
        return list(executed.values())


class Capture:
    """Collects at descriptor level what the provider and its libraries print.

    A local harness hands over an append-mode file as stderr, which it can still read when this process has
    died. Elsewhere (ssh, a container) stderr is a pipe, and a file of our own takes its place.
    """

    def __init__(self) -> None:
        if not stat.S_ISREG(os.fstat(2).st_mode):
            handle, path = tempfile.mkstemp(prefix="ep-harness-")
            os.close(handle)
            self.file = open(path, "a+b", buffering=0)  # noqa: SIM115 - lives as long as the process
            os.dup2(self.file.fileno(), 2)
            if os.name == "posix":
                os.unlink(path)
        os.dup2(2, 1)
        self.flush: Any = None
        with contextlib.suppress(OSError, AttributeError):  # else what C code prints comes at exit
            self.flush = ctypes.CDLL(None if os.name == "posix" else "msvcrt").fflush

    def peek(self) -> str:
        """What was printed since the last ``take``: its head and its tail, with the cut marked."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self.flush:
            self.flush(None)
        size = os.fstat(2).st_size
        if not size:
            return ""
        half = OUTPUT_LIMIT // 2
        os.lseek(2, 0, os.SEEK_SET)
        data = os.read(2, min(size, OUTPUT_LIMIT))
        if size > OUTPUT_LIMIT:
            os.lseek(2, -half, os.SEEK_END)
            cut = b"\n[... %d bytes cut ...]\n" % (size - OUTPUT_LIMIT)
            data = data[:half] + cut + os.read(2, half)
        return data.decode("utf-8", "replace")

    def take(self, *, keep: bool = False) -> str:
        """``peek``, then start anew unless ``keep``."""
        text = self.peek()
        if text and not keep:
            os.ftruncate(2, 0)
        return text


def import_onnxruntime() -> Any:
    """Import onnxruntime, or say why not."""
    try:
        ort = importlib.import_module("onnxruntime")
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise UnavailableError("import_failed", "import onnxruntime: %s" % clean(error)) from error
        raise UnavailableError(
            "not_installed", "no onnxruntime in %s; install one, such as 'onnxruntime'" % sys.executable
        ) from error
    except Exception as error:
        raise UnavailableError("import_failed", "import onnxruntime: %s" % clean(error)) from error
    if not hasattr(ort, "InferenceSession"):
        raise UnavailableError(
            "import_failed",
            "'onnxruntime' in %s is hollow: a distribution that shared it was removed" % sys.prefix,
        )
    return ort


def describe_runtime(ort: Any) -> dict[str, Any]:
    """The versions that decide a result."""
    packages = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if "onnx" in name.lower() or name.lower() == "numpy":
            packages[name] = distribution.version
    return {
        "onnxruntime": ort.__version__,
        "machine": platform.machine(),
        "packages": packages,
        "available_providers": list(ort.get_available_providers()),
        "session": {"intra_op_num_threads": 1, "inter_op_num_threads": 1},
    }


def diagnose(cause: str, reason: str, printed: str) -> tuple[str, str]:
    """Look behind a failure to import or register: a cause that somebody can mend, where there is one."""
    if cause not in ("import_failed", "registration_failed"):
        return cause, reason
    # Some providers say on stderr alone what the loader did not find.
    found = MISSING_LIBRARY.search(reason) or MISSING_LIBRARY.search(printed)
    if found:
        library = os.path.basename(next(filter(None, found.groups())))
        return "library_missing", "%s is missing: %s" % (library, reason)
    owners = owners_of_onnxruntime()
    if len(owners) > 1:
        return "version_conflict", "%s both own onnxruntime: %s" % (" and ".join(owners), reason)
    return cause, reason


def owners_of_onnxruntime() -> list[str]:
    """The distributions that own the import package ``onnxruntime``; more than one is a conflict."""
    owners = []
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if name.lower().startswith("onnxruntime"):
            files = distribution.files or []
            if any(str(file).replace(os.sep, "/") == "onnxruntime/__init__.py" for file in files):
                owners.append(name)
    return owners


def plugin_library(plugin: str) -> tuple[str, str]:
    """Path and version of a plugin given as an import package or as a path."""
    if os.sep in plugin or "/" in plugin or plugin.lower().endswith((".so", ".dll", ".dylib")):
        path = os.path.abspath(os.path.expanduser(plugin))
        if not os.path.isfile(path):
            raise UnavailableError("not_installed", "no plugin library at %s" % path)
        return path, ""
    try:
        module = importlib.import_module(plugin)
        path = str(module.get_library_path())
    except ModuleNotFoundError as error:
        raise UnavailableError(
            "not_installed", "plugin package %r is not installed in %s" % (plugin, sys.prefix)
        ) from error
    except Exception as error:
        raise UnavailableError("import_failed", "plugin package %r: %s" % (plugin, clean(error))) from error
    try:
        version = importlib.metadata.version(plugin.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        version = str(getattr(module, "__version__", ""))
    return path, version


def describe_device(device: Any) -> dict[str, Any]:
    """An ``OrtEpDevice`` as plain values."""
    hardware = device.device
    return {
        "provider": device.ep_name,
        "device": {
            "type": str(hardware.type).rsplit(".", 1)[-1],
            "vendor": hardware.vendor,
            "vendor_id": str(hardware.vendor_id),
            "device_id": str(hardware.device_id),
            **{str(key): str(value) for key, value in hardware.metadata.items()},
        },
        "metadata": {str(key): str(value) for key, value in device.ep_metadata.items()},
    }


def device_matches(device: Any, device_filter: dict[str, str]) -> bool:
    """Whether every key of the filter has its value, in the hardware's facts or the provider's metadata."""
    described = describe_device(device)
    facts = {**described["metadata"], **described["device"]}
    return all(facts.get(key, "").lower() == str(value).lower() for key, value in device_filter.items())


def limit_memory(limit_mb: int | None) -> None:
    """Cap the address space where the system can, so that a runaway allocation fails here alone."""
    if limit_mb:
        try:
            import resource
        except ImportError:  # Windows
            return
        resource.setrlimit(resource.RLIMIT_AS, (limit_mb << 20, limit_mb << 20))


def elapsed_ms(started: float) -> float:
    """Milliseconds since ``started`` on the performance counter."""
    return round((time.perf_counter() - started) * 1000, 4)


def clean(text: object, limit: int = 4000) -> str:
    """Text that can be encoded, of bounded length, of an object whose own idea of text may be broken."""
    try:
        shown = str(text)
    except Exception as error:  # noqa: BLE001 - such as an exception whose message is not UTF-8
        shown = "%s without a readable text (%s)" % (type(text).__name__, type(error).__name__)
    return shown[:limit].encode("utf-8", "replace").decode("utf-8")


def sendable(value: Any) -> Any:
    """The same value out of what a channel can carry, whatever names and versions a provider gives."""
    if value is None or type(value) in (bool, int, float, bytes):
        return value
    if isinstance(value, dict):
        return {sendable(key): sendable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [sendable(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return clean(value, limit=OUTPUT_LIMIT * 2)


if __name__ == "__channelexec__":
    main(channel)  # type: ignore[name-defined]  # noqa: F821 - execnet puts the channel here
