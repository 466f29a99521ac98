"""Scenario ``io_binding``: inputs and outputs stay where the provider computes, bound before the run.

onnxruntime says of each where it wants it, from 1.24 on; before, the provider's name tells. A value that lies
on a device is copied there once before the run, and home once after it, and nothing is copied in between.
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from harness.agent.difference import difference
from harness.agent.errors import UnsupportedError
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.run import REPEAT_LIMIT_MS, call, has_narrow
from harness.agent.system import elapsed_ms
from harness.agent.text import clean, sendable
from harness.agent.wire import narrow_type, to_feed, to_wire, value_to_wire

HOST = "cpu"
DEVICES = {"cann": "cann", "cuda": "cuda", "dml": "dml", "webgpu": "webgpu"}
"""What the name of memory begins with, in lower case -> what onnxruntime's Python API calls the device."""

PROVIDERS = {
    "CANNExecutionProvider": "cann",
    "CUDAExecutionProvider": "cuda",
    "DmlExecutionProvider": "dml",
    "MIGraphXExecutionProvider": "cuda",  # in builds for ROCm the name stands for AMD's devices
    "ROCMExecutionProvider": "cuda",
    "TensorrtExecutionProvider": "cuda",
    "WebGpuExecutionProvider": "webgpu",
}
"""Device of a provider, for an onnxruntime that does not say where it wants a value."""

NOT_AWAITED = frozenset({"webgpu"})
"""Devices that still compute when ``synchronize_outputs`` returns, and for which only a copy home waits.

Seen with onnxruntime-ep-webgpu 0.4.0: a run that takes the device a second returns in half a millisecond.
"""


def play(job_run: JobRun) -> None:
    """Run bound, then plainly, and compare.

    Raises:
        UnsupportedError: onnxruntime's Python API cannot bind a value of such a type.
    """
    session = job_run.create()
    bound = Bound(job_run.target.ort, session, job_run.target.chain[0])
    job_run.result.update(names=sendable(bound.names), outputs=[])
    plain = functools.partial(call, session, bound.names, bound.types)
    apart = 0.0
    for index, inputs in enumerate(job_run.job["data_sets"]):
        feeds = {name: to_feed(wire) for name, wire in inputs}
        job_run.enter("run")
        bound.bind(feeds)
        started = time.perf_counter()
        bound.run()
        took_ms = elapsed_ms(started)
        values = bound.fetch()
        job_run.result["timings_ms"].setdefault("first_run", took_ms)
        job_run.facts.update(bound.facts())
        job_run.result["outputs"].append([job_run.files.send(wire) for wire in values])
        if index == 0 and took_ms < REPEAT_LIMIT_MS:
            bound.run()
            again = bound.fetch()
            if again != values:
                job_run.result["second"] = [job_run.files.send(wire) for wire in again]
        if index == 0 and job_run.watch is not None:
            job_run.watch.time(session, bound.run, job_run.result, job_run.enter, "bound")
            last = bound.fetch()
            if last != values and "second" not in job_run.result:
                job_run.result["second"] = [job_run.files.send(wire) for wire in last]
        job_run.enter("run")
        apart = max(apart, difference(plain(feeds), values))
    job_run.facts["equal_to_plain"] = apart == 0
    if apart:
        job_run.facts["difference"] = apart
    conclude(job_run)


