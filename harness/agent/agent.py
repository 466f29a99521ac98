"""The agent: runs models inside a target's own process and reports what happened.

It is sent as source to the target's interpreter, so it depends on nothing of this package, only on the
standard library, numpy and whatever ``onnxruntime`` (>= 1.16) the target has; Python >= 3.9.

Messages are plain tuples over one channel. From the harness: one configuration dict, then jobs
``("job", id, job)`` until ``("stop",)``. To the harness:

* ``("imported",)`` once onnxruntime is there: what follows depends on the configuration;
* ``("phase", id, phase)`` before a phase, so that a death or a hang is placed; a job begins in
  ``create`` and its result ends in ``teardown`` without saying so, for each message has its price;
* ``("ready", fingerprint)``, or ``("unavailable", cause, reason, output, fingerprint)``, or
  ``("rejected", key, reason, output, fingerprint)`` where one provider option is refused;
* ``("need", id, name, offset)`` for a piece of a file of a job's model, where that travels; the answer is
  ``("model", id, name, offset, bytes)``, with None for bytes that are not to be had;
* ``("result", id, result)`` once outputs are known, then ``("done", id, after)`` once the session is gone:
  ``teardown_ms``, ``rss_mib`` where the system tells, and ``sick`` where this process had better end.

The process serves one set of provider options: numeric state of some providers leaks from session to
session (QNN keeps the first ``soc_model``, CANN the first ``precision_mode``).
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import hashlib
import importlib
import importlib.metadata
import json
import mmap
import os
import platform
import re
import shutil
import signal
import stat
import sys
import tempfile
import time
import weakref
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
FILE_FROM = 256 << 10  # bytes from which on a tensor travels as a file: smaller ones a message takes sooner
MAP_FROM = 1 << 20  # bytes from which on a file is mapped, not read
MAP_LIMIT = 64  # mappings at a time: each holds a descriptor, of which macOS grants a process 256
MAP_ALWAYS_FROM = 64 << 20  # bytes from which on a file is mapped nevertheless; memory does not hold many
MAPPINGS: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
INLINE_LIMIT = 1 << 30  # bytes of tensors in one message; execnet's own end is at 2 GiB
WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
READ_FLAGS = os.O_RDONLY  # each of the others is there on some systems only
for flag in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK", "O_TEMPORARY"):
    READ_FLAGS |= getattr(os, flag, 0)
STORE_LIMIT = 4 << 30  # bytes of models from elsewhere that are kept
STORE_IN_USE_S = 600  # seconds after its last use in which a model is not deleted: a session may be due
STORE_ABANDONED_S = 86400  # seconds after which an incomplete model has nobody who completes it
NEW = ".new-"  # what the name of a model's folder begins with as long as it is incomplete
CPU = "CPUExecutionProvider"
PROBE_INPUT = (-2.0, -0.5, 0.5, 3.0)  # exact at every precision that a provider may choose to compute in
PARENT = "EP_HARNESS_PARENT"  # the variable that holds the harness's process id, where that is a neighbour
PR_SET_PDEATHSIG = 1
try:
    STATM: int | None = os.open("/proc/self/statm", os.O_RDONLY)  # kept open: it is asked after each session
except OSError:  # no Linux
    STATM = None
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

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

OTHER_NUMPY = re.compile(r"compiled using NumPy 1\.x cannot be run in\s+NumPy ([\d.]+)")


class UnavailableError(Exception):
    """The target cannot be used; ``args`` are the cause and the reason."""


class OptionRejectedError(Exception):
    """A provider option is refused; ``args`` are the option's key and the reason."""


class FallbackError(Exception):
    """onnxruntime made a session on other providers than it was asked for, without an error of its own."""


class UnfeedableError(Exception):
    """A value that the Python API of this onnxruntime cannot take or give; never the provider's fault."""


class NoRoomError(UnfeedableError):
    """Tensors that fit neither into a folder for them nor into a message."""


