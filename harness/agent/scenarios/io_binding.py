"""Scenario ``io_binding``: inputs and outputs are bound before the run, in the provider's own memory.

From onnxruntime 1.24 on, a session reports the memory of each value; before, all values are on the provider's
device. A value on a device is copied there once before the run, and back once after it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from harness.agent.difference import difference
from harness.agent.input_guard import Fed
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.repeat import RepeatTally
from harness.agent.safe_text import clean
from harness.agent.session_run import Runner
from harness.agent.system import elapsed_ms
from harness.agent.target_errors import MissingOutputsError, UnsupportedError
from harness.agent.wire import to_feed

HOST = "cpu"

_NOT_AWAITED = frozenset({"webgpu"})
"""Devices that still compute when ``synchronize_outputs`` returns; only a copy to the CPU waits for them.

Measured with onnxruntime-ep-webgpu 0.4.0: a run that takes the device a second returns in half a millisecond.
"""


def play(job_run: JobRun) -> None:
    """Run with bound values, then without, and compare.

    Raises:
        UnsupportedError: onnxruntime's Python API cannot bind a value of such a type.
    """
    job_run.create()
    bound = Bound(job_run.target.ort, job_run.runner, job_run.target.config.get("binding_device") or HOST)
    job_run.result["outputs"] = []
    apart = 0.0
    for index, inputs in enumerate(job_run.job["data_sets"]):
        feeds = {name: to_feed(wire) for name, wire in inputs}
        job_run.begin_run()
        fed = Fed(feeds)
        bound.bind(feeds)
        started = time.perf_counter()
        bound.run()
        job_run.result["timings_ms"].setdefault("first_run", elapsed_ms(started))
        outputs = bound.fetch()
        job_run.look_at(fed)
        job_run.facts.update(bound.facts())
        job_run.result["outputs"].append(job_run.send(outputs))
        if index == 0:
            _repeat(job_run, bound, outputs)
        if index == 0 and job_run.stopwatch is not None:
            job_run.stopwatch.time(job_run, bound.run, "bound")
            job_run.report_second(outputs, bound.fetch())
        job_run.begin_run()
        try:
            apart = max(apart, difference(job_run.runner(feeds), outputs))
        except MissingOutputsError as error:
            job_run.facts["plain"] = clean(error)
    if "plain" not in job_run.facts:
        job_run.facts["equal_to_plain"] = apart == 0
    if apart:
        job_run.facts["difference"] = apart
    conclude(job_run)


def _repeat(job_run: JobRun, bound: Bound, first: list[Any]) -> None:
    """Make the further runs that the job asks for, with the existing bindings."""
    if "repeat" not in job_run.job:
        return
    tally = RepeatTally(first)
    for _ in range(job_run.job["repeat"]["runs"] - 1):
        job_run.further()
        bound.run()
        tally.add(bound.fetch())
    tally.report(job_run)


def is_host(memory: str) -> bool:
    """Return whether memory of this name is the CPU's."""
    memory = memory.lower()
    return memory.startswith(HOST) or memory.endswith(("pinned", HOST))


