"""The pages *Operators*: the operators that each column computes, from evidence.

There are two kinds of evidence. *Verdicts* come from models with one type of operator, such as ONNX's
operator tests: there a verdict is about that operator. *Placement* comes from every model: the provider of
the nodes of each type, whatever the model's verdict.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec

from harness.catalog.catalog import load_catalog
from harness.core.records.record import ModelContent, Record
from harness.core.records.verdict import Family, Verdict
from harness.report.cells.column import Column
from harness.report.runs.environment import KERNELS
from harness.report.view import Documented, Report
from harness.report.words.figures import Segment, Share, stacked

_MAX_OPERATORS = 1_000
"""Largest number of rows of the table: ONNX and onnxruntime have some 400 operators, but a model may name
any number."""

MAX_TABLE_SQUARES = 20_000
"""Largest number of squares of the table: operators times columns."""

_REACHES = {
    "passed": "all pass",
    "partial": "some pass",
    "failed": "none passes, some fail",
    "unsupported": "none passes, none fails: left to the CPU, or refused",
}
"""Tone of a tried operator -> its meaning."""

_OTHER_LAYOUT = "com.ms.internal.nhwc:"
"""Domain of onnxruntime for ONNX's operators in another layout."""

_SHOWN_NOTES = 3
"""Number of kinds of trouble that are listed for one operator in one column."""

_ONNX = "ai.onnx"
_UNTRIED = (Family.SKIPPED, Family.EXCLUDED, Family.MISSING)


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Cells of one operator with the same verdict, other than a pass.

    With the reason of the first of them.
    """

    verdict: Verdict
    count: int
    reason: str


class OperatorCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """One type of operator in one column.

    Attributes:
        passed: Models with only this operator and a right answer computed wholly by the EP, among the tried
            ones.
        opsets: The same by version of ONNX's operators, ascending; 0 for models without ONNX's own operators.
        types: Element types of the inputs of models that passed wholly.
        other_types: Element types of the other tried models, without those above.
        failed: How many of the tried models failed.
        ep_nodes: Nodes of this type on the EP, over all models.
        troubles: Verdicts of the tried models that did not pass; the most frequent first.
        troubles_left_out: Cells with verdicts that are not listed.
        listed: Whether documents list the operator for this provider; None without a list.
        declared: The versions for which the plugin declares a kernel; empty if none, None if it declares
            none of any operator, or this onnxruntime does not tell.
    """

    name: str
    passed: Share
    opsets: tuple[tuple[int, Share], ...]
    types: tuple[str, ...]
    other_types: tuple[str, ...]
    failed: int
    ep_nodes: int
    cpu_nodes: int
    troubles: tuple[Trouble, ...]
    troubles_left_out: int
    listed: bool | None
    restriction: str
    declared: tuple[str, ...] | None = None

    @property
    def reach(self) -> str:
        """``all``, ``some`` or ``none`` of the tried models passed; empty if none was tried."""
        if not self.passed.total:
            return ""
        if not self.passed.count:
            return "none"
        return "all" if self.passed.count == self.passed.total else "some"

    @property
    def tone(self) -> str:
        """Return the tone of ``reach``; if none passes, it depends on whether any failed."""
        if self.reach == "none":
            return "failed" if self.failed else "unsupported"
        return {"all": "passed", "some": "partial", "": "skipped"}[self.reach]

    @property
    def where(self) -> str:
        """``on the EP``, ``partly`` or ``CPU only``; empty if no node was placed."""
        if not self.ep_nodes and not self.cpu_nodes:
            return ""
        if not self.cpu_nodes:
            return "on the EP"
        return "partly" if self.ep_nodes else "CPU only"

    @property
    def differs(self) -> str:
        """Return how evidence, documents and declared kernels differ from each other.

        Empty if they do not, or if all but one are missing.
        """
        return "; ".join(self._differences())

    def _differences(self) -> Iterator[str]:
        if self.listed and self.reach == "none" and not self.ep_nodes:
            yield "listed, but none passes"
        if self.listed is False and self.passed.count:
            yield "works, but not listed"
        if self.declared is None:
            return
        if self.declared and self.cpu_nodes and not self.ep_nodes:
            tried = ", ".join(str(version) for version, _ in self.opsets if version)
            of_opset = f" of opset {tried}" if tried else ""
            yield f"a kernel is declared for {', '.join(self.declared)}, but takes no node{of_opset}"
        if not self.declared and self.ep_nodes:
            yield "computed without a declared kernel"
        if not self.declared and self.listed:
            yield "listed, but no kernel is declared"


class ColumnOperators(msgspec.Struct, frozen=True, kw_only=True):
    """The view of one column: its operators, sorted by name."""

    column: Column
    operators: tuple[OperatorCoverage, ...]

    @property
    def reached(self) -> tuple[int, ...]:
        """Number of operators of each tone of ``_REACHES``."""
        counts = Counter(operator.tone for operator in self.operators)
        return tuple(counts[tone] for tone in _REACHES)

    @property
    def bar(self) -> tuple[Segment, ...]:
        """These numbers as a bar; the keys are the tones."""
        return stacked(zip(_REACHES, self.reached, strict=True))


class OperatorTable(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the table: operators by columns.

    Attributes:
        columns: The columns with any evidence about an operator.
    """

    names: tuple[str, ...]
    columns: tuple[ColumnOperators, ...]
    left_out: int

    reaches: ClassVar = _REACHES

    @property
    def rows(self) -> tuple[tuple[str, tuple[OperatorCoverage | None, ...]], ...]:
        """``(name, operator in each column)``; None if nothing is known."""
        known = [{operator.name: operator for operator in column.operators} for column in self.columns]
        return tuple((name, tuple(column.get(name) for column in known)) for name in self.names)


