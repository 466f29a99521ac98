"""Which provider computed which node."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from harness.agent.run import call
from harness.agent.target import CPU
from harness.agent.wire import to_feed

if TYPE_CHECKING:
    from harness.agent.turn import Turn


@functools.cache
def folder() -> str:
    """Where profiles are written, in this process's own folder: one for each session takes 0.6 ms."""
    return tempfile.mkdtemp(prefix="profiles-", dir=os.getcwd())


class Profile:
    """The nodes that a session executes, written down by onnxruntime as they run; one at a time."""

    def __init__(self) -> None:
        self.prefix = os.path.join(folder(), "profile")
        self.nodes: list[tuple[str, list[str]]] = []
        """``(provider, [operator type])`` of each node, once the profile has ended."""

    def discard(self) -> None:
        """Remove what was written, also by a session that came to nothing."""
        for written in os.scandir(folder()):
            with contextlib.suppress(OSError):  # still in use, on Windows: it goes with the next
                os.unlink(written.path)

    def begin(self, settings: Any) -> None:
        """Have a session with these options write one."""
        settings.enable_profiling = True
        settings.profile_file_prefix = self.prefix

    def end(self, session: Any) -> None:
        """Read what was executed; what the session runs from now on is not written down."""
        with open(session.end_profiling(), encoding="utf-8", errors="replace") as file:
            events = json.load(file)
        executed: dict[str, tuple[str, list[str]]] = {}
        for event in events:
            arguments = event.get("args") or {}
            # A node in a loop runs many times, hence the dict; copies between devices are no nodes.
            if event.get("cat") == "Node" and arguments.get("provider"):
                op_type = arguments.get("op_name", "")
                if not op_type.startswith("Memcpy"):
                    executed[event["name"]] = (arguments["provider"], [op_type])
        self.nodes = list(executed.values())


def placement(turn: Turn) -> dict[str, Any]:
    """Count nodes on the chain's providers and on the CPU.

    The assignment record comes first. Where it is absent (before 1.24), known to be incomplete (1.24)
    or empty (nothing left to run, or an ORT-format model), a profile decides: that of the session itself, or
    of another one of the same model.
    """
    target = turn.target
    groups: list[tuple[str, list[str]]] = []
    if target.records_assignment():
        groups = [
            (subgraph.ep_name, [node.op_type for node in subgraph.get_nodes()])
            for subgraph in turn.session.get_provider_graph_assignment_info()
        ]
    source = "assignment"
    if not groups:
        groups, source = (turn.profile or profiled(turn)).nodes, "profile"
    others = [name for name in target.chain if name != CPU]
    own = {name.lower() for name in others} or {CPU.lower()}
    count: dict[bool, dict[str, int]] = {True: {}, False: {}}
    each: dict[str, dict[str, int]] = {name: {} for name in others}
    spelled = {name.lower(): name for name in others}
    for provider, op_types in groups:
        of_provider = each.get(spelled.get(provider.lower(), ""), {})
        for ops in (count[provider.lower() in own], of_provider):
            for op_type in op_types:
                ops[op_type] = ops.get(op_type, 0) + 1
    placed: dict[str, Any] = {
        "ep_nodes": sum(count[True].values()),
        "cpu_nodes": sum(count[False].values()),
        "ep_ops": count[True],
        "cpu_ops": count[False],
        "partitions": sum(provider.lower() in own for provider, _ in groups),
        "source": source,
    }
    if len(others) > 1:
        placed["chain_ops"] = each
        placed["providers"] = {name: sum(ops.values()) for name, ops in each.items()}
        placed["providers"][CPU] = placed["cpu_nodes"]
    return placed


def profiled(turn: Turn) -> Profile:
    """Make one more session, and run it once."""
    profile = Profile()
    try:
        turn.enter("create")
        session = turn.open(profile.begin)
        names = [output.name for output in session.get_outputs()]
        types = [output.type.lower() for output in session.get_outputs()]
        turn.enter("run")
        call(session, names, types, {name: to_feed(wire) for name, wire in turn.job["data_sets"][0]})
        profile.end(session)
    finally:
        profile.discard()
    return profile
