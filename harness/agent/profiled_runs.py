"""Time by node: further sessions of a model write profiles, and the events of their runs are added up."""

from __future__ import annotations

import bisect
import re
import time
from typing import Any

import numpy as np

from harness.agent.job_run import JobRun
from harness.agent.latency_runs import time_runs
from harness.agent.safe_text import clean
from harness.agent.session_profile import SessionProfile, read_profile
from harness.agent.session_run import Runner
from harness.agent.session_target import CPU
from harness.agent.system import elapsed_ms

_SESSIONS = 3
"""Sessions: places of data in memory differ from one to the next, and so do times."""

_MOST_RUNS = 30
"""Runs that count in each session; a profile has an event for each node of each."""

_MOST_NODES, _MOST_BOUNDARIES, _MOST_NAME = 2000, 8, 200
_KERNEL_TIME, _COPY, _EXECUTE = "_kernel_time", "Memcpy", "Executor::Execute"
_NUMBERS = re.compile(r"(_\d+)+(?=_|$)")
_PARTS = ("ep", "cpu", "copy", "outside", "between")

_Key = tuple[str, str]
"""Node, and the node that it is a kernel of; the latter empty for a node."""


def node_times(job_run: JobRun, settings: dict[str, Any], feeds: dict[str, Any]) -> dict[str, Any]:
    """Return the times of the nodes, the struct ``NodeTimes`` of the harness; the reason if there are none.

    A provider that fails in a further session fails nothing here: its answer has been judged.
    """
    try:
        return _measured(job_run, settings, feeds)
    except Exception as error:  # noqa: BLE001 - any error of the provider
        return {"problem": "%s: %s" % (clean(type(error).__name__, 60), clean(error, 300))}


def _measured(job_run: JobRun, settings: dict[str, Any], feeds: dict[str, Any]) -> dict[str, Any]:
    asked = {
        "warm_up": max(1, settings["warm_up"]),  # the first run of a session is another one
        "repeats": min(_MOST_RUNS, settings["repeats"]),
        "budget_s": settings["budget_s"] / _SESSIONS,
    }
    create_ms, processor_ms, waiting = [], [], []
    sessions: list[list[RunEvents]] = []
    on_ep = {name.lower() for name in job_run.target.chain if name != CPU} or {CPU.lower()}
    for _ in range(_SESSIONS):
        profile = SessionProfile()
        try:
            job_run.enter("create")
            started, processor_s = time.perf_counter(), time.process_time()
            session = job_run.open(profile)
            create_ms.append(elapsed_ms(started))
            processor_ms.append(round((time.process_time() - processor_s) * 1000, 4))
            facts, _ = time_runs(Runner(session).step(feeds), asked, job_run.enter)
            events = read_profile(session)
        finally:
            profile.discard()
        del session
        waiting.append(facts["waiting_threads"])
        sessions.append(events_of_runs(events, len(facts["samples_ns"]), on_ep))
    known = [each for each in waiting if each is not None]
    return {
        **node_sums(sessions),
        "create_ms": create_ms,
        "create_processor_ms": processor_ms,
        "first_processor_ms": job_run.create_processor_ms,
        "waiting_threads": max(known) if known else None,
    }


