"""Scenario ``buffers``: the caller's own buffers receive the outputs, and are used again.

An application keeps its buffers from run to run and from model to model. They are filled with a pattern, or
with what another model left there, before a run; afterwards nothing of that may be left, and nothing beyond
their ends may have changed. Inputs that lie on a device are used for a second run, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.company import companions_of, opened
from harness.agent.furthest import Furthest
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.scenarios.io_binding import HOST, Bound, is_host
from harness.agent.shared_memory import share_allocators
from harness.agent.target_errors import UnsupportedError

PATTERN = 0x5A
"""Each byte of a buffer before a run: a large number in every float type, and far from zero in the others."""

GUARD, GUARD_BYTE = 256, 0xC3
"""Bytes before and after a buffer in the CPU's memory: as many as kernels align to, and each of them."""

_COPIED = (1, 6, 9, 33)
"""Elements of float32 that are copied to a device and back: sizes that are no multiple of 16 or 32 bytes."""


class BeyondBufferError(Exception):
    """Something was written beyond the end of a buffer, or a copy is not equal to its source."""


def play(job_run: JobRun) -> None:
    """Run into buffers with a pattern, then with what another model left; judge the furthest result.

    Raises:
        UnsupportedError: onnxruntime's Python API cannot bind a value of such a type.
        BeyondBufferError: Memory beyond a buffer was written, or a copy to a device and back is wrong.
    """
    job_run.create()
    device = job_run.target.config.get("binding_device") or HOST
    bound = Bound(job_run.target.ort, job_run.runner, device)
    if job_run.runner.has_narrow:
        raise UnsupportedError("a buffer of an element type that numpy lacks cannot be filled")
    furthest = Furthest(job_run, [job_run.run(inputs) for inputs in job_run.job["data_sets"]])
    for index, (feeds, outputs) in enumerate(furthest.pairs):
        buffers = _Buffers(job_run, bound, outputs)
        furthest.compare(index, buffers.run(feeds), "in buffers filled with a pattern")
        furthest.compare(index, buffers.again(), "in buffers used again, with inputs used again")
        if index == 0:
            _after_others(job_run, furthest, buffers, feeds)
        job_run.facts.update(buffers_on=buffers.places, runs=job_run.facts.get("runs", 0) + buffers.runs)
    memory = _DeviceMemory(job_run, bound)
    if any(map(memory.has, bound.runner.names)):
        job_run.facts["copies"] = _copy(job_run, memory)
    share_allocators(job_run, furthest)
    furthest.conclude(job_run, "equal_to_plain")
    conclude(job_run)


def _after_others(job_run: JobRun, furthest: Furthest, buffers: _Buffers, feeds: Feeds) -> None:
    """Let each companion run into the buffers of the model, and then the model."""
    for companion in companions_of(job_run, feeds):
        other = Bound(job_run.target.ort, opened(job_run, companion.model), buffers.bound.device)
        buffers.lend(other, feeds)
        told = "in buffers that a model %s has used" % companion.what
        furthest.compare(0, buffers.again(), told)


