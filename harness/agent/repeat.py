"""Repetition: run the first data set many times, in one session and in fresh ones, and compare the bits."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.agent.difference import difference
from harness.agent.job_run import JobRun
from harness.agent.wire import to_feed


def repeat(job_run: JobRun, first: list[Any]) -> None:
    """Make the missing runs; the one furthest from ``first``, the only run so far, becomes ``second``.

    The last session stays open for the result, and ends like that of a plain run.
    """
    settings = job_run.job["repeat"]
    feeds = {name: to_feed(wire) for name, wire in job_run.job["data_sets"][0]}
    tally = RepeatTally(first)
    for session in range(settings["sessions"]):
        if session:
            job_run.enter("teardown")
            job_run.close()
            job_run.enter("create")
            job_run.judge(job_run.open())
            job_run.begin_run()
        step = job_run.runner.step(feeds)
        for _ in range(settings["runs"] - (session == 0)):
            job_run.further()
            values = step()
            if not tally.repeats_first(values):
                tally.add(job_run.runner.in_wire_form(values))
    tally.report(job_run)


class RepeatTally:
    """Compares runs with the first one, whose outputs are in wire form."""

    def __init__(self, first: list[Any]) -> None:
        self.first = first
        self._digests: set[bytes] = set()
        """Digests of the runs with other bits."""
        self.runs = 1
        self.differing = 0
        """Number of runs whose bits differ from the first run's."""
        self.max_abs = 0.0
        """Largest absolute difference from the first run; infinite if there is no such number."""
        self.apart = -1.0
        self.furthest: list[Any] | None = None
        """Outputs of the run furthest from the first; None if all runs gave the same bits."""
        self._known = _small_arrays(first)

    @property
    def distinct(self) -> int:
        """Return the number of results with different bits.

        The first run's digest is computed only if others differ.
        """
        return len(self._digests | {wire_digest(self.first)}) if self._digests else 1

    def repeats_first(self, values: list[Any]) -> bool:
        """Count one more run, in the form that a session returns, if it surely has the first run's bits.

        It takes a fraction of the time that ``add`` takes, and returns False in doubt.
        """
        known = self._known
        if known is None or len(known) != len(values):
            return False
        for value, (dtype, shape, data) in zip(values, known):
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return False
            if value.tobytes() != data:
                return False
        self.runs += 1
        return True

    def add(self, outputs: list[Any]) -> None:
        """Compare the outputs of one more run."""
        self.runs += 1
        if outputs == self.first:  # nearly always, and cheaper than a digest
            return
        self.differing += 1
        self._digests.add(wire_digest(outputs))
        self.max_abs = max(self.max_abs, difference(self.first, outputs, relative=False))
        apart = difference(self.first, outputs)
        if apart > self.apart:
            self.apart, self.furthest = apart, outputs

    def report(self, job_run: JobRun) -> None:
        """Add the runs' results to the result."""
        sessions = job_run.job["repeat"]["sessions"]
        job_run.result["repeats"] = {
            "runs": self.runs // sessions,
            "sessions": sessions,
            "distinct": self.distinct,
            "differing": self.differing,
            "max_abs": self.max_abs if math.isfinite(self.max_abs) else None,
        }
        if self.furthest is not None:
            job_run.report_second(self.first, self.furthest)


def _small_arrays(outputs: list[Any]) -> list[tuple[Any, tuple[int, ...], bytes]] | None:
    """Return type, shape and bytes of outputs in wire form; None unless all are small arrays of numbers."""
    known = []
    for wire in outputs:
        if wire is None or type(wire.get("data")) is not bytes:
            return None
        try:
            known.append((np.dtype(wire["dtype"]), tuple(wire["shape"]), wire["data"]))
        except TypeError:  # an element type that numpy lacks
            return None
    return known


def wire_digest(outputs: list[Any]) -> bytes:
    """Return the SHA-256 of outputs in wire form: equal for the same bits only."""
    sums = hashlib.sha256()
    for value in outputs:
        for part in _parts(value):
            sums.update(part)
    return sums.digest()


def _parts(value: Any) -> Iterator[Any]:
    if value is None:
        yield b"none"
    elif "sequence" in value:
        yield b"sequence %d" % len(value["sequence"])
        for item in value["sequence"]:
            yield from _parts(item)
    elif "keys" in value:
        yield from _parts(value["keys"])
        yield from _parts(value["values"])
    else:
        data = value["data"]
        yield repr((value["dtype"], value["shape"])).encode()
        # repr() keeps neighbouring texts apart.
        yield repr(data).encode() if isinstance(data, list) else getattr(data, "view", data)
