"""Scenario ``capture``: the provider records its work, and replays it with other values in the same buffers.

Each capture has an id (``gpu_graph_id``) and a binding of its own. Results are compared with those of a
session that captures nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.difference import difference
from harness.agent.faded import CROSS_TALK, faded
from harness.agent.job_run import Feeds, JobRun, RawOutputs
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.scenarios.io_binding import HOST, Bound
from harness.agent.session_run import Runner
from harness.agent.target_errors import UnsupportedError
from harness.agent.wire import to_feed

_RUNS = 3
"""Runs with one id: CUDA captures in the second by default, and replays from then on."""


class ReplayError(Exception):
    """A replay computed something else than a run."""


def play(job_run: JobRun) -> None:
    """Capture a graph for each data set, replay them in turns and with other inputs, release, capture again.

    Raises:
        UnsupportedError: The provider captures no graphs, or not of this model.
        ReplayError: With other inputs in its buffers, a replay differs from a run.
    """
    option = job_run.job["scenario_settings"].get("option")
    if not option:
        raise UnsupportedError("no option of this provider captures graphs")
    plain = Runner(job_run.open())
    if plain.has_narrow:
        raise UnsupportedError("an output has an element type that numpy lacks, and is not bound")
    job_run.options = {**job_run.target.options, option[0]: option[1]}
    try:
        job_run.create()
    except Exception as error:
        raise UnsupportedError("no session with %s: %s" % ("=".join(option), clean(error))) from error
    finally:
        job_run.options = None
    watch = _Watch(job_run, plain)
    job_run.facts.update(option="=".join(option), device=watch.device)
    for inputs in job_run.job["data_sets"]:
        watch.add(inputs)
    watch.capture_all()
    watch.follow_other_inputs()
    watch.replay_in_turns()
    released = hasattr(job_run.session, "release_captured_graph")
    if released:
        watch.release_all()
        watch.capture_all()
        watch.follow_other_inputs()
    apart = max(watch.apart)
    job_run.facts.update(
        captures=len(watch.captures),
        replays=watch.replays,
        released=released,
        equal_to_plain=apart == 0,
    )
    if apart:
        job_run.facts["difference"] = apart
    job_run.result["outputs"] = [job_run.send(outputs) for outputs in watch.worst]
    conclude(job_run)


class _Capture:
    """One captured graph: its id, its binding, and the buffers of its inputs."""

    def __init__(self, job_run: JobRun, number: int, feeds: Feeds, outputs: list[Any], bound: Bound) -> None:
        ort = job_run.target.ort
        self.session = job_run.session
        self.feeds = feeds
        self.options = ort.RunOptions()
        self.options.add_run_config_entry("gpu_graph_id", str(number))
        self.number = number
        self.buffers = {}
        self.binding = self.session.io_binding()
        for name, feed in feeds.items():
            place = bound.wanted.get(name, HOST)
            self.buffers[name] = ort.OrtValue.ortvalue_from_numpy(np.array(feed), place, 0)
            self.binding.bind_ortvalue_input(name, self.buffers[name])
        for name, output in zip(job_run.runner.names, outputs):
            place = bound.wanted.get(name, HOST)
            value = ort.OrtValue.ortvalue_from_shape_and_type(list(output.shape), output.dtype.type, place, 0)
            self.binding.bind_ortvalue_output(name, value)

    def write(self, feeds: Feeds) -> None:
        """Write other values into the same buffers."""
        for name, feed in feeds.items():
            self.buffers[name].update_inplace(np.ascontiguousarray(feed))

    def run(self) -> list[Any]:
        """Run once, and return copies of the outputs."""
        self.session.run_with_iobinding(self.binding, self.options)
        self.binding.synchronize_outputs()
        return [np.array(array) for array in self.binding.copy_outputs_to_cpu()]


class _Watch:
    """The captures, what a run without them gives, and the results that are furthest from it."""

    def __init__(self, job_run: JobRun, plain: Runner) -> None:
        self.job_run = job_run
        self.plain = plain
        self.device = job_run.target.config.get("binding_device") or HOST
        self.bound = Bound(job_run.target.ort, job_run.runner, self.device)
        self.captures: list[_Capture] = []
        self.expected: list[RawOutputs] = []
        self.worst: list[RawOutputs] = []
        self.apart: list[float] = []
        self.replays = 0

    def add(self, inputs: list[Any]) -> None:
        """Add a data set, with what a session without capture computes of it."""
        feeds = {name: to_feed(wire) for name, wire in inputs}
        for name, feed in feeds.items():
            if not isinstance(feed, np.ndarray) or feed.dtype.kind == "O":
                raise UnsupportedError("the input %s is no tensor of numbers" % clean(name, 60))
        self.job_run.begin_run()
        values = self.plain.step(feeds)()
        if not all(isinstance(value, np.ndarray) and value.dtype.kind != "O" for value in values):
            raise UnsupportedError("an output is no tensor of numbers")
        self.expected.append(self.plain.in_wire_form(values))
        self.worst.append(self.expected[-1])
        self.apart.append(0.0)
        self.captures.append(_Capture(self.job_run, len(self.captures) + 1, feeds, values, self.bound))

    def capture_all(self) -> None:
        """Run each often enough to be captured and replayed."""
        for index in range(len(self.captures)):
            for _ in range(_RUNS):
                self.look(index)

    def replay_in_turns(self) -> None:
        """Replay the captures by turns; a single data set gets a second one, with other inputs."""
        first = self.captures[0]
        other = faded(first.feeds) or first.feeds
        values = self.plain.step(other)()
        second = _Capture(self.job_run, len(self.captures) + 1, other, values, self.bound)
        for _ in range(_RUNS):
            self.compare(second, self.plain.in_wire_form(values), "beside another capture")
            for index in range(len(self.captures)):
                self.look(index)
        if hasattr(second.session, "release_captured_graph"):
            second.session.release_captured_graph(second.number)

    def release_all(self) -> None:
        """Release every captured graph; its binding can then be captured again."""
        for capture in self.captures:
            capture.session.release_captured_graph(capture.number)

    def follow_other_inputs(self) -> None:
        """Replay with other values in the same buffers, then with the given ones again."""
        for index, capture in enumerate(self.captures):
            other = faded(capture.feeds)
            if not other:
                continue
            expected = self.plain(other)
            capture.write(other)
            self.compare(capture, expected, "with other values in its buffers")
            capture.write(capture.feeds)
            self.look(index)

    def compare(self, capture: _Capture, expected: RawOutputs, when: str) -> None:
        """Compare a replay with a run; the harness has no golden for it."""
        self.job_run.further()
        self.replays += 1
        apart = difference(expected, self.job_run.runner.in_wire_form(capture.run()))
        if apart > CROSS_TALK:
            raise ReplayError("%s, a replay is off by %.3g of the largest value" % (when, apart))

    def look(self, index: int) -> None:
        """Replay a data set, and keep the result if it is the furthest."""
        self.job_run.begin_run()
        self.replays += 1
        outputs = self.job_run.runner.in_wire_form(self.captures[index].run())
        apart = difference(self.expected[index], outputs)
        if apart > self.apart[index]:
            self.apart[index], self.worst[index] = apart, outputs