class RunEvents:
    """The events of one run of a profile, in microseconds.

    Attributes:
        run: The whole run.
        inner: The part of it in which nodes run.
        spent: Node, and the node that it is a kernel of -> its own time, without nodes of its graphs.
        boundaries: Names of two nodes -> time between them, number of copies, bytes.
        about: What is known of each node: operator and side.
    """

    def __init__(self, event: dict[str, Any]) -> None:
        self.run = self.inner = float(event["dur"])
        self.start = event["ts"]
        self.end = self.start + event["dur"]
        self.nodes: list[dict[str, Any]] = []
        self.kernels: list[dict[str, Any]] = []
        self.spent: dict[_Key, float] = {}
        self.about: dict[_Key, tuple[str, str]] = {}
        self.boundaries: dict[tuple[str, str], tuple[float, int, int]] = {}

    def add_up(self, on_ep: set[str]) -> None:
        """Compute times of nodes, kernels and boundaries from the events."""
        self.nodes.sort(key=lambda event: (event["ts"], -event["dur"]))
        open_nodes: dict[Any, list[tuple[float, _Key]]] = {}
        top: list[dict[str, Any]] = []
        for event in self.nodes:
            key = (_name(event), "")
            around = open_nodes.setdefault(event.get("tid"), [])
            while around and around[-1][0] <= event["ts"]:
                around.pop()
            if around:  # a node of the graph of another one, such as a loop
                self.spent[around[-1][1]] -= event["dur"]
            else:
                top.append(event)
            around.append((event["ts"] + event["dur"], key))
            self.spent[key] = self.spent.get(key, 0.0) + event["dur"]
            self.about[key] = (_operator(event), _side(event, on_ep))
        starts = [event["ts"] for event in top]
        for event in self.kernels:
            parent = _parent(event, top, starts)
            if parent:
                key = (clean(event.get("name", ""), _MOST_NAME), parent)
                self.spent[key] = self.spent.get(key, 0.0) + event["dur"]
                self.about[key] = (_kernel_type(event), self.about.get((parent, ""), ("", "ep"))[1])
        self._find_boundaries(top, on_ep)

    def _find_boundaries(self, top: list[dict[str, Any]], on_ep: set[str]) -> None:
        before, side, ended, copies, nbytes = "", "", self.start, 0, 0
        computed = 0
        for event in top:
            if _side(event, on_ep) == "copy":
                copies, nbytes = copies + 1, nbytes + _bytes(event)
                continue
            its = _side(event, on_ep)
            if copies or (side and its != side):
                waited = max(0.0, event["ts"] - ended)
                self.boundaries[before, _name(event)] = (waited, copies, nbytes or computed)
            before, side, copies, nbytes = _name(event), its, 0, 0
            ended, computed = event["ts"] + event["dur"], _bytes(event)
        if copies:
            self.boundaries[before, ""] = (max(0.0, self.start + self.run - ended), copies, nbytes)

    def parts(self) -> list[float]:
        """Return the times of ``_PARTS``."""
        sides = {"ep": 0.0, "cpu": 0.0, "copy": 0.0}
        for key, spent in self.spent.items():
            if not key[1]:
                sides[self.about[key][1]] += spent
        outside = max(0.0, self.run - self.inner)
        between = max(0.0, self.inner - sum(sides.values()))
        return [*sides.values(), outside, between]


def events_of_runs(events: list[dict[str, Any]], count: int, on_ep: set[str]) -> list[RunEvents]:
    """Return the last runs of a profile, so many of them, with their nodes.

    Args:
        events: All events of the profile.
        count: Number of runs that count.
        on_ep: Names of the providers, in lower case, whose nodes are on the EP.
    """
    timed = [event for event in events if event.get("ph") == "X" and "dur" in event and "ts" in event]
    whole = sorted(
        (event for event in timed if event.get("name") == "model_run"), key=lambda event: event["ts"]
    )
    runs = [RunEvents(event) for event in whole]
    starts = [run.start for run in runs]
    for event in timed:
        place = bisect.bisect_right(starts, event["ts"]) - 1
        if place < 0 or event["ts"] > runs[place].end:
            continue
        category, run = event.get("cat"), runs[place]
        if category == "Kernel":
            run.kernels.append(event)
        elif category == "Node":
            if event["name"].endswith(_KERNEL_TIME) and (event.get("args") or {}).get("provider"):
                run.nodes.append(event)
        elif event["name"].endswith(_EXECUTE):
            run.inner = float(event["dur"])
    counted = runs[-count:]
    for run in counted:
        run.add_up(on_ep)
    return counted


def node_sums(sessions: list[list[RunEvents]]) -> dict[str, Any]:
    """Return the medians over the runs of each session, and the spread over all runs."""
    runs = [run for session in sessions for run in session]
    about = {key: what for run in runs for key, what in run.about.items()}
    order = _in_order(about)
    spent = {key: [[run.spent.get(key, 0.0) for run in session] for session in sessions] for key in order}
    size = {key: float(np.median([np.median(each) for each in spent[key]])) for key in order}
    with_kernels = {(key[1], "") for key in order if key[1]}
    kept = set(sorted(order, key=lambda key: (key not in with_kernels, -size[key]))[:_MOST_NODES])
    nodes: list[dict[str, Any]] = []
    for key in order:
        if key not in kept:
            continue
        low, high = np.percentile(np.concatenate(spent[key]), (25, 75))
        op, side = about[key]
        node: dict[str, Any] = {"node": key[0], "op": op, "side": side, "ms": _medians(spent[key])}
        node.update(low_ms=_ms(low), high_ms=_ms(high))
        nodes.append({**node, "inside": key[1]} if key[1] else node)
    left = [key for key in order if key not in kept and not key[1]]
    parts = np.array([[run.parts() for run in session] for session in sessions], dtype=object)
    return {
        "runs": len(runs),
        "run_ms": _medians([[run.run for run in session] for session in sessions]),
        "parts": {
            part: [_ms(np.median([run[index] for run in session])) for session in parts]
            for index, part in enumerate(_PARTS)
        },
        "nodes": nodes,
        "left_out": len(left),
        "left_out_ms": _ms(sum(size[key] for key in left)),
        **_boundaries(sessions),
    }