def operators_view(report: Report) -> Iterator[OperatorTable]:
    """Yield the table, if anything is known about any operator."""
    table = operator_table(report)
    if table.names:
        yield table


def column_views(report: Report) -> Iterator[ColumnOperators]:
    """Yield a view for each column of the table."""
    yield from operator_table(report).columns


def operator_table(report: Report) -> OperatorTable:
    """Count the evidence for each operator in each column."""
    evidence: dict[Column, dict[str, _Evidence]] = {column: {} for column in report.columns}
    declared = {
        one.target: declared_versions(one.fingerprint.get(KERNELS)) for one in report.run.environments
    }
    for cell in report.cells:
        _collect(evidence[cell.column], cell.record)
    names = sorted({name for found in evidence.values() for name in found})
    shown = names[: min(_MAX_OPERATORS, MAX_TABLE_SQUARES // max(1, len(evidence)))]
    return OperatorTable(
        names=tuple(shown),
        columns=tuple(
            ColumnOperators(
                column=column,
                operators=tuple(
                    msgspec.structs.replace(
                        _operator(name, found[name], documents, complete=report.complete),
                        declared=None if kernels is None else _declared(name, found[name], kernels),
                    )
                    for name in shown
                    if name in found
                ),
            )
            for column, found in evidence.items()
            if found
            for documents in [report.documented.get(column.provider)]
            for kernels in [declared.get(column.target)]
        ),
        left_out=len(names) - len(shown),
    )


def documented_operators() -> Documented:
    """Return provider -> operator -> its restrictions, of the providers that have a list in the catalogue.

    Raises:
        UsageError: The shipped catalogue cannot be read.
    """
    return {
        provider.name: dict(provider.operators.operators)
        for provider in load_catalog().providers
        if provider.operators is not None and provider.operators.operators
    }


def declared_versions(kernels: object) -> dict[str, tuple[str, ...]] | None:
    """Return operator -> versions of its declared kernels, ascending; None if there are no kernels.

    Names of operators that are not ONNX's have their domain, ``com.microsoft:Gelu``.
    """
    found: dict[str, set[str]] = {}
    for kernel in kernels if isinstance(kernels, list) else ():
        name, _, versions = str(kernel).rpartition(" ")
        found.setdefault(name.removeprefix(_OTHER_LAYOUT), set()).add(versions)
    return {name: tuple(sorted(each, key=_first_version)) for name, each in found.items()} or None


def _first_version(versions: str) -> tuple[int, str]:
    first = versions.partition("-")[0]
    return int(first) if first.isdecimal() else 0, versions


def is_tried(record: Record) -> bool:
    """Return whether the EP was tried in a cell."""
    return record.verdict.family not in _UNTRIED


def only_operator(record: Record) -> str:
    """Return the type of operator that a verdict is about: the model's only type; empty if it has several."""
    ops = record.content.ops if record.content is not None else {}
    return next(iter(ops)) if len(ops) == 1 else ""


class _Evidence(msgspec.Struct):
    """One column's evidence about one operator: tried models with only this operator, nodes of all models."""

    tried: list[tuple[Record, ModelContent]] = []
    ep_nodes: int = 0
    cpu_nodes: int = 0


def _declared(name: str, found: _Evidence, kernels: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the declared versions of an operator, of another domain only where its models may mean that."""
    imported = {domain for _, content in found.tried for domain in content.opsets}
    others = [
        versions
        for key, versions in kernels.items()
        if key.endswith(f":{name}") and (not found.tried or key.partition(":")[0] in imported)
    ]
    return kernels.get(name) or next(iter(others), ())


def _collect(found: dict[str, _Evidence], record: Record) -> None:
    placement, content = record.placement, record.content
    if placement is not None:
        for name, nodes in placement.ep_ops.items():
            found.setdefault(name, _Evidence()).ep_nodes += nodes
        for name, nodes in placement.cpu_ops.items():
            found.setdefault(name, _Evidence()).cpu_nodes += nodes
    name = only_operator(record)
    if name and content is not None and is_tried(record):
        found.setdefault(name, _Evidence()).tried.append((record, content))


def _operator(
    name: str, found: _Evidence, documented: Mapping[str, str] | None, *, complete: bool
) -> OperatorCoverage:
    opsets: dict[int, list[bool]] = {}
    types: dict[bool, set[str]] = {True: set(), False: set()}
    troubles: Counter[Verdict] = Counter()
    reasons: dict[Verdict, str] = {}
    for record, content in found.tried:
        passed = record.verdict is Verdict.PASS
        opsets.setdefault(content.opsets.get(_ONNX, 0), []).append(passed)
        types[passed].update(content.types)
        if not passed:
            troubles[record.verdict] += 1
            reasons.setdefault(record.verdict, record.reason)
    shown = troubles.most_common(_SHOWN_NOTES)
    return OperatorCoverage(
        name=name,
        passed=Share(len(found.tried) - troubles.total(), len(found.tried), not complete),
        opsets=tuple(
            (version, Share(sum(each), len(each), not complete)) for version, each in sorted(opsets.items())
        ),
        types=tuple(sorted(types[True])),
        other_types=tuple(sorted(types[False] - types[True])),
        failed=sum(record.verdict.family is Family.FAILED for record, _ in found.tried),
        ep_nodes=found.ep_nodes,
        cpu_nodes=found.cpu_nodes,
        troubles=tuple(
            Trouble(verdict=verdict, count=count, reason=reasons[verdict]) for verdict, count in shown
        ),
        troubles_left_out=troubles.total() - sum(count for _, count in shown),
        listed=None if documented is None else name in documented,
        restriction="" if documented is None else documented.get(name, ""),
    )