class Bound:
    """A session's inputs and outputs, bound in the memory that the session reports for them.

    ``device`` is its name in onnxruntime's Python API; ``cpu`` if it has none.
    """

    def __init__(self, ort: Any, runner: Runner, device: str) -> None:
        self.ort = ort
        self.runner = runner
        self.session = runner.session
        for name, kind in zip(runner.names, runner.types):
            # A tensor of texts can be bound, but reading it crashes onnxruntime 1.31.
            if not kind.startswith("tensor(") or kind == "tensor(string)":
                raise _not_bindable(kind, "output", name)
        self.device = device
        self.binding: Any = None
        self.reason = ""
        """Why a value that could be on a device is not."""
        self.wanted = self._places(device)
        if runner.has_narrow:
            self.reason = "an output of an element type that numpy lacks can be read in the CPU's memory only"
            self.wanted.update(dict.fromkeys(runner.names, HOST))
        elif not self.reason and set(self.wanted.values()) <= {HOST}:
            self.reason = "the session wants its inputs and outputs in the CPU's memory"

    def _places(self, device: str) -> dict[str, str]:
        """Return the wanted device of each input and output, by name."""
        ports = (*self.session.get_inputs(), *self.session.get_outputs())
        if not hasattr(self.session, "get_input_memory_infos"):
            return dict.fromkeys((port.name for port in ports), device)
        infos = (*self.session.get_input_memory_infos(), *self.session.get_output_memory_infos())
        places = {}
        for port, info in zip(ports, infos):
            on_host = is_host(info.name)
            places[port.name] = HOST if on_host else device
            if not on_host and device == HOST:
                self.reason = "onnxruntime's Python API has no name for the memory %r" % clean(info.name, 60)
        return places

    def bind(self, feeds: dict[str, Any]) -> None:
        """Bind the inputs, copied to their devices, and a place for each output."""
        self.binding = self.session.io_binding()
        self.inputs_on: list[str] = []
        self.copied_in: list[int] = []
        for name, feed in feeds.items():
            self.inputs_on.append("%s: %s" % (clean(name, 60), self._bind_input(name, feed)))
        for name in self.runner.names:
            try:
                self.binding.bind_output(name, self.wanted.get(name, HOST), 0)
            except Exception as error:  # noqa: BLE001 - this onnxruntime has no such device; the text is a fact
                self.reason = clean(error, 200)
                self.wanted[name] = HOST
                self.binding.bind_output(name, HOST, 0)

    def _bind_input(self, name: str, feed: Any) -> str:
        """Bind one input, and return its device: the CPU, with the reason, if its own device refuses it."""
        is_text = isinstance(feed, np.ndarray) and feed.dtype.kind == "O"
        if is_text or isinstance(feed, (list, dict, type(None))):
            kinds = {list: "sequence", dict: "map", np.ndarray: "tensor of texts"}
            raise _not_bindable(kinds.get(type(feed), "absent optional"), "input", name)
        if not isinstance(feed, np.ndarray):  # an OrtValue, of an element type that numpy lacks
            self.binding.bind_ortvalue_input(name, feed)
            return HOST
        device = self.wanted.get(name, HOST)
        if device != HOST:
            try:
                value = self.ort.OrtValue.ortvalue_from_numpy(feed, device, 0)
            except Exception as error:  # noqa: BLE001 - a build without such an allocator; the text is a fact
                self.reason = clean(error, 200)
            else:
                self.binding.bind_ortvalue_input(name, value)
                self.copied_in.append(feed.nbytes)
                return str(value.device_name())
        self.binding.bind_cpu_input(name, feed)
        return HOST

    def run(self) -> None:
        """Run once, and wait until the device has finished."""
        self.session.run_with_iobinding(self.binding)
        self.binding.synchronize_outputs()
        if any(self.wanted.get(name) in _NOT_AWAITED for name in self.runner.names):
            self.binding.copy_outputs_to_cpu()

    def fetch(self) -> list[Any]:
        """Return the outputs of the last run, in wire form."""
        values = self.binding.get_outputs()
        devices = [value.device_name() for value in values]
        places = zip(self.runner.names, devices)
        self.outputs_on = ["%s: %s" % (clean(name, 60), device) for name, device in places]
        self.copied_out: list[int] = []
        if self.runner.has_narrow:
            wires = self.runner.in_wire_form(values)
            # The next run overwrites this memory.
            return [{**wire, "data": bytes(getattr(wire["data"], "view", wire["data"]))} for wire in wires]
        arrays = self.binding.copy_outputs_to_cpu()
        self.copied_out = [array.nbytes for array, device in zip(arrays, devices) if device != HOST]
        return self.runner.in_wire_form(arrays)

    def facts(self) -> dict[str, Any]:
        """Return where each value was, and which were copied."""
        return {
            "on_device": not all(place.endswith(": " + HOST) for place in self.inputs_on + self.outputs_on),
            "inputs_on": self.inputs_on,
            "outputs_on": self.outputs_on,
            "copies_to_device": len(self.copied_in),
            "bytes_to_device": sum(self.copied_in),
            "copies_from_device": len(self.copied_out),
            "bytes_from_device": sum(self.copied_out),
            **({"reason": self.reason} if self.reason else {}),
        }


def _not_bindable(kind: str, port: str, name: str) -> UnsupportedError:
    return UnsupportedError("onnxruntime's Python API binds no %s (%s %s)" % (kind, port, clean(name, 60)))
