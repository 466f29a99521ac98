"""Where the witnesses of a golden are right: operators of ``onnx.reference`` that were checked, one by one.

The check is ``benchmarks/reference_trust``; what it found is shipped in ``reference_trust.toml``.
"""

import functools
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

TABLE = Path(__file__).with_name("reference_trust.toml")

REFERENCE = "onnx.reference"
"""``Witness.name`` of ONNX's own implementation."""

REFERENCE_FLOAT64 = "onnx.reference in float64"
"""``Adjudication.by`` of the same in float64: the same code, so no second voice."""

CPU_FLOAT64 = "float64 on the CPU EP"
"""``Adjudication.by`` of the CPU EP in float64."""

TESTED_TYPES = frozenset({"float32", "float64"})
"""Floating types that the check covers; a reference that computes in another one is not trusted."""

LISTED = 3
"""Operators that a reason names; it counts the others."""

Standing = Literal["agrees", "disagrees", "raises", "not checked"]


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Checks of one operator version in which ``onnx.reference`` and the CPU EP differ.

    Attributes:
        where: Attributes that all of these checks have and not all others do; else those of the worst.
        checks: How many.
        types: Floating types in which they differ.
        by: Largest ``norm(reference - cpu) / norm(cpu)`` of an output; null where shapes differ or nothing is
            finite.
        right: Which of the two a third answer agrees with; ``open`` without a third answer.
        third: What gave that answer: ``formula`` (numpy in float64), ``expected data`` (of ONNX's tests), or
            ``type and shape inference`` (ONNX's own).
    """

    where: str
    checks: int
    types: tuple[str, ...] = ()
    by: float | None = None
    right: Literal["cpu", "reference", "neither", "open"]
    third: str = ""


class Checked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the check found about one version of an operator.

    Attributes:
        domain: Empty for ONNX's own.
        op_type: The operator.
        since: ``since_version`` of its schema.
        standing: ``agrees``: ``onnx.reference`` computes it as the CPU EP does, or is right where they
            differ. ``disagrees``: it differs, and is not shown to be right. ``raises``: it never answers.
            ``not checked``: the CPU EP runs none of the checks, or too few have an answer.
        agreed: Checks in which both agree.
        raised: Checks that the CPU EP answers and ``onnx.reference`` does not.
        types: Floating types in which they agree.
        findings: Where they differ.
    """

    domain: str = ""
    op_type: str
    since: int
    standing: Standing
    agreed: int = 0
    raised: int = 0
    types: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def key(self) -> tuple[str, str, int]:
        """Domain, operator, version."""
        return self.domain, self.op_type, self.since


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """The table.

    Attributes:
        onnx: Version of onnx whose reference was checked.
        onnxruntime: Version of the CPU EP that it was held against.
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


@functools.cache
def shipped_trust() -> Trust:
    """Return the table that is shipped."""
    return msgspec.convert(tomllib.loads(TABLE.read_text("utf-8")), Trust)


def distrusted(
    operators: Mapping[tuple[str, str], Collection[int]],
    trust: Trust,
    *,
    onnx_version: str,
    float_types: Collection[str] = ("float32",),
) -> tuple[str, ...]:
    """Return why ``onnx.reference`` is not believed alone about a model; empty where it is.

    An operator that disagrees only in other floating types than those of the model counts as one that agrees.

    Args:
        operators: Domain and operator -> versions of their schemas, of the whole model with branches, bodies
            and local functions; see ``harness.corpus.used_operators``. A version of 0 is not known to ONNX.
        trust: What was checked.
        onnx_version: The version of onnx that answers; nothing is known of another than the checked one.
        float_types: Floating element types of the model, as in ``ModelFacts.float_types``.
    """
    if onnx_version != trust.onnx:
        return (f"onnx {onnx_version}",)
    known = _by_key(trust)
    found = []
    for (domain, op_type), versions in sorted(operators.items()):
        for since in sorted(versions):
            standing = _standing(known.get((domain, op_type, since)), float_types)
            if standing != "agrees":
                found.append(f"{_name(domain, op_type, since)} ({standing})")
    found += [f"{name} arithmetic (not checked)" for name in sorted(set(float_types) - TESTED_TYPES)]
    return tuple(found)


def _standing(checked: Checked | None, float_types: Collection[str]) -> Standing:
    """Return what is known of an operator in a model of these floating types."""
    if checked is None:
        return "not checked"
    if checked.standing != "disagrees":
        return checked.standing
    counts = (
        finding.right != "reference" and (not finding.types or not set(finding.types).isdisjoint(float_types))
        for finding in checked.findings
    )
    if any(counts):
        return "disagrees"
    return "agrees" if not set(checked.types).isdisjoint(float_types) else "not checked"


def wrong_on_cpu(
    operators: Mapping[tuple[str, str], Collection[int]], trust: Trust, *, onnxruntime_version: str
) -> tuple[str, ...]:
    """Return operators of a model that the CPU EP is known to compute wrongly in some uses.

    Those are the operators for which a third answer agrees with ``onnx.reference`` and not with the CPU EP.

    Args:
        operators: As for ``distrusted``.
        trust: What was checked.
        onnxruntime_version: The version of the CPU EP that answers; nothing is known of another one.
    """
    if onnxruntime_version != trust.onnxruntime:
        return ()
    known = _by_key(trust)
    return tuple(
        _name(domain, op_type, since)
        for (domain, op_type), versions in sorted(operators.items())
        for since in sorted(versions)
        if (checked := known.get((domain, op_type, since))) is not None
        and any(finding.right == "reference" for finding in checked.findings)
    )


def doubts_of(
    operators: Mapping[tuple[str, str], Collection[int]],
    trust: Trust,
    *,
    onnx_version: str,
    onnxruntime_version: str,
    float_types: Collection[str] = ("float32",),
) -> dict[str, str]:
    """Return the witnesses that are not believed alone about a model, and why.

    This is ``doubts`` of ``harness.core.adjudicate.rule`` and of ``harness.core.dispute.settle``. What is
    wrong in the model's own precision is wrong in float64 as well, where the same code computes. The CPU EP
    in float64 is doubted only where ``onnx.reference`` is not: one of them is left to judge.

    Args:
        operators: As for ``distrusted``.
        trust: What was checked.
        onnx_version: The version of onnx that answers.
        onnxruntime_version: The version of the CPU EP that answers.
        float_types: As for ``distrusted``.
    """
    check = functools.partial(distrusted, operators, trust, onnx_version=onnx_version)
    own = check(float_types=float_types)
    in_float64 = check(float_types={*float_types, "float64"})
    of_cpu = wrong_on_cpu(operators, trust, onnxruntime_version=onnxruntime_version)
    doubts = {}
    if own:
        doubts[REFERENCE] = f"it is not right, or not checked, for {_listed(own)}"
    if in_float64:
        doubts[REFERENCE_FLOAT64] = f"it is not right, or not checked, for {_listed(in_float64)}"
    if of_cpu and not own:
        doubts[CPU_FLOAT64] = f"the CPU EP is not right for some uses of {_listed(of_cpu)}"
    return doubts


@functools.lru_cache(maxsize=4)
def _index(operators: tuple[Checked, ...]) -> dict[tuple[str, str, int], Checked]:
    return {one.key: one for one in operators}


def _by_key(trust: Trust) -> Mapping[tuple[str, str, int], Checked]:
    return _index(trust.operators)


def _name(domain: str, op_type: str, since: int) -> str:
    version = f"-{since}" if since else ""
    return f"{domain}.{op_type}{version}" if domain else f"{op_type}{version}"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - LISTED} more" if len(every) > LISTED else ""
    return ", ".join(every[:LISTED]) + more