def _boundaries(sessions: list[list[RunEvents]]) -> dict[str, Any]:
    places = dict.fromkeys(place for session in sessions for run in session for place in run.boundaries)
    found: list[dict[str, Any]] = []
    for place in places:
        seen = [[run.boundaries.get(place, (0.0, 0, 0)) for run in session] for session in sessions]
        _, copies, nbytes = max(one for session in seen for one in session)
        times = _medians([[one[0] for one in session] for session in seen])
        found.append({"after": place[0], "before": place[1], "ms": times, "copies": copies, "nbytes": nbytes})
    found.sort(key=lambda one: (-float(np.median(one["ms"])), -one["nbytes"]))
    return {"boundaries": found[:_MOST_BOUNDARIES], "boundary_count": len(found)}


def _in_order(about: dict[_Key, Any]) -> list[_Key]:
    """Return nodes in the order in which they ran first, each with its kernels behind it."""
    kernels: dict[str, list[_Key]] = {}
    for key in about:
        if key[1]:
            kernels.setdefault(key[1], []).append(key)
    order: list[_Key] = []
    for key in about:
        if not key[1]:
            order += [key, *kernels.get(key[0], [])]
    return order


def _name(event: dict[str, Any]) -> str:
    return clean(event["name"][: -len(_KERNEL_TIME)], _MOST_NAME)


def _operator(event: dict[str, Any]) -> str:
    """Return the operator; a convolution with the size of its kernel."""
    arguments = event["args"]
    op = str(arguments.get("op_name", ""))
    if op.lower().startswith(str(arguments["provider"]).lower()):
        return "compiled partition"
    op = _NUMBERS.sub("", op)
    if "conv" in op.lower():
        shapes: list[list[Any]] = [
            next(iter(shape.values()), []) for shape in arguments.get("input_type_shape") or [] if shape
        ]
        weights = next((shape for shape in shapes[1:] if len(shape) > 2), None)  # noqa: PLR2004
        if weights is not None:
            op += " " + "x".join(map(str, weights[2:]))
    return clean(op, _MOST_NAME)


def _kernel_type(event: dict[str, Any]) -> str:
    """Return the type of a kernel, by a key such as ``ov_node_type``; else its name."""
    arguments = event.get("args") or {}
    told = [
        value for key, value in sorted(arguments.items()) if key == "op_name" or key.endswith("node_type")
    ]
    return clean(str(told[0]) if told else _NUMBERS.sub("", str(event.get("name", ""))), _MOST_NAME)


def _parent(event: dict[str, Any], nodes: list[dict[str, Any]], starts: list[float]) -> str:
    """Return the node that a kernel belongs to: as its provider tells it, else by the time; empty if none."""
    told = str((event.get("args") or {}).get("parent_ort_event_name", ""))
    if told.endswith(_KERNEL_TIME):
        return clean(told[: -len(_KERNEL_TIME)], _MOST_NAME)
    place = bisect.bisect_right(starts, event["ts"]) - 1
    inside = place >= 0 and event["ts"] <= nodes[place]["ts"] + nodes[place]["dur"]
    return _name(nodes[place]) if inside else ""


def _side(event: dict[str, Any], on_ep: set[str]) -> str:
    if str(event["args"].get("op_name", "")).startswith(_COPY):
        return "copy"
    return "ep" if event["args"]["provider"].lower() in on_ep else "cpu"


def _bytes(event: dict[str, Any]) -> int:
    told = str(event["args"].get("output_size", ""))
    return int(told) if told.isdigit() else 0


def _medians(sessions: list[list[float]]) -> list[float]:
    return [_ms(np.median(runs)) for runs in sessions]


def _ms(microseconds: Any) -> float:
    return round(max(0.0, float(microseconds)) / 1000, 6)
