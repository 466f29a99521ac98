"""`ep-harness levels`: what each level of graph optimization makes of a model, and who takes what of it."""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from harness.cli.check import Request
from harness.cli.doctor import tell
from harness.cli.targets import wanted_matrix
from harness.core.errors import one_line
from harness.core.exit_code import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED
from harness.core.levels import KINDS, Change, Levels, Share, Step, TargetShares
from harness.core.text import visible
from harness.corpus.one_model import open_model
from harness.engine.job import CPU
from harness.report.levels import write_levels_page
from harness.run.summary import WIDTH
from harness.studies.levels import examine_levels

SHORT = {"disabled": "disab.", "extended": "ext."}
"""Levels whose name is too long for the table of operators."""


class Layout(msgspec.Struct, frozen=True):
    """How wide the columns of a table are, so that it fits a terminal of 80 columns.

    Attributes:
        label: Columns for what a row is about.
        given: For the figure of the model as it is; 0 where the table has none.
        step: For the figure of each step, with the space before it.
    """

    label: int
    given: int
    step: int

    def row(self, label: str, figures: Sequence[int | str | None]) -> str:
        """A row of figures; none is a dash, and zero a dot."""
        shown = ["-" if one is None else "." if one == 0 else str(one) for one in figures]
        widths = [*([self.given] if self.given else []), *([self.step] * len(shown))]
        cells = "".join(f"{one:>{width}}" for one, width in zip(shown, widths, strict=False))
        label = label if len(label) <= self.label else f"{label[: self.label - 1]}…"
        return f"{label:<{self.label}}{cells}"

    def heading(self, title: str, steps: Sequence[Step]) -> Iterator[str]:
        """Two lines: what kind of steps there are, and their levels."""
        onnx, ort = (sum(step.form == form for step in steps) * self.step - 1 for form in ("onnx", "ort"))
        indent = " " * (self.label + self.given + 1)
        kinds = " optimization level ".center(onnx, "-"), " ORT format ".center(ort, "-")
        yield indent + " ".join(kinds)
        names = [step.level for step in steps]
        if self.given:
            names = ["model", *(SHORT.get(name, name) for name in names)]
        yield self.row(title, names)


OPERATORS = Layout(24, 6, 7)
TARGETS = Layout(15, 0, 9)


def levels(model: str, where: str | None, request: Request, *, out: Path | None, as_json: bool) -> int:
    """Print the tables, and write the page where a folder is named.

    Args:
        model: Path of a model, or ``suite/model``.
        where: Matrix file or provider; None for what can be used here.
        request: Arguments that go with a provider.
        out: Folder of the page; None for none.
        as_json: Print one JSON object in place of the tables.

    Returns:
        0; 1 where onnxruntime gives no graph at any level; 130 where it was interrupted, and what is known
        is printed nevertheless.

    Raises:
        UsageError: An argument is wrong, the model cannot be read, or the page cannot be written.
    """
    suite = open_model(model)
    matrix = wanted_matrix(where, request)
    others = tuple(target for target in matrix.targets if target.provider != (CPU,))
    found = examine_levels(model, suite, msgspec.structs.replace(matrix, targets=others), tell)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        sys.stdout.write("\n".join(table(found)) + "\n")
    if out is not None:
        tell(f"page     {write_levels_page(found, out)}")
    if not found.complete:
        return EXIT_INTERRUPTED
    return EXIT_OK if any(step.nodes is not None for step in found.steps) else EXIT_UNEXPECTED


def table(found: Levels) -> Iterator[str]:
    """The lines for a terminal, at most 80 columns wide: operators, changes, targets."""
    opsets = ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())
    runtime = f"onnxruntime {found.onnxruntime or 'unknown'}"
    yield from _wrapped(visible(f"{found.model}: {found.nodes:,} nodes, opset {opsets}; {runtime}"))
    yield ""
    yield from _operators(found)
    yield ""
    yield "what changes, each level against the one before it"
    for step in found.steps:
        if not step.problem:
            yield from _step(step)
    for names, problem in found.problems():
        yield from _wrapped(visible(f"no graph: {names}: {problem}"))
    if found.nested:
        yield from _wrapped(
            f"The bodies of If, Loop and Scan ({found.nested:,} nodes) are counted, not compared."
        )
    if found.targets:
        yield ""
        yield from _targets(found)
    if not found.complete:
        yield "INCOMPLETE: interrupted before everything was tried"


def _operators(found: Levels) -> Iterator[str]:
    yield from OPERATORS.heading("nodes by operator", found.steps)
    for domain, rows in groupby(found.operators, key=lambda row: row.operator.domain):
        if domain:
            yield f"{one_line(visible(domain), 60)}:"
        for row in rows:
            label = one_line(visible(row.operator.op_type))
            yield OPERATORS.row(f"  {label}" if domain else label, [row.in_model, *row.counts])
    yield OPERATORS.row("all", [found.nodes, *(step.nodes for step in found.steps)])


def _step(step: Step) -> Iterator[str]:
    if not step.changes:
        yield f"{step.name:<13}nothing, against {step.against}"
    for number, change in enumerate(step.changes):
        yield from _wrapped(_told(change), f"{step.name if number == 0 else '':<13}")


def _told(change: Change) -> str:
    times = "" if change.times == 1 else f" ({change.times} times)"
    kind = "" if change.kind in {"fused", "replaced", "folded"} else f": {KINDS[change.kind]}"
    return one_line(visible(change.text), 400) + times + kind


def _targets(found: Levels) -> Iterator[str]:
    yield from TARGETS.heading("taken by", found.steps)
    for target in found.targets:
        version = (
            f" (onnxruntime {target.onnxruntime})"
            if target.onnxruntime not in {"", found.onnxruntime}
            else ""
        )
        yield one_line(visible(target.target), 50) + version
        yield TARGETS.row("  nodes", [_nodes(share) for share in target.shares])
        yield TARGETS.row("  partitions", [_partitions(share) for share in target.shares])
    yield from _legend(found.targets)
    for about, remark in found.remarks():
        yield from _wrapped(visible(f"{about}: {remark}"))


def _legend(targets: Sequence[TargetShares]) -> Iterator[str]:
    shares = [share for target in targets for share in target.shares if share is not None]
    yield from _wrapped(
        "nodes: taken / in its own graph, with what the provider adds. partitions: one for each node "
        "where it has kernels."
    )
    if any(share.inferred for share in shares):
        yield from _wrapped(
            "~ inferred: what did not run on the CPU. onnxruntime does not tell for ORT format."
        )


def _nodes(share: Share | None) -> str:
    if share is None:
        return "-"
    if share.nodes is None:
        return "?" if share.partitions is not None else one_line(share.verdict, TARGETS.step - 1)
    return f"{'~' if share.inferred else ''}{share.nodes}/{share.of}"


def _partitions(share: Share | None) -> str:
    return "" if share is None or share.partitions is None else str(share.partitions)


def _wrapped(text: str, label: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=label, subsequent_indent=" " * (len(label) or 2), break_on_hyphens=False
    )