class _Buffers:
    """A buffer for each output, in the memory that the session wants for it, and runs into them."""

    def __init__(self, job_run: JobRun, bound: Bound, outputs: RawOutputs) -> None:
        self.job_run, self.bound, self.memory = job_run, bound, _DeviceMemory(job_run, bound)
        self.runs = 0
        self.names = bound.runner.names
        self.places: list[str] = []
        self.guarded: dict[str, np.ndarray] = {}
        self.values: dict[str, Any] = {}
        for name, wire in zip(self.names, outputs):
            self._make(name, wire)

    def _make(self, name: str, wire: Any) -> None:
        """Make the buffer of one output: guarded in the CPU's memory, or on the device."""
        dtype, shape = np.dtype(wire["dtype"]), wire["shape"]
        nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        pattern = np.full(nbytes, PATTERN, np.uint8).view(dtype).reshape(shape)
        try:
            value = self.memory.filled(name, pattern)
        except Exception as error:  # noqa: BLE001 - a build without such an allocator; the text is a fact
            self.bound.reason, value = clean(error, 200), None
        if value is None:
            whole = self.guarded[name] = np.full(nbytes + 2 * GUARD, GUARD_BYTE, np.uint8)
            inner = whole[GUARD : GUARD + nbytes].view(dtype).reshape(shape)
            inner[...] = pattern
            value = self.job_run.target.ort.OrtValue.ortvalue_from_numpy(inner)
        self.values[name] = value
        self.places.append("%s: %s" % (clean(name, 60), value.device_name()))

    def run(self, feeds: Feeds) -> RawOutputs:
        """Bind inputs and buffers, run once, and return what the buffers hold, in wire form."""
        self.bound.bind(feeds)
        self._bind_outputs(self.bound)
        return self.again()

    def again(self) -> RawOutputs:
        """Run once more with the same inputs and buffers, as they are."""
        self.job_run.begin_run()
        self.runs += 1
        self.bound.run()
        self._check()
        arrays = [self.values[name].numpy() for name in self.names]
        return self.bound.runner.in_wire_form([np.array(array) for array in arrays])

    def lend(self, other: Bound, feeds: Feeds) -> None:
        """Let another session of the same outputs run once into these buffers."""
        other.bind(feeds)
        self._bind_outputs(other)
        self.job_run.begin_run()
        self.runs += 1
        other.run()
        self._check()

    def _bind_outputs(self, bound: Bound) -> None:
        bound.binding.clear_binding_outputs()
        for name, value in self.values.items():
            bound.binding.bind_ortvalue_output(name, value)

    def _check(self) -> None:
        for name, whole in self.guarded.items():
            _check_guards(whole, "output %s" % clean(name, 60))


def _check_guards(whole: np.ndarray, what: str) -> None:
    """Raise an error if a byte before or after a guarded buffer has changed."""
    for side, guard in (("before", whole[:GUARD]), ("after", whole[-GUARD:])):
        changed = int((guard != GUARD_BYTE).sum())
        if changed:
            raise BeyondBufferError("%s: %d bytes %s its buffer were written" % (what, changed, side))


def _copy(job_run: JobRun, memory: _DeviceMemory) -> int:
    """Copy values to a device and back into guarded memory; return how many, 0 if onnxruntime cannot."""
    ort = job_run.target.ort
    if not hasattr(ort, "copy_tensors"):
        version = clean(ort.__version__)
        job_run.facts["reason"] = "onnxruntime %s has no copy_tensors, 1.24 is the first" % version
        return 0
    name = next(filter(memory.has, job_run.runner.names))
    for count in _COPIED:
        given = np.arange(1, count + 1, dtype=np.float32)
        whole = np.full(given.nbytes + 2 * GUARD, GUARD_BYTE, np.uint8)
        back = whole[GUARD:-GUARD].view(np.float32)
        there = memory.filled(name, np.zeros(count, np.float32))
        ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(given)], [there])
        ort.copy_tensors([there], [ort.OrtValue.ortvalue_from_numpy(back)])
        what = "a copy of %d bytes from the device" % given.nbytes
        _check_guards(whole, what)
        if not np.array_equal(back, given):
            raise BeyondBufferError("%s differs from what was copied to it" % what)
    return len(_COPIED)


class _DeviceMemory:
    """The memory that a session wants for its outputs, where that is not the CPU's.

    Python has names for the memory of few devices. Of the others the session itself has a description, with
    which newer releases of onnxruntime allocate.
    """

    def __init__(self, job_run: JobRun, bound: Bound) -> None:
        self.ort, self.wanted = job_run.target.ort, bound.wanted
        session = job_run.session
        infos = session.get_output_memory_infos() if hasattr(session, "get_output_memory_infos") else ()
        self.infos = {name: info for name, info in zip(bound.runner.names, infos) if not is_host(info.name)}

    def has(self, name: str) -> bool:
        """Return whether an output lies on a device."""
        return self.wanted.get(name, HOST) != HOST or name in self.infos

    def filled(self, name: str, content: np.ndarray) -> Any:
        """Return a value in the memory of an output, with this content; None if that is the CPU's."""
        if self.wanted.get(name, HOST) != HOST:
            return self.ort.OrtValue.ortvalue_from_numpy(content, self.wanted[name], 0)
        if name not in self.infos:
            return None
        shape, dtype = list(content.shape), content.dtype.type
        make = self.ort.OrtValue
        value = make.ortvalue_from_shape_and_type(shape, dtype, memory_info=self.infos[name])
        self.ort.copy_tensors([make.ortvalue_from_numpy(content)], [value])
        return value
