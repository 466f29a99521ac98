"""`ep-harness levels`: show what each graph optimization level does to a model."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from harness.annex.advise.level_study import examine_levels
from harness.cli.output import notify, print_result, wrapped
from harness.cli.targets import ProviderRequest, wanted_matrix
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.records.graph_levels import (
    GRAPH_CHANGE_KINDS,
    GraphChange,
    Levels,
    LevelStep,
    TargetShare,
    TargetShares,
)
from harness.core.text.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, one_line
from harness.core.text.visible_text import visible
from harness.corpus.suites.suites import open_model
from harness.report.pages.levels_page import write_levels_page

_SHORT = {"disabled": "disab.", "extended": "ext."}
"""Short names of levels, for the table of operators."""


class _Layout(msgspec.Struct, frozen=True):
    """Widths of the label, of the figure of the unchanged model (0 for none), and of each step's figure."""

    label: int
    given: int
    step: int

    def row(self, label: str, figures: Sequence[int | str | None]) -> str:
        # None is a dash, and zero a dot.
        shown = ["-" if one is None else "." if one == 0 else str(one) for one in figures]
        widths = [*([self.given] if self.given else []), *([self.step] * len(shown))]
        cells = "".join(f"{one:>{width}}" for one, width in zip(shown, widths, strict=False))
        label = label if len(label) <= self.label else f"{label[: self.label - 1]}…"
        return f"{label:<{self.label}}{cells}"

    def heading(self, title: str, steps: Sequence[LevelStep]) -> Iterator[str]:
        onnx, ort = (sum(step.form == form for step in steps) * self.step - 1 for form in ("onnx", "ort"))
        indent = " " * (self.label + self.given + 1)
        kinds = " optimization level ".center(onnx, "-"), " ORT format ".center(ort, "-")
        yield indent + " ".join(kinds)
        names = [step.level for step in steps]
        if self.given:
            names = ["model", *(_SHORT.get(name, name) for name in names)]
        yield self.row(title, names)


_OPERATORS = _Layout(24, 6, 7)
_TARGETS = _Layout(15, 0, 9)


def levels(model: str, request: ProviderRequest, *, out: Path | None, as_json: bool) -> int:
    """Print the tables, and write the page if a folder is named.

    Returns:
        0; 1 if no level gives a graph; 130 if interrupted, after printing the results so far.
    """
    suite = open_model(model)
    matrix = wanted_matrix(request)
    others = tuple(target for target in matrix.targets if target.provider != (CPU,))
    found = examine_levels(model, suite, msgspec.structs.replace(matrix, targets=others), notify)
    print_result(found, table(found), as_json=as_json)
    if out is not None:
        notify(f"page     {write_levels_page(found, out)}")
    if not found.complete:
        return EXIT_INTERRUPTED
    return EXIT_OK if any(step.nodes is not None for step in found.steps) else EXIT_UNEXPECTED


def table(found: Levels) -> Iterator[str]:
    """Yield lines of at most 80 columns: operators, changes, targets."""
    opsets = ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())
    runtime = f"onnxruntime {found.onnxruntime or 'unknown'}"
    yield from wrapped(visible(f"{found.model}: {found.nodes:,} nodes, opset {opsets}; {runtime}"))
    yield ""
    yield from _operators(found)
    yield ""
    yield "changes, each level compared with the one before it"
    for step in found.steps:
        if not step.problem:
            yield from _step(step)
    for names, problem in found.problems():
        yield from wrapped(visible(f"no graph: {names}: {problem}"))
    if found.nested:
        yield from wrapped(
            f"The bodies of If, Loop and Scan ({found.nested:,} nodes) are counted, but not compared."
        )
    if found.targets:
        yield ""
        yield from _targets(found)
    if not found.complete:
        yield "INCOMPLETE: interrupted before the last step"


def _operators(found: Levels) -> Iterator[str]:
    yield from _OPERATORS.heading("nodes by operator", found.steps)
    for domain, rows in groupby(found.operators, key=lambda row: row.operator.domain):
        if domain:
            yield f"{one_line(visible(domain), 60)}:"
        for row in rows:
            label = one_line(visible(row.operator.op_type))
            yield _OPERATORS.row(f"  {label}" if domain else label, [row.in_model, *row.counts])
    yield _OPERATORS.row("all", [found.nodes, *(step.nodes for step in found.steps)])


def _step(step: LevelStep) -> Iterator[str]:
    if not step.changes:
        yield f"{step.name:<13}no change from {step.against}"
    for number, change in enumerate(step.changes):
        yield from wrapped(_told(change), f"{step.name if number == 0 else '':<13}")


def _told(change: GraphChange) -> str:
    times = "" if change.times == 1 else f" ({change.times} times)"
    kind = "" if change.kind in {"fused", "replaced", "folded"} else f": {GRAPH_CHANGE_KINDS[change.kind]}"
    return one_line(visible(change.text), 400) + times + kind


def _targets(found: Levels) -> Iterator[str]:
    yield from _TARGETS.heading("run by", found.steps)
    for target in found.targets:
        other = target.onnxruntime not in {"", found.onnxruntime}
        version = f" (onnxruntime {target.onnxruntime})" if other else ""
        yield one_line(visible(target.target), 50) + version
        yield _TARGETS.row("  nodes", [_nodes(share) for share in target.shares])
        yield _TARGETS.row("  partitions", [_partitions(share) for share in target.shares])
    yield from _legend(found.targets)
    for about, remark in found.remarks():
        yield from wrapped(visible(f"{about}: {remark}"))


def _legend(targets: Sequence[TargetShares]) -> Iterator[str]:
    shares = [share for target in targets for share in target.shares if share is not None]
    yield from wrapped(
        "nodes: run by the target / in its own graph, with nodes that the provider adds. partitions: one "
        "for each node if the provider has kernels."
    )
    if any(share.inferred for share in shares):
        yield from wrapped(
            "~ inferred: nodes that did not run on the CPU. onnxruntime does not report them for ORT format."
        )


def _nodes(share: TargetShare | None) -> str:
    if share is None:
        return "-"
    if share.nodes is None:
        return "?" if share.partitions is not None else one_line(share.verdict, _TARGETS.step - 1)
    return f"{'~' if share.inferred else ''}{share.nodes}/{share.of}"


def _partitions(share: TargetShare | None) -> str:
    return "" if share is None or share.partitions is None else str(share.partitions)
