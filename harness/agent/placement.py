"""Which provider ran which node, from onnxruntime's assignment record or from a profile."""

from __future__ import annotations

from typing import Any

from harness.agent.job_run import JobRun
from harness.agent.session_profile import SessionProfile
from harness.agent.session_run import Runner
from harness.agent.session_target import CPU
from harness.agent.wire import to_feed

_MOST_NAMED = 20000
"""Number of a model's nodes up to which they are named, if some are on the provider and some on the CPU."""


_INSERTED_CAST = "InsertedPrecisionFreeCast_"
"""Beginning of the names of casts that onnxruntime adds around a float16 node."""

NodeGroups = list[tuple[str, list[tuple[str, str]]]]
"""Provider and ``(name, operator type)`` of the nodes of each group."""


def placement(job_run: JobRun, *, all_named: bool = False) -> dict[str, Any]:
    """Count the nodes on the chain's providers and on the CPU.

    Nodes are named if some are on both sides, or ``all_named``.

    The assignment record comes first. If it is absent (before 1.24), leaves nodes out (1.24) or is empty
    (nothing left to run, or an ORT-format model), a profile decides: the judged session's own, or that of
    another session of the same model. In 1.25 and 1.26 the record lacks nodes of the CPU, which a profile
    shows; without a profile the source is ``incomplete``.
    """
    target = job_run.target
    groups: NodeGroups = []
    if target.records_assignment():
        groups = [
            (subgraph.ep_name, [(getattr(node, "name", ""), node.op_type) for node in subgraph.get_nodes()])
            for subgraph in job_run.session.get_provider_graph_assignment_info()
        ]
    source = "assignment"
    if groups and target.chain != [CPU] and not target.records_every_node():
        groups, source = _with_nodes_of_the_cpu(job_run, groups)
    if not groups:
        groups, source = (job_run.profile or _profiled(job_run)).nodes, "profile"
    others = [name for name in target.chain if name != CPU]
    own = {name.lower() for name in others} or {CPU.lower()}
    count: dict[bool, dict[str, int]] = {True: {}, False: {}}
    named: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    each: dict[str, dict[str, int]] = {name: {} for name in others}
    spelled = {name.lower(): name for name in others}
    for provider, nodes in groups:
        named[provider.lower() in own] += nodes
        of_provider = each.get(spelled.get(provider.lower(), ""), {})
        for ops in (count[provider.lower() in own], of_provider):
            for _, op_type in nodes:
                ops[op_type] = ops.get(op_type, 0) + 1
    placed: dict[str, Any] = {
        "ep_nodes": sum(count[True].values()),
        "cpu_nodes": sum(count[False].values()),
        "ep_ops": count[True],
        "cpu_ops": count[False],
        "partitions": sum(provider.lower() in own for provider, _ in groups),
        "source": source,
    }
    both = all_named or (named[True] and named[False])
    if both and len(named[True]) + len(named[False]) <= _MOST_NAMED:
        placed["ep_named"], placed["cpu_named"] = named[True], named[False]
    if len(others) > 1:
        placed["chain_ops"] = each
        placed["providers"] = {name: sum(ops.values()) for name, ops in each.items()}
        placed["providers"][CPU] = placed["cpu_nodes"]
    return placed


def _with_nodes_of_the_cpu(job_run: JobRun, recorded: NodeGroups) -> tuple[NodeGroups, str]:
    """Return the provider's nodes as recorded with the CPU's as profiled, and the source."""
    try:
        ran = (job_run.profile or _profiled(job_run)).nodes
    except Exception:  # noqa: BLE001 - whatever the provider's second session ends with, the record is left
        ran = []
    if not ran:
        return recorded, "incomplete"
    kept = [group for group in recorded if group[0] != CPU]
    # Casts around a float16 node are onnxruntime's own.
    kept += [
        (provider, nodes)
        for provider, nodes in ran
        if provider == CPU and not nodes[0][0].startswith(_INSERTED_CAST)
    ]
    return kept, "profile"


def _profiled(job_run: JobRun) -> SessionProfile:
    """Make one more session, and run it once."""
    profile = SessionProfile()
    try:
        job_run.enter("create")
        session = job_run.open(profile)
        job_run.enter("run")
        Runner(session)({name: to_feed(wire) for name, wire in job_run.job["data_sets"][0]})
        profile.end(session)
    finally:
        profile.discard()
    return profile
