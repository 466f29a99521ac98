"""Steps in which past and present are one buffer of a fixed length, bound once."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from harness.agent.decoding.arrays import OnnxArray, joined
from harness.agent.decoding.steps import OtherShapeError, SessionSteps, StepResults
from harness.agent.job_run import JobRun
from harness.agent.safe_text import clean
from harness.agent.system import elapsed_ms
from harness.agent.wire import NARROW, ort_value

_HOST = "cpu"

_SPARE = 9
"""Positions of the buffer beyond the text; their content must not affect results."""


class SharedBuffer:
    """One buffer for each tensor of the cache."""

    def __init__(self, steps: SessionSteps) -> None:
        self.steps = steps
        self.job_run: JobRun = steps.job_run
        self.text = steps.text
        length = self.text.layout.shape[1] + _SPARE
        fixed = self.text.decoder["cache_length"]
        self.length = fixed or min(length, self.text.decoder["context"] or length)
        self.device = self.job_run.target.config.get("binding_device") or _HOST
        if any(array.dtype in NARROW for array in self.text.given.values()):
            self.device = _HOST  # numpy cannot bring such elements to a device
        self.buffers = {
            name: self._buffer(array.full(self.text.pasts[name]["axis"], self.length))
            for name, array in self.text.empty.items()
        }
        self.job_run.facts["buffer_on"] = self.device
        self.job_run.facts["buffer_length"] = self.length

    def play(self, play: dict[str, Any]) -> StepResults:
        """Play all steps; return the logits of all columns, and the columns of the buffers."""
        parts, start = [], 0
        outputs: StepResults = {}
        for end in play["ends"]:
            outputs = self._run(start, end)
            logits = outputs[self.text.decoder["logits"]]
            if len(logits.shape) < 2 or logits.shape[1] != end - start:  # noqa: PLR2004 - batch and sequence
                raise OtherShapeError(outputs)
            parts.append(logits)
            start = end
        columns = self.text.layout.shape[1]
        found = {}
        for pair in self.text.decoder["cache"]:
            present = outputs[pair["present"]]
            found[pair["present"]] = present.cut(pair["axis"], 0, columns)
        return {**found, self.text.decoder["logits"]: joined(parts, 1)}

    def _run(self, start: int, end: int) -> StepResults:
        """Run once; past and present of each cache tensor are bound to its buffer."""
        names = {pair["present"]: name for name, pair in self.text.pasts.items()}
        feeds = self.text.feeds(start, end, self.text.empty)
        runner = self.job_run.runner
        binding = runner.session.io_binding()
        for name, feed in feeds.items():
            if name in self.buffers:
                binding.bind_ortvalue_input(name, self.buffers[name])
            elif isinstance(feed, np.ndarray):
                binding.bind_cpu_input(name, feed)
            else:
                binding.bind_ortvalue_input(name, feed)
        for name in runner.names:
            if name in names:
                binding.bind_ortvalue_output(name, self.buffers[names[name]])
            else:
                binding.bind_output(name, _HOST)
        self.job_run.enter("run")
        started = time.perf_counter()
        runner.session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        outputs = binding.get_outputs() if runner.has_narrow else binding.copy_outputs_to_cpu()
        self.job_run.result["timings_ms"].setdefault("first_run", elapsed_ms(started))
        self.steps.runs += 1
        return self.steps.judged_of(runner.in_wire_form(outputs))

    def _buffer(self, array: OnnxArray) -> Any:
        """Return a value with the elements of an array, on the device if it accepts the value."""
        feed = array.feed()
        if not isinstance(feed, np.ndarray):
            return feed
        if self.device != _HOST:
            try:
                return ort_value().ortvalue_from_numpy(feed, self.device, 0)
            except Exception as error:  # noqa: BLE001 - a build without such an allocator; the text is a fact
                self.job_run.facts["buffer_reason"] = clean(error, 200)
                self.device = _HOST
        return ort_value().ortvalue_from_numpy(feed, _HOST, 0)