def main(channel: Any) -> None:
    """Serve one harness over ``channel`` until it says stop or goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness's to handle; it stops its agents
    die_with(os.environ.pop(PARENT, ""))
    capture = Capture()
    fingerprint: dict[str, Any] = {"python": platform.python_version(), "platform": platform.platform()}
    try:
        fingerprint.update(describe_packages())
        ort = import_onnxruntime()
        fingerprint.update(describe_runtime(ort))
        channel.send(("imported",))
        config = channel.receive()  # a spare process waits here until it is needed
        limit_memory(config.get("memory_limit_mb"))
        target = Target(ort, config, fingerprint)
        target.prove()
    except UnavailableError as error:
        printed = capture.take()
        owners = fingerprint.get("owners", [])
        cause, reason = diagnose(error.args[0], error.args[1], printed, owners)
        channel.send(sendable(("unavailable", cause, reason, printed, fingerprint)))
        return
    except OptionRejectedError as error:
        key, reason = error.args
        channel.send(sendable(("rejected", key, reason, capture.take(), fingerprint)))
        return
    capture.take()
    channel.send(sendable(("ready", fingerprint)))
    desk = Desk(channel)
    while True:
        try:
            message = desk.next()
        except EOFError:
            return
        if message[0] == "stop":
            return
        if not serve(channel, target, capture, message[1], message[2]):
            return
        del message  # and with it the inputs, before the next job makes room for its own


def serve(channel: Any, target: Target, capture: Capture, job_id: int, job: dict[str, Any]) -> bool:
    """Run one job: create, run, send the result, then tear the session down.

    Returns:
        Whether this process is fit for another job. Some errors stay: after CUDA's error 700 every later
        call fails, and the models to come would be blamed for it.
    """
    result: dict[str, Any] = {"status": "ok", "phase": "create", "timings_ms": {}}
    session = None

    def enter(phase: str) -> None:
        result["phase"] = phase
        channel.send(("phase", job_id, phase))

    target.files.begin()
    try:
        take_in(job, target.files)
        started = time.perf_counter()
        session = target.session(job["model"], job)
        result["timings_ms"]["create"] = elapsed_ms(started)
        result["providers"] = sendable(session.get_providers())
        run(session, job, result, enter, target.files)
        result["providers_after"] = sendable(session.get_providers())
        result["placement"] = sendable(target.placement(session, job, enter))
    except UnfeedableError as error:
        result.update(status="unfeedable", message=clean(error))
    except MemoryError as error:
        result.update(status="error", kind="MemoryError", message=clean(error) or "out of memory")
    except Exception as error:  # noqa: BLE001 - whatever the provider raises is this cell's result
        # Where a model lies that came from elsewhere is nothing that anybody there knows.
        message = clean(error).replace(job.get("folder") or "\0", "")
        result.update(status="error", kind=clean(type(error).__name__), message=message)
    if result["status"] != "ok":
        target.files.discard()
    result["output"] = capture.take(keep=True)
    channel.send(("result", job_id, result))
    started = time.perf_counter()
    del session
    after: dict[str, Any] = {"teardown_ms": elapsed_ms(started), "rss_mib": resident_mib()}
    sick = target.sickness() if result["status"] == "error" else ""
    if sick:
        after["sick"] = sick
    capture.take()  # what a teardown prints must not pass for the next cell's words
    channel.send(("done", job_id, after))
    return not sick


def take_in(job: dict[str, Any], files: TensorFiles) -> None:
    """Complete a job with what came beside its message.

    Raises:
        UnfeedableError: Something did not come.
    """
    if "trouble" in job:
        raise UnfeedableError(job["trouble"])
    for inputs in job["data_sets"]:
        for _, wire in inputs:
            files.receive(wire)


def run(
    session: Any,
    job: dict[str, Any],
    result: dict[str, Any],
    enter: Callable[[str], None],
    files: TensorFiles,
) -> None:
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
        result["outputs"].append([files.send(wire) for wire in outputs])
        if index == 0 and result["timings_ms"]["first_run"] < REPEAT_LIMIT_MS:
            again = call(session, names, types, feeds)
            if again != outputs:
                result["second"] = [files.send(wire) for wire in again]


def call(session: Any, names: list[str], types: list[str], feeds: dict[str, Any]) -> list[Any]:
    """Run once; outputs in wire form, in the order of ``names``, large ones as ``Bulk`` still."""
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
    if len(data):
        ctypes.memmove(value.data_ptr(), np.frombuffer(data, np.uint8).ctypes.data, len(data))
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
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": contents(array)}


def contents(array: Any) -> Any:
    """The bytes of an array in C order; those of a large one stay where they are, as ``Bulk``."""
    if array.nbytes < FILE_FROM:
        return array.tobytes()
    return Bulk(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def value_to_wire(value: Any, narrow: str) -> Any:
    """An OrtValue on the CPU, in wire form."""
    if not narrow:
        return to_wire(value.numpy())
    shape = list(value.shape())
    elements = 1
    for extent in shape:
        elements *= extent
    nbytes = (elements * NARROW[narrow][1] + 7) // 8
    data: Any = b""
    if nbytes >= FILE_FROM:
        memory = (ctypes.c_uint8 * nbytes).from_address(value.data_ptr())
        data = Bulk(np.ctypeslib.as_array(memory), value)
    elif nbytes:
        data = ctypes.string_at(value.data_ptr(), nbytes)
    return {"dtype": narrow, "shape": shape, "data": data}


def ort_value() -> Any:
    """The class ``onnxruntime.OrtValue``; long since imported where this is called."""
    return importlib.import_module("onnxruntime").OrtValue


def narrow_type(onnx_type: str) -> str:
    """``bfloat16`` for ``tensor(bfloat16)``; an empty string for a type that numpy can hold."""
    inner = onnx_type[len("tensor(") : -1] if onnx_type.startswith("tensor(") else ""
    return inner if inner in NARROW else ""


class Bulk:
    """Bytes too many to be copied: a view of memory that ``owner`` keeps, for a moment, as it is."""

    BLOCK = 256 << 10  # bytes compared at once: what a processor's cache can hold

    def __init__(self, view: Any, owner: Any = None) -> None:
        self.view = view
        self.owner = owner

    def __len__(self) -> int:
        return len(self.view)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bulk) or len(self) != len(other):
            return False
        for start in range(0, len(self), self.BLOCK):
            mine, others = self.view[start : start + self.BLOCK], other.view[start : start + self.BLOCK]
            words = np.uint64 if len(mine) % 8 == 0 else np.uint8
            if not np.array_equal(mine.view(words), others.view(words)):
                return False
        return True

    __hash__ = None  # type: ignore[assignment]  # what it shows may change


class TensorFiles:
    """Large tensors on their way between a harness and an agent of one machine, as files.

    Either side has one of these, for the same folders. A large tensor's wire form has the name of a file in
    place of its data: ``{"dtype": "float32", "shape": [1000, 1000], "file": "out-1"}``. It is written
    once, straight from where it lies, then mapped by the other side, which deletes it at once: what is
    mapped stays readable until it is no longer used.

    Args:
        folders: Where files may lie, the first choice first; none where the two share no file system.
        prefix: What the names of files begin with that are written here.
        what: What is sent from here, for people.
    """

    NAME = re.compile(r"[a-z]{1,20}-[0-9]{1,20}")

    def __init__(self, folders: list[str], prefix: str, what: str) -> None:
        self.folders = folders
        self.prefix = prefix
        self.what = what
        self.number = 0
        self.begin()

    def begin(self) -> None:
        """Another message begins."""
        self.written: list[str] = []
        self.file_bytes = 0
        self.inline_bytes = 0

    def send(self, value: Any) -> Any:
        """A value in wire form, fit for the message: large tensors are written to files.

        Raises:
            NoRoomError: They fit nowhere.
        """
        if value is None:
            return None
        if "sequence" in value:
            return {"sequence": [self.send(item) for item in value["sequence"]]}
        if "keys" in value:
            return {"keys": self.send(value["keys"]), "values": self.send(value["values"])}
        data = value["data"]
        if isinstance(data, list) or len(data) < FILE_FROM:
            # A text's length is at most this, with what execnet adds.
            self.count(sum(4 * len(text) + 16 for text in data) if isinstance(data, list) else len(data))
            return value
        bulk = data if isinstance(data, Bulk) else Bulk(np.frombuffer(data, np.uint8))
        name = self.write(bulk)
        if name:
            return {"dtype": value["dtype"], "shape": value["shape"], "file": name}
        self.count(len(bulk))
        return {**value, "data": bulk.view.tobytes()}

    def count(self, nbytes: int) -> None:
        """So many bytes more go into the message itself."""
        self.inline_bytes += nbytes
        if self.inline_bytes > INLINE_LIMIT:
            elsewhere = " and find no room in %s" % " or ".join(self.folders) if self.folders else ""
            limit = "%s take more than the %d MiB that fit into one message"
            raise NoRoomError(limit % (self.what, INLINE_LIMIT >> 20) + elsewhere)

    def write(self, data: Bulk) -> str:
        """Write a file; its name, or an empty string where no folder has room for it."""
        for folder in self.folders:
            self.number += 1
            name = "%s-%d" % (self.prefix, self.number)
            path = os.path.join(folder, name)
            try:
                # Others write there, too, and memory that holds files is lost to everybody else.
                if len(data) > shutil.disk_usage(folder).free // 2:
                    continue
                handle = os.open(path, WRITE_FLAGS, 0o600)
                self.written.append(path)
                try:
                    rest = memoryview(data.view)
                    while rest:
                        rest = rest[os.write(handle, rest) :]
                finally:
                    os.close(handle)
            except OSError:  # full after all, or gone
                with contextlib.suppress(OSError):
                    os.unlink(path)
                continue
            self.file_bytes += len(data)
            return name
        return ""

    def discard(self) -> None:
        """The message at hand will not be sent: its files have no reader."""
        for path in self.written:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.begin()

    def receive(self, value: Any) -> None:
        """Put the data of its files into a value in wire form.

        Raises:
            UnfeedableError: A file is not to be had.
        """
        if not isinstance(value, dict):
            return
        for part in [*value.get("sequence", ()), value.get("keys"), value.get("values")]:
            self.receive(part)
        if "file" in value:
            try:
                value["data"] = self.read(value.pop("file"))
            except OSError as error:
                raise UnfeedableError("a tensor's file cannot be read: %s" % clean(error)) from error

    def read(self, name: object) -> Any:
        """The contents of a file, which is deleted.

        Raises:
            OSError: There is no such file, or it is none that ``write`` could have made.
        """
        if not isinstance(name, str) or not self.NAME.fullmatch(name):
            raise OSError("%s is no name of one" % clean(repr(name), 100))
        for folder in self.folders:
            path = os.path.join(folder, name)
            try:
                handle = os.open(path, READ_FLAGS)
            except FileNotFoundError:
                continue
            try:
                about = os.fstat(handle)
                if not stat.S_ISREG(about.st_mode) or not about.st_size:
                    raise OSError("%s holds no tensor" % name)
                if about.st_size < (MAP_FROM if len(MAPPINGS) < MAP_LIMIT else MAP_ALWAYS_FROM):
                    return os.read(handle, about.st_size)
                mapping = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
                MAPPINGS.add(mapping)
                return mapping
            finally:
                os.close(handle)
                if os.name == "posix":  # elsewhere O_TEMPORARY deletes it after its last use
                    with contextlib.suppress(OSError):
                        os.unlink(path)
        raise FileNotFoundError("there is no %s" % name)


class Desk:
    """Jobs in the order of their coming, each handed out once its model is here.

    A harness that shares no file system with this process says what a model is made of,
    ``{"digest": ..., "files": [[name, bytes, SHA-256], ...]}``, and sends of it what is asked for.
    """

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.jobs: collections.deque[Any] = collections.deque()
        self.store = ModelStore()
        self.deliveries: dict[int, Delivery] = {}

    def next(self) -> Any:
        """The next job, or whatever else the harness says.

        Raises:
            EOFError: It is gone.
        """
        if not self.jobs:
            self.hear(self.channel.receive())
        if self.travels(self.jobs[0]):
            with contextlib.suppress(self.channel.TimeoutError):
                while True:  # the models of later jobs can come while this one runs
                    self.hear(self.channel.receive(0))
        while self.waits(self.jobs[0]):
            self.hear(self.channel.receive())
        return self.jobs.popleft()

    def hear(self, message: Any) -> None:
        """Take a message: a job in its turn, a piece of a model at once."""
        if message[0] != "model":
            self.jobs.append(message)
            if self.travels(message):
                self.waits(message)
            return
        _, job_id, _, _, content = message
        delivery = self.deliveries[job_id]
        try:
            delivery.take(content)
        except OSError as error:
            self.fail(job_id, error)
        else:
            self.go_on(job_id)

    def travels(self, message: Any) -> bool:
        """Whether it is a job whose model is not in a file that both sides see."""
        return message[0] == "job" and isinstance(message[2]["model"], dict)

    def waits(self, message: Any) -> bool:
        """Whether a job's model is still to come; if so, somebody has asked for it."""
        if not self.travels(message):
            return False
        _, job_id, job = message
        path = self.store.find(job["model"])
        if path:
            job.update(model=path, folder=os.path.join(os.path.dirname(path), ""))
            return False
        if not any(delivery.model == job["model"] for delivery in self.deliveries.values()):
            try:
                self.deliveries[job_id] = Delivery(self.store, job["model"])
            except OSError as error:
                self.fail(job_id, error)
                return False
            self.go_on(job_id)
            return self.waits(message)
        return True

    def go_on(self, job_id: int) -> None:
        """Ask for the next piece of a model, or keep it where it is whole."""
        delivery = self.deliveries[job_id]
        try:
            if delivery.lacks_something():
                self.channel.send(("need", job_id, delivery.name, delivery.offset))
                return
            self.store.keep(delivery)
        except OSError as error:
            self.fail(job_id, error)
        else:
            del self.deliveries[job_id]

    def fail(self, job_id: int, error: OSError) -> None:
        """A model cannot be had: its job's result says so, and those of others that need it ask again."""
        delivery = self.deliveries.pop(job_id, None)
        if delivery is not None:
            delivery.discard()
        for message in self.jobs:
            if message[1:2] == (job_id,):
                message[2].update(model="", trouble="the model did not arrive: %s" % clean(error))


