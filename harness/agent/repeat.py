"""Repetition: run the first data set many times, in one session and in fresh ones, and compare the bits."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

from harness.agent.difference import difference
from harness.agent.job_run import JobRun
from harness.agent.wire import to_feed


def repeat(job_run: JobRun, first: list[Any]) -> None:
    """Make the runs that are missing; the one furthest from ``first``, the only run yet, becomes ``second``.

    The last session stays open for the result, and ends as that of a plain run does.
    """
    settings = job_run.job["repeat"]
    feeds = {name: to_feed(wire) for name, wire in job_run.job["data_sets"][0]}
    tally = Tally(first)
    for session in range(settings["sessions"]):
        if session:
            job_run.enter("teardown")
            job_run.close()
            job_run.enter("create")
            job_run.judge(job_run.open())
        for _ in range(settings["runs"] - (session == 0)):
            job_run.enter("run")
            tally.add(job_run.runner(feeds))
    job_run.result["repeats"] = {
        "runs": settings["runs"],
        "sessions": settings["sessions"],
        "distinct": len(tally.digests),
        "max_abs": tally.max_abs if math.isfinite(tally.max_abs) else None,
    }
    if tally.furthest is not None:
        job_run.result["second"] = job_run.send(tally.furthest)


class Tally:
    """Compares runs with the first one, whose outputs are in wire form."""

    def __init__(self, first: list[Any]) -> None:
        self.first = first
        self.digests = {digest(first)}
        self.max_abs = 0.0
        """Largest absolute difference from the first run; infinite if there is no such number."""
        self.apart = -1.0
        self.furthest: list[Any] | None = None
        """Outputs of the run furthest from the first; None if all runs gave the same bits."""

    def add(self, outputs: list[Any]) -> None:
        """Compare the outputs of one more run."""
        if outputs == self.first:  # nearly always, and cheaper than a digest
            return
        self.digests.add(digest(outputs))
        self.max_abs = max(self.max_abs, difference(self.first, outputs, relative=False))
        apart = difference(self.first, outputs)
        if apart > self.apart:
            self.apart, self.furthest = apart, outputs


def digest(outputs: list[Any]) -> bytes:
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
