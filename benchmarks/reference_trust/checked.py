"""What the check of ``onnx.reference`` found, operator version by operator version."""

import importlib.metadata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from benchmarks.reference_trust.measure import Result
from benchmarks.reference_trust.restamp import operators, versions_of
from harness.corpus.model.nodes import operator_name

Standing = Literal["agrees", "disagrees", "raises", "not checked"]

LEAST = 2
"""Checks that have to agree before an operator version counts as checked."""

LONGEST = 40
"""Characters of a value that a finding shows; weights of trees are longer."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Checks of one operator version in which ``onnx.reference`` and the CPU EP differ.

    Attributes:
        where: Attributes that all of these checks have and not all others do; else those of the worst.
        checks: How many.
        types: Floating types in which they differ.
        by: Largest ``norm(reference - cpu) / norm(cpu)`` of an output; None where shapes differ or nothing is
            finite.
        right: Which of the two a third answer agrees with; ``open`` without a third answer.
        third: What gave that answer: ``formula`` (numpy in float64), ``expected data`` (of ONNX's tests), or
            ``type and shape inference`` (ONNX's own).
    """

    where: str
    checks: int
    types: tuple[str, ...] = ()
    by: float | None = None
    right: str
    third: str = ""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What the check found about one version of an operator.

    Attributes:
        domain: Empty for ONNX's own.
        op_type: The operator.
        since: ``since_version`` of its schema.
        standing: ``agrees``: ``onnx.reference`` computes it as the CPU EP does, or is right where they
            differ. ``disagrees``: it differs, and is not shown to be right. ``raises``: it never answers.
            ``not checked``: the CPU EP runs none of the checks, or too few have an answer.
        agreed: Checks in which both agree.
        types: Floating types in which they agree.
        findings: Where they differ.
    """

    domain: str = ""
    op_type: str
    since: int
    standing: Standing
    agreed: int = 0
    types: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """Domain and operator."""
        return operator_name(self.domain, self.op_type)

    def is_right_in(self, float_type: str) -> bool:
        """Whether ``onnx.reference`` is right for models of one floating type."""
        if self.standing != "disagrees":
            return self.standing == "agrees"
        wrong = (found for found in self.findings if found.right != "reference")
        return float_type in self.types and all(
            found.types and float_type not in found.types for found in wrong
        )


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """The whole check.

    Attributes:
        onnx: Version of onnx whose reference was checked.
        onnxruntime: Version of the CPU EP that it was compared with.
        numpy: Version of numpy that the reference computed with.
        specs: Specifications of subjects beside ONNX's own tests.
        checks: Subjects that the CPU EP answers.
        refused: Subjects that it does not, most of them for want of a kernel.
        operators: Every version of every operator of ONNX's domains; by domain, name and version.
    """

    onnx: str
    onnxruntime: str
    numpy: str
    specs: int
    checks: int
    refused: int
    operators: tuple[Checked, ...]


def table_of(results: Sequence[Result], specs: int) -> Trust:
    """Fold results into one row for each version of each operator.

    Args:
        results: Of all subjects.
        specs: Specifications beside ONNX's own tests.
    """
    refused = sum(one.status in {"refused", "undefined"} for one in results)
    found: dict[tuple[str, str, int], list[Result]] = defaultdict(list)
    for one in results:
        found[one.domain, one.op_type, one.since].append(one)
    keys = sorted(
        (domain, op_type, schema.since_version)
        for domain, op_type in operators()
        for schema in versions_of(domain, op_type)
    )
    return Trust(
        onnx=importlib.metadata.version("onnx"),
        onnxruntime=importlib.metadata.version("onnxruntime"),
        numpy=importlib.metadata.version("numpy"),
        specs=specs,
        checks=len(results) - refused,
        refused=refused,
        operators=tuple(_checked(key, found.get(key, [])) for key in keys),
    )


def _checked(key: tuple[str, str, int], results: Sequence[Result]) -> Checked:
    differs = [one for one in results if one.status == "differs" and one.right != "both"]
    agrees = [one for one in results if one.status == "agrees" or one.right == "both"]
    right = [one for one in differs if one.right == "reference"]
    raised = any(one.status == "raises" for one in results)
    if len(right) < len(differs):
        standing: Standing = "disagrees"
    elif sum(one.elements > 0 for one in (*agrees, *right)) >= LEAST:
        standing = "agrees"
    else:
        standing = "raises" if raised and not agrees else "not checked"
    kinds = sorted({one.right for one in differs}, key=["cpu", "neither", "open", "reference"].index)
    return Checked(
        domain=key[0],
        op_type=key[1],
        since=key[2],
        standing=standing,
        agreed=len(agrees),
        types=_types(agrees),
        findings=tuple(_finding([one for one in differs if one.right == kind], agrees) for kind in kinds),
    )


def _finding(differs: Sequence[Result], agrees: Sequence[Result]) -> Finding:
    # A shape, a type or a NaN that differs has no distance, and comes before any.
    worst = max(differs, key=lambda one: float("inf") if one.by is None else one.by)
    common = _shared(differs) - (_shared(agrees) if agrees else frozenset())
    shown = [pair for pair in sorted(common) or sorted(worst.about.items()) if len(pair[1]) <= LONGEST]
    return Finding(
        where=", ".join(f"{name} = {value}" for name, value in shown),
        checks=len(differs),
        types=_types(differs),
        by=None if worst.by is None else float(f"{worst.by:.2g}"),
        right=worst.right,
        third=worst.how,
    )


def _shared(results: Sequence[Result]) -> frozenset[tuple[str, str]]:
    """What all of them have."""
    first, *others = (frozenset(one.about.items()) for one in results)
    return first.intersection(*others)


def _types(results: Iterable[Result]) -> tuple[str, ...]:
    return tuple(sorted({one.dtype for one in results if one.dtype}))