class Delivery:
    """A model on its way: its files come one after the other into a folder of their own.

    Raises:
        OSError: There is no room for it.
    """

    def __init__(self, store: ModelStore, model: dict[str, Any]) -> None:
        self.model = model
        self.files = collections.deque(model["files"])
        self.nbytes = sum(nbytes for _, nbytes, _ in model["files"])
        self.folder = store.make_room(self.nbytes)
        self.file: Any = None
        self.name = ""
        self.offset = 0

    def lacks_something(self) -> bool:
        """Whether a piece is to be asked for: that of ``name`` from ``offset`` on."""
        while self.files:
            self.name, nbytes, expected = self.files[0]
            if self.file is None:
                path = os.path.join(self.folder, *self.name.split("/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self.file = open(path, "wb")  # noqa: SIM115 - until its last piece is there
                self.hash, self.offset = hashlib.sha256(), 0
            if self.offset < nbytes:
                return True
            self.file.close()
            self.file = None
            if self.offset > nbytes or self.hash.hexdigest() != expected:
                raise OSError("%s has changed on its way" % self.name)
            self.files.popleft()
        return False

    def take(self, content: bytes | None) -> None:
        """Add the piece that was asked for."""
        if not content:
            raise OSError("%s can no longer be read" % self.name)
        self.file.write(content)
        self.hash.update(content)
        self.offset += len(content)

    def discard(self) -> None:
        """Forget it."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class ModelStore:
    """Models that came from elsewhere, kept for later processes: a folder for each, named by its digest."""

    def __init__(self) -> None:
        self.folder = ""
        self.seen: set[str] = set()
        self.nbytes: int | None = None

    def find(self, model: dict[str, Any]) -> str:
        """Path of a model, or an empty string. What an earlier process has left is read through once."""
        entry = os.path.join(self.home(), model["digest"])
        if not os.path.isdir(entry):
            return ""
        paths = [os.path.join(entry, *name.split("/")) for name, _, _ in model["files"]]
        with contextlib.suppress(OSError):
            os.utime(entry)
            if model["digest"] in self.seen or all(
                os.path.getsize(path) == nbytes and digest_of(path) == expected
                for path, (_, nbytes, expected) in zip(paths, model["files"])
            ):
                self.seen.add(model["digest"])
                return paths[0]
        shutil.rmtree(entry, ignore_errors=True)  # it was damaged, such as by a loss of power
        return ""

    def home(self) -> str:
        """The store's folder. Where there is no cache, it is this process's own, and ends with it."""
        if not self.folder:
            caches = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
            cache = os.environ.get("EP_HARNESS_CACHE") or os.path.join(caches, "ort-ep-harness")
            folder = os.path.join(os.path.expanduser(cache), "models")
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                os.rmdir(tempfile.mkdtemp(dir=folder))
            except OSError:
                folder = tempfile.mkdtemp(prefix="models-", dir=os.getcwd())
            self.folder = folder
        return self.folder

    def make_room(self, nbytes: int) -> str:
        """A new folder for so many bytes; others may have to go for it.

        Raises:
            OSError: There is no room for it.
        """
        if self.nbytes is None or self.nbytes + nbytes > STORE_LIMIT:
            self.nbytes = self.clean_up(STORE_LIMIT - nbytes)
        free = shutil.disk_usage(self.home()).free
        if nbytes > free // 2:
            reason = "it takes %d MiB, which are more than half of what is free in %s"
            raise OSError(reason % (nbytes >> 20, self.home()))
        self.nbytes += nbytes
        return tempfile.mkdtemp(prefix=NEW, dir=self.home())

    def keep(self, delivery: Delivery) -> None:
        """Give a complete model its name."""
        entry = os.path.join(self.home(), delivery.model["digest"])
        try:
            os.rename(delivery.folder, entry)
        except OSError:
            delivery.discard()
            if not self.find(delivery.model):  # else another process was quicker
                raise
        else:
            self.seen.add(delivery.model["digest"])

    def clean_up(self, limit: int) -> int:
        """Delete the models used longest ago until the others take no more than ``limit`` bytes.

        Returns:
            The bytes that are left. Models that were used a moment ago stay whatever they take.
        """
        entries = []
        for entry in os.scandir(self.home()):
            with contextlib.suppress(OSError):  # another process cleans up, too
                age_s = time.time() - entry.stat().st_mtime
                if entry.name.startswith(NEW):  # of a process that was killed, if it is old
                    if age_s > STORE_ABANDONED_S:
                        shutil.rmtree(entry.path, ignore_errors=True)
                    continue
                entries.append((age_s, size_of(entry.path), entry.path))
        total = sum(nbytes for _, nbytes, _ in entries)
        for age_s, nbytes, path in sorted(entries, reverse=True):
            if total <= limit or age_s < STORE_IN_USE_S:
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= nbytes
        return total


def size_of(folder: str) -> int:
    """Bytes of all files below a folder."""
    files = (os.path.join(home, name) for home, _, names in os.walk(folder) for name in names)
    return sum(map(os.path.getsize, files))


def digest_of(path: str) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


class Target:
    """A provider with its options, as sessions of this process use it.

    Args:
        ort: The module ``onnxruntime``.
        config: What to serve.
        fingerprint: Takes what is found out about it, as far as that goes.
    """

    def __init__(self, ort: Any, config: dict[str, Any], fingerprint: dict[str, Any]) -> None:
        self.ort = ort
        self.chain = list(config["providers"])
        self.options = dict(config["options"])
        self.entries = dict(config.get("session") or {})
        self.devices: list[Any] = []
        self.held: Any = None
        self.files = TensorFiles(config.get("tensor_folders") or [], "out", "the outputs")
        self.version = tuple(int(part) for part in re.findall(r"\d+", ort.__version__)[:2])
        self.fingerprint = fingerprint
        fingerprint.update(providers=self.chain, options=self.options)
        if config.get("plugin"):
            self.register(config["plugin"], config.get("device") or {})
        else:
            self.check_built()

    def check_built(self) -> None:
        """Refuse a provider that this build does not have: onnxruntime would take the CPU without a word."""
        if hasattr(self.ort, "get_ep_devices"):  # of some providers of the build it knows the devices, too
            offered = [device for device in self.ort.get_ep_devices() if device.ep_name == self.chain[0]]
            if offered:
                self.fingerprint["devices"] = [describe_device(device) for device in offered]
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

    def sickness(self) -> str:
        """What is wrong with the provider in this process; empty where the held session still computes."""
        values = np.array(PROBE_INPUT, np.float32)
        try:
            (found,) = self.held.run(["y"], {"x": values})
            same = np.array_equal(found, np.maximum(values, 0))
        except Exception as error:  # noqa: BLE001 - the text is the result
            return "%s: %s" % (clean(type(error).__name__), clean(error))
        return "" if same else "it computes Relu(%s) as %s" % (list(PROBE_INPUT), clean(found, limit=100))

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
        for key, value in self.entries.items():
            settings.add_session_config_entry(key, value)
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
        others = [name for name in self.chain if name != CPU]
        own = {name.lower() for name in others} or {CPU.lower()}
        count: dict[bool, dict[str, int]] = {True: {}, False: {}}
        each: dict[str, dict[str, int]] = {name: {} for name in others}
        spelled = {name.lower(): name for name in others}
        for provider, op_types in groups:
            of_provider = each.get(spelled.get(provider.lower(), ""), {})
            for ops in (count[provider.lower() in own], of_provider):
                for op_type in op_types:
                    ops[op_type] = ops.get(op_type, 0) + 1
        placed: dict[str, Any] = {
            "ep_nodes": sum(count[True].values()),
            "cpu_nodes": sum(count[False].values()),
            "ep_ops": count[True],
            "cpu_ops": count[False],
            "partitions": sum(provider.lower() in own for provider, _ in groups),
            "source": source,
        }
        if len(others) > 1:
            placed["chain_ops"] = each
            placed["providers"] = {name: sum(ops.values()) for name, ops in each.items()}
            placed["providers"][CPU] = placed["cpu_nodes"]
        return placed

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


def describe_packages() -> dict[str, Any]:
    """Versions of what is installed; where several distributions own ``onnxruntime``, their names."""
    packages: dict[str, str] = {}
    owners: list[str] = []
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if "onnx" in name.lower() or name.lower() == "numpy":
            packages[name] = distribution.version
        if name.lower().startswith("onnxruntime"):
            # One look at the text: to read it as a table takes longer than to import onnxruntime.
            files = "\n" + (distribution.read_text("RECORD") or "").replace("\\", "/")
            if "\nonnxruntime/__init__.py," in files:
                owners.append(name)
    return {"packages": packages, **({"owners": owners} if len(owners) > 1 else {})}


def describe_runtime(ort: Any) -> dict[str, Any]:
    """The versions that decide a result."""
    return {
        "onnxruntime": ort.__version__,
        "machine": platform.machine(),
        "available_providers": list(ort.get_available_providers()),
        "session": {"intra_op_num_threads": 1, "inter_op_num_threads": 1},
    }


def diagnose(cause: str, reason: str, printed: str, owners: list[str]) -> tuple[str, str]:
    """Look behind a failure to import or register: a cause that somebody can mend, where there is one."""
    if cause not in ("import_failed", "registration_failed"):
        return cause, reason
    # Some providers say on stderr alone what the loader did not find.
    found = MISSING_LIBRARY.search(reason) or MISSING_LIBRARY.search(printed)
    if found:
        library = os.path.basename(next(filter(None, found.groups())))
        return "library_missing", "%s is missing: %s" % (library, reason)
    found = OTHER_NUMPY.search(printed)  # numpy warns of it, the error that follows does not
    if found:
        return cause, "it is built for numpy<2 and finds numpy %s: %s" % (found.group(1), reason)
    if owners:
        return "version_conflict", "%s both own onnxruntime: %s" % (" and ".join(owners), reason)
    return cause, reason


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


def die_with(parent: str) -> None:
    """Have Linux kill this process when the harness dies, whatever it is busy with at that time.

    Everywhere the end of the pipe tells, but only a process whose interpreter can run: a provider that hangs
    with the GIL held would keep its device. Behind a wrapper, in a container or on another machine the
    harness is not the direct parent, and the pipe is all there is.
    """
    if sys.platform == "linux" and parent == str(os.getppid()):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        if parent != str(os.getppid()):  # it died meanwhile
            os._exit(1)


def limit_memory(limit_mb: int | None) -> None:
    """Cap the address space where the system can, so that a runaway allocation fails here alone."""
    if limit_mb:
        try:
            import resource
        except ImportError:  # Windows
            return
        resource.setrlimit(resource.RLIMIT_AS, (limit_mb << 20, limit_mb << 20))


def resident_mib() -> float | None:
    """Resident memory of this process in MiB, its peak on macOS; None where the system does not tell."""
    try:
        if sys.platform == "win32":
            import struct

            # PROCESS_MEMORY_COUNTERS: two DWORDs (its size, page faults), then SIZE_Ts: the greatest working
            # set, the working set now, and six others.
            counters = ctypes.create_string_buffer(struct.calcsize("II8N"))
            ask = ctypes.WinDLL("kernel32").K32GetProcessMemoryInfo
            this_process = ctypes.c_void_p(-1)
            if not ask(this_process, counters, len(counters)):
                return None
            resident = int(struct.unpack("II8N", counters.raw)[3])
        elif sys.platform == "darwin":
            import resource

            resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes here
        else:
            if STATM is None:
                return None
            resident = int(os.pread(STATM, 64, 0).split()[1]) * PAGE_BYTES
    except OSError:  # such as a system without /proc
        return None
    return round(resident / (1 << 20), 2)


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
