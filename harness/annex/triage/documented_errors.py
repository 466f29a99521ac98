"""Wrong values that the EP's documents allow: some functions may be less exact than rounding."""

from collections.abc import Mapping

import msgspec
import numpy as np

from harness.annex.triage.failure_check import FailureCheck
from harness.annex.triage.lab import Lab
from harness.annex.triage.subject import Subject
from harness.catalog.catalog import find_provider
from harness.core.comparison.noise_limits import NoiseLimits, rms_limit
from harness.core.noise.noise import noise_of
from harness.core.noise.spread import spread_of
from harness.core.records.fault import Condition
from harness.core.values.value import Floats, NamedValues, Tensor, leaves, tensor
from harness.corpus.derived.noisy import noisy_model
from harness.corpus.model.model_file import parse_model
from harness.corpus.model.nodes import all_nodes, domain_of
from harness.corpus.noise import AMPLITUDE

_DRAWS = 16
"""Models with random errors, each run once."""

_LIMITS = NoiseLimits(rms=3.0**0.5, max=6.0)
"""Multiples of the spread that a document allows.

Errors of the largest allowed size have a root mean square of 3 ** 0.5 spreads, and a sum of many errors
exceeds six spreads in some 2e-9 of its elements.
"""

_PRECISION = "float32"


def documented_error(subject: Subject, check: FailureCheck, provider: str) -> tuple[Condition, ...]:
    """Return a text if a document of the provider allows a wrong value; empty if none does.

    The operators that the document names get random errors of the allowed size. If the provider's outputs lie
    within ``_LIMITS`` of the resulting noise, the document allows them.

    Args:
        subject: A model whose values are wrong.
        check: The check for the failure.
        provider: Exact name of the provider.
    """
    known = find_provider(provider)
    used = _operators(subject)
    allows = [one for one in known.accuracy if one.of != "rounding"] if known else []
    entries = [one for one in allows if used.intersection(one.operators)]
    if not entries or not check.of_first_values:
        return ()
    lab = check.lab
    golden = lab.golden(subject)
    (seen,) = lab.run([check.trial(subject)], fresh=True)
    if golden is None or not seen.outputs:
        return ()
    allowed = {name: one.error for one in entries for name in one.operators}
    spread = _spread(subject, golden, lab, allowed)
    if spread is None or not _is_within(golden, seen.outputs, spread):
        return ()
    names = sorted(used.intersection(allowed))
    documents = ", ".join(dict.fromkeys(one.document for one in entries))
    return (Condition(kind="accuracy", name=", ".join(names), value=documents, fails=False),)


def _operators(subject: Subject) -> frozenset[str]:
    """Return the operators of ONNX's own domain that a model uses, in bodies and functions as well."""
    model = subject.proto()
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    return frozenset(node.op_type for node in all_nodes(nodes) if not domain_of(node))


def _spread(
    subject: Subject, golden: NamedValues, lab: Lab, allowed: Mapping[str, float]
) -> Mapping[str, Floats] | None:
    """Return the spread of the outputs; None if the model cannot have noise or does not run with it."""
    from harness.corpus.noise.flat import NotFlatError

    amplitudes = (0.0, *(1.0,) * _DRAWS)
    samples: list[NamedValues] = []
    for seed, amplitude in enumerate(amplitudes):
        try:
            model, _ = noisy_model(
                lambda: parse_model(subject.model), subject.inputs, _PRECISION, allowed=allowed, seed=seed
            )
        except NotFlatError:
            return None
        factor = (AMPLITUDE, tensor(np.array(amplitude, np.float32)))
        noisy = msgspec.structs.replace(
            subject, model=model.SerializeToString(), inputs=(*subject.inputs, factor)
        )
        outputs = lab.golden(noisy)
        if outputs is None:
            return None
        samples.append(outputs)
    return spread_of([golden], samples, amplitudes, _PRECISION).outputs[0]


def _is_within(golden: NamedValues, found: NamedValues, spread: Mapping[str, Floats]) -> bool:
    """Return whether each tensor with a spread is within the limits of noise, and each other one is equal."""
    given = {leaf: part for name, value in found for leaf, part in leaves(name, value)}
    return all(
        _is_near(part, given.get(leaf), spread.get(leaf))
        for name, value in golden
        for leaf, part in leaves(name, value)
    )


def _is_near(expected: Tensor | None, found: Tensor | None, spread: Floats | None) -> bool:
    if expected is None or found is None:
        return expected is found
    if (expected.dtype, expected.array.shape) != (found.dtype, found.array.shape):
        return False
    if spread is None:
        return bool(np.array_equal(expected.array, found.array))
    if not np.array_equal(np.isfinite(expected.array), np.isfinite(found.array)):
        return False
    rms, largest = noise_of(expected, found, spread)
    return rms <= rms_limit(_LIMITS, expected.array.size) and largest <= _LIMITS.max
