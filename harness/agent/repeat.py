"""Repetition: the first data set run again and again, in one session and in fresh ones, bit against bit."""

from __future__ import annotations

import functools
import hashlib
import math
from typing import Any

from harness.agent.difference import difference, distance
from harness.agent.job_run import JobRun
from harness.agent.run import call
from harness.agent.wire import to_feed


def repeat(job_run: JobRun, first: list[Any]) -> None:
    """Make the runs that are still missing; the one furthest from the first is what is judged beside it.

    The last session stays open for the result, and ends as that of a plain run does.

    Args:
        job_run: Its session has run the first data set once.
        first: What came of that, in wire form.
    """
    settings = job_run.job["repeat"]
    names = [output.name for output in job_run.session.get_outputs()]
    types = [output.type.lower() for output in job_run.session.get_outputs()]
    feeds = {name: to_feed(wire) for name, wire in job_run.job["data_sets"][0]}
    tally = Tally(first)
    for session in range(settings["sessions"]):
        if session:
            job_run.enter("teardown")
            job_run.session = None
            job_run.enter("create")
            job_run.session = job_run.open()
        run = functools.partial(call, job_run.session, names, types, feeds)
        for _ in range(settings["runs"] - (session == 0)):
            job_run.enter("run")
            tally.take(run())
    job_run.result["repeats"] = {
        "runs": settings["runs"],
        "sessions": settings["sessions"],
        "distinct": len(tally.digests),
        "max_abs": tally.max_abs if math.isfinite(tally.max_abs) else None,
    }
    if tally.furthest is not None:
        job_run.result["second"] = [job_run.files.send(wire) for wire in tally.furthest]


class Tally:
    """What was seen of the runs so far.

    Args:
        first: Outputs of the first one, in wire form.
    """

    def __init__(self, first: list[Any]) -> None:
        self.first = first
        self.digests = {digest(first)}
        self.max_abs = 0.0
        """Largest absolute difference from the first run; infinite where there is no such number."""
        self.apart = -1.0
        self.furthest: list[Any] | None = None
        """Outputs of the run furthest from the first; None where all gave the same bits."""

    def take(self, outputs: list[Any]) -> None:
        """Take the outputs of one more run."""
        if outputs == self.first:  # as nearly all are, and cheaper than a digest
            return
        self.digests.add(digest(outputs))
        self.max_abs = max(self.max_abs, distance(self.first, outputs))
        apart = difference(self.first, outputs)
        if apart > self.apart:
            self.apart, self.furthest = apart, outputs


def digest(outputs: list[Any]) -> bytes:
    """The same for the same bits, and for no others."""
    sums = hashlib.sha256()
    for value in outputs:
        _add(sums, value)
    return sums.digest()


def _add(sums: hashlib._Hash, value: Any) -> None:
    if value is None:
        sums.update(b"none")
    elif "sequence" in value:
        sums.update(b"sequence %d" % len(value["sequence"]))
        for item in value["sequence"]:
            _add(sums, item)
    elif "keys" in value:
        _add(sums, value["keys"])
        _add(sums, value["values"])
    else:
        data = value["data"]
        sums.update(repr((value["dtype"], value["shape"])).encode())
        # repr() keeps neighbouring texts apart.
        sums.update(repr(data).encode() if isinstance(data, list) else getattr(data, "view", data))
