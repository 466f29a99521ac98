"""Other values in initializers and graph inputs: random ones, small integers, a single value."""

from collections.abc import Callable
from typing import Literal

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetWeight, new_weight
from harness.annex.triage.plain_values import (
    GIVEN_VALUES,
    LARGEST_TENSOR,
    RANDOM,
    SINGLE,
    SMALL_INTEGERS,
    randomised,
    single,
    small_integers,
    speciality,
)
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.core.values.value import Tensor, Value

STRUCTURE = 16
"""Number of elements up to which integers count as axes, a shape or similar: they define the computation,
not its data."""

WeightKind = Literal["kept", "random", "single"]

ChangeTensor = Callable[[Tensor], Tensor | None]
"""Makes the new values; None if it cannot."""


def random_weights(net: Net, context: Context) -> Search:
    """Give initializers random numbers of the same range, signs, shape and type, unless weights are kept."""
    yield from _replaced_weights(net, context, randomised, RANDOM)


def single_weights(net: Net, context: Context) -> Search:
    """Give all elements of an initializer one value within its range, unless weights are kept."""
    yield from _replaced_weights(net, context, single, SINGLE)


def random_inputs(net: Net, context: Context) -> Search:  # noqa: ARG001 - all transformations are called alike
    """Feed graph inputs random numbers of the same range, signs, shape and type."""
    yield from _replaced_inputs(net, randomised, RANDOM)


def integer_inputs(net: Net, context: Context) -> Search:  # noqa: ARG001 - all transformations are called alike
    """Feed graph inputs integers from -3 to 3."""
    yield from _replaced_inputs(net, small_integers, SMALL_INTEGERS)


def single_inputs(net: Net, context: Context) -> Search:  # noqa: ARG001 - all transformations are called alike
    """Feed graph inputs one value in all elements."""
    yield from _replaced_inputs(net, single, SINGLE)


def weights_of(net: Net) -> WeightKind:
    """Return what happened to the initializers: ``kept`` if any still has its values from the model."""
    levels = [
        GIVEN_VALUES
        if weight.nbytes > LARGEST_TENSOR
        else speciality(weight.value(net.folder), integers=False)
        for weight in net.weights.values()
        if _is_data(weight)
    ]
    if GIVEN_VALUES in levels:
        return "kept"
    return "random" if RANDOM in levels else "single"


def _replaced_weights(net: Net, context: Context, change: ChangeTensor, level: int) -> Search:
    """Replace initializers whose values are more special than a level."""
    if context.settings.keep_weights:
        return
    found = {name: _changed_weight(net, weight, change, level) for name, weight in net.weights.items()}
    made = {name: weight for name, weight in found.items() if weight is not None}

    def build(kept: tuple[str, ...]) -> NetCandidate:
        left = {name: weight for name, weight in made.items() if name not in kept}
        return net.changed(weights=net.weights | left)

    yield from minimise(tuple(made), build)


def _replaced_inputs(net: Net, change: ChangeTensor, level: int) -> Search:
    made: dict[str, Value] = {}
    for name, value in net.fed.items():
        if isinstance(value, Tensor) and speciality(value) > level:
            changed = change(value)
            if changed is not None:
                made[name] = changed

    def build(kept: tuple[str, ...]) -> NetCandidate:
        return net.changed(fed=net.fed | {name: value for name, value in made.items() if name not in kept})

    yield from minimise(tuple(made), build)


def _is_data(weight: NetWeight) -> bool:
    """Return whether the values of an initializer can be replaced and do not define the computation."""
    structure = weight.dtype in {"int64", "int32"} and weight.elements <= STRUCTURE
    return bool(weight.dtype) and weight.elements > 1 and not structure


def _changed_weight(net: Net, weight: NetWeight, change: ChangeTensor, level: int) -> NetWeight | None:
    if not _is_data(weight) or weight.nbytes > LARGEST_TENSOR:
        return None
    value = weight.value(net.folder)
    if speciality(value, integers=False) <= level:
        return None
    changed = change(value)
    return None if changed is None else new_weight(weight.name, changed)
