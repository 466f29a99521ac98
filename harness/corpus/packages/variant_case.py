"""The case of a variant: its own model, with the inputs of the variant whose golden it has.

Variants of one component mean the same, so one is right if it gives the other's answer at its own precision.
"""

import hashlib
from pathlib import Path

import msgspec

from harness.corpus.beside.data_sets import DataSet, hash_data_set
from harness.corpus.case import Case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.packages.choice import PackageChoice, Sibling
from harness.corpus.packages.package_suite import model_of
from harness.corpus.packages.variant_values import precision_of
from harness.corpus.suites.suite import Suite


def variant_case(own: Case, reference: Case, name: str) -> Case:
    """Return the case of a variant with the inputs of another one; ``name`` is that of the other.

    A variant with the same content needs no other golden than its own, which is the same.

    Raises:
        ModelError: It has other inputs or outputs.
    """
    if own.model_digest == reference.model_digest:
        return msgspec.structs.replace(reference, model_path=own.model_path, external=own.external)
    for what, mine, others in (
        ("inputs", {port.name: port.type.dtype for port in own.ports}, _types(reference)),
        ("outputs", dict.fromkeys(own.outputs), dict.fromkeys(reference.outputs)),
    ):
        if mine != others:
            told = f"it has the {what} {', '.join(mine)}, and {name} has {', '.join(others)}"
            raise ModelError(own.model_path, f"no variant of the same component: {told}")
    digest = hashlib.sha256(b"variant " + own.digest.encode())
    data_sets = tuple(DataSet(name=one.name, inputs=one.inputs) for one in reference.data_sets)
    for data_set in data_sets:
        hash_data_set(digest, data_set)
    sibling = Sibling(
        reference=name,
        computes=precision_of(own.facts),
        digest=own.model_digest,
        origins=reference.facts.origins,
    )
    return msgspec.structs.replace(
        own, data_sets=data_sets, digest=digest.hexdigest(), recipe=None, fixed={}, sibling=sibling
    )


def component_case(reference: Case, suite: Suite, component: str, name: str) -> Case:
    """Return the case of a component: the model and inputs of its reference, and what can be selected."""
    package = suite.package
    assert package is not None  # noqa: S101 - only packages have components
    variants = next(one.variants for one in package.components if one.name == component)
    sibling = Sibling(
        reference=name,
        computes="float32",
        digest=reference.model_digest,
        origins=reference.facts.origins,
    )
    choice = PackageChoice(
        root=str(suite.root),
        component=component,
        variants=tuple(
            {
                "name": one.name,
                "ep": one.ep,
                "device": one.device or "",
                "compatibility": one.compatibility,
                "model": _text(model_of(one)),
                "options": {} if one.ort is None else one.ort.provider_options,
                "entries": {} if one.ort is None else one.ort.session_options,
            }
            for one in variants
        ),
        computes={
            one.name: computes for one in variants if (computes := suite.computes(f"{component}/{one.name}"))
        },
    )
    digest = hashlib.sha256(f"component {reference.digest}".encode()).hexdigest()
    data_sets = tuple(DataSet(name=one.name, inputs=one.inputs) for one in reference.data_sets)
    return msgspec.structs.replace(
        reference, data_sets=data_sets, digest=digest, recipe=None, sibling=sibling, package=choice
    )


def _types(case: Case) -> dict[str, str]:
    return {port.name: port.type.dtype for port in case.ports}


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)
