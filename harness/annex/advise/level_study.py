"""What each graph optimization level makes of a model, and which nodes each target then runs.

The graphs are those of the CPU provider: onnxruntime optimizes before a target gets its nodes, and writes the
graphs in a process that may die. The nodes of a target come from its own sessions, one for each level, which
are judged like any cell.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec

from harness.annex.advise.candidates import at_first_values
from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.records.graph_levels import (
    ORIGINS,
    Levels,
    LevelStep,
    OperatorRow,
    OperatorType,
    TargetShare,
    TargetShares,
)
from harness.core.records.record import Record
from harness.core.text.errors import one_line
from harness.corpus.graph import Graph, graph_in, read_graph
from harness.corpus.graph_changes import changes
from harness.corpus.suites.suite import Suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished, TargetReady
from harness.engine.workers.job import FORM
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.target import Target
from harness.studies.ask import Notify, matrix_for, results

_LEVEL = "graph_optimization"
_LEVELS = ("disabled", "basic", "extended", "layout", "all")
_ORT_LEVELS = ("basic", "extended")
"""Levels of a conversion to ORT format; the result of higher ones depends on the processor."""

_STEPS: tuple[LevelStep, ...] = (
    *(LevelStep(level=level, form="onnx") for level in _LEVELS),
    *(LevelStep(level=level, form="ort") for level in _ORT_LEVELS),
)

_GRAPHS = "graphs"
"""Name of the target whose process writes the graphs."""

_Seen = dict[tuple[str, str], Finished]


def examine_levels(name: str, suite: Suite, matrix: Matrix, notify: Notify) -> Levels:
    """Examine the only model of a suite at every level. Ctrl-C ends it early, with the results so far.

    The matrix has the targets, the tolerances and the settings of models; of an option that varies, the first
    value is used.

    Raises:
        UsageError: The model cannot be read.
    """
    (model,) = suite.models()
    given = graph_in(suite, model)
    own = Target(name=_GRAPHS, provider=(CPU,))
    asked = [msgspec.structs.replace(at_first_values(target), alone=False) for target in matrix.targets]
    cells = [*_cells(suite, model, own), *(cell for one in asked for cell in _cells(suite, model, one))]
    plan = Plan(matrix=matrix_for(matrix, [own, *asked]), cells=tuple(cells))
    seen, fingerprints, complete = _run(plan, suite, notify)
    graphs = [_graph(seen.get((_GRAPHS, step.name))) for step in _STEPS]
    return Levels(
        model=name,
        opsets=given.opsets,
        nodes=given.total,
        nested=given.nested,
        onnxruntime=_version(fingerprints.get(_GRAPHS, {})),
        steps=tuple(_steps(given, graphs)),
        operators=tuple(_operators(given, [graph for graph, _ in graphs])),
        targets=tuple(
            TargetShares(
                target=target.name,
                provider=target.provider[0],
                onnxruntime=_version(fingerprints.get(target.name, {})),
                shares=tuple(
                    _share(seen.get((target.name, step.name)), step, graph)
                    for step, (graph, _) in zip(_STEPS, graphs, strict=True)
                ),
            )
            for target in asked
        ),
        complete=complete,
    )


def _cells(suite: Suite, model: str, target: Target) -> Iterator[Cell]:
    for step in _STEPS:
        axes: dict[str, str] = {FORM: step.form}
        if target.name != _GRAPHS:
            axes = {"scenario": "ort_format" if step.form == "ort" else "plain"}
        pairs = sorted({_LEVEL: step.level, **axes}.items())
        yield Cell(suite=suite.name, model=model, target=target.name, axes=tuple(pairs))


def _run(plan: Plan, suite: Suite, notify: Notify) -> tuple[_Seen, dict[str, dict[str, Any]], bool]:
    """Return the result of each step on each target, the environments, and whether the run is complete."""
    seen: _Seen = {}
    fingerprints: dict[str, dict[str, Any]] = {}
    with closing(Engine(plan, {suite.name: suite})) as engine:
        try:
            engine.submit(plan.cells)
            engine.drain()
            for event in results(engine, notify):
                if isinstance(event, Finished):
                    step = _step_of(event.record)
                    seen[event.record.target, step] = event
                    if event.record.target != _GRAPHS:
                        notify(f"{event.record.target} at {step}: {event.record.verdict}")
                elif isinstance(event, TargetReady):
                    fingerprints[event.target] = event.fingerprint
        except KeyboardInterrupt:
            return seen, fingerprints, False
    return seen, fingerprints, True


def _step_of(record: Record) -> str:
    ort = record.axes.get(FORM) == "ort" or record.axes.get("scenario") == "ort_format"
    return LevelStep(level=record.axes[_LEVEL], form="ort" if ort else "onnx").name


def _graph(finished: Finished | None) -> tuple[Graph | None, str]:
    """Return the graph of a step, or None and the reason."""
    if finished is None:
        return None, "not tried: interrupted"
    if finished.graph:
        try:
            return read_graph(finished.graph), ""
        except ValueError as error:
            return None, f"the graph that onnxruntime wrote cannot be read: {one_line(error)}"
    return None, f"{finished.record.verdict}: {finished.record.reason}"


def _steps(given: Graph, graphs: Sequence[tuple[Graph | None, str]]) -> Iterator[LevelStep]:
    known: dict[str, Graph] = {}
    before = "model", given
    for step, (graph, problem) in zip(_STEPS, graphs, strict=True):
        if graph is None:
            yield msgspec.structs.replace(step, problem=problem)
            continue
        # A conversion is compared with the same level; a level with the previous one.
        base = (step.level, known[step.level]) if step.form == "ort" and step.level in known else before
        yield msgspec.structs.replace(
            step, nodes=graph.total, against=base[0], changes=changes(base[1], graph)
        )
        if step.form == "onnx":
            known[step.level] = graph
            before = step.level, graph


def _operators(given: Graph, graphs: Sequence[Graph | None]) -> Iterator[OperatorRow]:
    every: Counter[OperatorType] = Counter(given.operators)
    for graph in graphs:
        every.update(graph.operators if graph else {})
    origins = list(ORIGINS)
    for operator in sorted(every, key=lambda one: (origins.index(one.origin), one)):
        yield OperatorRow(
            operator=operator,
            in_model=given.operators.get(operator, 0),
            counts=tuple(graph.operators.get(operator, 0) if graph else None for graph in graphs),
        )


def _share(finished: Finished | None, step: LevelStep, graph: Graph | None) -> TargetShare | None:
    if finished is None:
        return None
    record, placement = finished.record, finished.record.placement
    share = TargetShare(verdict=record.verdict, reason=record.reason)
    if placement is None:
        return share
    share = msgspec.structs.replace(share, partitions=placement.partitions)
    if placement.source == "assignment":
        both = placement.ep_nodes + placement.cpu_nodes
        return msgspec.structs.replace(share, nodes=placement.ep_nodes, of=both)
    # A profile shows a compiled partition as one node, but each node that ran on the CPU. Nodes in the bodies
    # of If and Loop may not run at all.
    if step.form == "ort" and graph is not None and not graph.nested and placement.cpu_nodes <= graph.total:
        taken = graph.total - placement.cpu_nodes
        return msgspec.structs.replace(share, nodes=taken, of=graph.total, inferred=True)
    return share


def _version(fingerprint: dict[str, Any]) -> str:
    return str(fingerprint.get("onnxruntime", ""))