class Bound:
    """A session's inputs and outputs, bound where the provider wants them.

    Args:
        ort: The module ``onnxruntime``.
        session: The session.
        provider: Its first provider.
    """

    def __init__(self, ort: Any, session: Any, provider: str) -> None:
        self.ort = ort
        self.session = session
        self.names = [output.name for output in session.get_outputs()]
        self.types = [output.type.lower() for output in session.get_outputs()]
        for name, kind in zip(self.names, self.types):
            # A tensor of texts can be bound, and kills onnxruntime 1.31 when it is read.
            if not kind.startswith("tensor(") or kind == "tensor(string)":
                raise UnsupportedError(
                    "onnxruntime's Python API binds no %s (output %s)" % (kind, clean(name, 60))
                )
        self.binding: Any = None
        self.reason = ""
        """Why something that might lie on a device does not."""
        self.wanted = self.places(provider)
        if has_narrow(self.types):
            self.reason = "an output of an element type that numpy lacks can be read in the CPU's memory only"
            self.wanted.update(dict.fromkeys(self.names, HOST))
        elif not self.reason and set(self.wanted.values()) <= {HOST}:
            self.reason = "the session wants its inputs and outputs in the CPU's memory"

    def places(self, provider: str) -> dict[str, str]:
        """On which device each input and output is wanted, by name."""
        ports = (*self.session.get_inputs(), *self.session.get_outputs())
        if not hasattr(self.session, "get_input_memory_infos"):
            return dict.fromkeys((port.name for port in ports), PROVIDERS.get(provider, HOST))
        memory = (*self.session.get_input_memory_infos(), *self.session.get_output_memory_infos())
        return {port.name: self.device_of(one.name) for port, one in zip(ports, memory)}

    def device_of(self, memory: str) -> str:
        """The device whose memory has this name; the CPU for one that the Python API has no word for."""
        if memory.lower().startswith(HOST) or memory.lower().endswith(("pinned", HOST)):
            return HOST
        for beginning, device in DEVICES.items():
            if memory.lower().startswith(beginning):
                return device
        self.reason = "onnxruntime's Python API has no word for the memory %r" % clean(memory, 60)
        return HOST

    def bind(self, feeds: dict[str, Any]) -> None:
        """Bind inputs, which are copied to where they belong, and a place for each output."""
        self.binding = self.session.io_binding()
        self.inputs_on: list[str] = []
        self.copies_in: list[int] = []
        for name, feed in feeds.items():
            self.bind_input(name, feed)
        for name in self.names:
            self.binding.bind_output(name, self.wanted.get(name, HOST), 0)

    def bind_input(self, name: str, feed: Any) -> None:
        """Bind one input; on the CPU where the device takes none, with the reason."""
        is_text = isinstance(feed, np.ndarray) and feed.dtype.kind == "O"
        if is_text or isinstance(feed, (list, dict, type(None))):
            kinds = {list: "sequence", dict: "map", np.ndarray: "tensor of texts"}
            kind = kinds.get(type(feed), "absent optional")
            raise UnsupportedError(
                "onnxruntime's Python API binds no %s (input %s)" % (kind, clean(name, 60))
            )
        device = self.wanted.get(name, HOST)
        if not isinstance(feed, np.ndarray):  # an OrtValue, of an element type that numpy lacks
            self.binding.bind_ortvalue_input(name, feed)
            device = HOST
        elif device == HOST:
            self.binding.bind_cpu_input(name, feed)
        else:
            try:
                value = self.ort.OrtValue.ortvalue_from_numpy(feed, device, 0)
            except Exception as error:  # noqa: BLE001 - a build without such an allocator; the text is a fact
                self.reason = clean(error, 200)
                self.binding.bind_cpu_input(name, feed)
                device = HOST
            else:
                self.binding.bind_ortvalue_input(name, value)
                device = value.device_name()
                self.copies_in.append(feed.nbytes)
        self.inputs_on.append("%s: %s" % (clean(name, 60), device))

    def run(self) -> None:
        """Run once, to the end of what the device does."""
        self.session.run_with_iobinding(self.binding)
        self.binding.synchronize_outputs()
        if any(self.wanted.get(name) in NOT_AWAITED for name in self.names):
            self.binding.copy_outputs_to_cpu()

    def fetch(self) -> list[Any]:
        """The outputs of the last run, in wire form."""
        values = self.binding.get_outputs()
        devices = [value.device_name() for value in values]
        self.outputs_on = ["%s: %s" % (clean(name, 60), device) for name, device in zip(self.names, devices)]
        self.copies_out: list[int] = []
        if has_narrow(self.types):
            wires = [value_to_wire(value, narrow_type(kind)) for value, kind in zip(values, self.types)]
            # The next run writes where these lie.
            return [{**wire, "data": bytes(getattr(wire["data"], "view", wire["data"]))} for wire in wires]
        arrays = self.binding.copy_outputs_to_cpu()
        self.copies_out = [array.nbytes for array, device in zip(arrays, devices) if device != HOST]
        return [to_wire(array, kind) for array, kind in zip(arrays, self.types)]

    def facts(self) -> dict[str, Any]:
        """Where everything lay, and what was copied."""
        on_device = [place for place in self.inputs_on + self.outputs_on if not place.endswith(": " + HOST)]
        return {
            "on_device": bool(on_device),
            "inputs_on": self.inputs_on,
            "outputs_on": self.outputs_on,
            "copies_to_device": len(self.copies_in),
            "bytes_to_device": sum(self.copies_in),
            "copies_from_device": len(self.copies_out),
            "bytes_from_device": sum(self.copies_out),
            **({"reason": self.reason} if self.reason else {}),
        }
