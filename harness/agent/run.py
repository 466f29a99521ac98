"""Runs of a session: the data sets of a job one after the other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.errors import UnfeedableError
from harness.agent.other_inputs import other_inputs
from harness.agent.system import elapsed_ms
from harness.agent.tensor_files import TensorFiles
from harness.agent.text import sendable
from harness.agent.wire import narrow_type, ort_value, to_feed, to_wire, value_to_wire

REPEAT_LIMIT_MS = 500  # a first run that took longer is not repeated


def run(
    session: Any,
    job: dict[str, Any],
    result: dict[str, Any],
    enter: Callable[[str], None],
    files: TensorFiles,
    after_first: Callable[[], None],
) -> list[Any]:
    """Run every data set; where that is cheap other inputs, and then the first data set again.

    A provider that keeps what it computed first, or mixes up its buffers, shows in the two further runs.

    Args:
        session: What runs.
        job: The data sets, whether other inputs are wanted, and whether somebody else repeats the first one.
        result: Takes names, outputs and how long the first run took.
        enter: Tells the harness of a phase.
        files: Take large outputs.
        after_first: Called once the first run is through.

    Returns:
        Outputs of the first run, in wire form. Where the job asks for repetitions, the second is one of them.
    """
    names = [output.name for output in session.get_outputs()]
    types = [output.type.lower() for output in session.get_outputs()]
    result["names"] = sendable(names)
    result["outputs"] = []
    first: list[Any] = []
    first_feeds: dict[str, Any] = {}
    for index, inputs in enumerate(job["data_sets"]):
        enter("run")  # each time: the limit holds for one run
        feeds = {name: to_feed(wire) for name, wire in inputs}
        started = time.perf_counter()
        outputs = call(session, names, types, feeds)
        if index == 0:
            result["timings_ms"]["first_run"] = elapsed_ms(started)
            first, first_feeds = outputs, feeds
        result["outputs"].append([files.send(wire) for wire in outputs])
        if index == 0:
            after_first()
    if result["timings_ms"]["first_run"] < REPEAT_LIMIT_MS:
        if job.get("other"):
            with contextlib.suppress(Exception):  # these inputs need not be any that the model takes
                other = other_inputs(first_feeds)
                if other is not None:
                    result["other"] = [files.send(wire) for wire in call(session, names, types, other)]
        if "repeat" not in job:
            again = call(session, names, types, first_feeds)
            if again != first:
                result["second"] = [files.send(wire) for wire in again]
    return first


def call(session: Any, names: list[str], types: list[str], feeds: dict[str, Any]) -> list[Any]:
    """Run once; outputs in wire form, in the order of ``names``, large ones as ``Bulk`` still."""
    return in_wire_form(step_of(session, names, types, feeds)(), types)


def step_of(
    session: Any, names: list[str], types: list[str], feeds: dict[str, Any]
) -> Callable[[], list[Any]]:
    """One run, with nothing left to do but to run; what it returns is for ``in_wire_form``."""
    if not has_narrow(types):
        return lambda: list(session.run(names, feeds))
    # numpy cannot hold these outputs, so they are read from the memory of OrtValues instead.
    values = {}
    for name, feed in feeds.items():
        if isinstance(feed, (list, dict, type(None))) or (
            isinstance(feed, np.ndarray) and feed.dtype.kind == "O"
        ):
            raise UnfeedableError("containers or strings together with an output type that numpy lacks")
        values[name] = ort_value().ortvalue_from_numpy(feed) if isinstance(feed, np.ndarray) else feed
    return lambda: list(session.run_with_ort_values(names, values))


def in_wire_form(values: list[Any], types: list[str]) -> list[Any]:
    """What a step has returned, in wire form."""
    if has_narrow(types):
        return [value_to_wire(value, narrow_type(kind)) for value, kind in zip(values, types)]
    return [to_wire(value, kind) for value, kind in zip(values, types)]


def has_narrow(types: list[str]) -> bool:
    """Whether numpy cannot hold some outputs."""
    return any(narrow_type(output_type) for output_type in types)
