"""The kinds of a case's outputs: positions, quantized values, random numbers, unordered sets."""

from collections.abc import Mapping, Sequence

import numpy as np

from harness.core.comparison.output_kind import Copied, OutputKind, Quantized, UnknownPositions
from harness.core.comparison.random_outputs import (
    Bernoulli,
    Distribution,
    Dropped,
    Multinomial,
    Normal,
    Uniform,
)
from harness.core.comparison.ties import Chosen
from harness.core.comparison.unordered import Unordered
from harness.core.values.value import Array, NamedValues, Tensor, Value
from harness.corpus.case import Case
from harness.corpus.derived.inner_outputs import judging_origins
from harness.corpus.model.origins import ChosenFrom, CopiedFrom, DrawnBy, QuantizedWith, UnorderedWith
from harness.engine.answers.compare_sets import numbered


def output_kinds_of(
    case: Case,
    answers: Sequence[NamedValues],
    *,
    revealed: Sequence[NamedValues] = (),
    exact_inputs: bool = True,
    rounds_freely: frozenset[str] = frozenset(),
) -> tuple[Mapping[str, OutputKind], ...]:
    """Return the kinds of outputs by name, for each data set; plain numbers are left out.

    Args:
        case: The model and its inputs.
        answers: The right outputs of each data set.
        revealed: The same with the values by which positions were chosen; empty if they were not requested.
        exact_inputs: Whether the provider must not round the inputs.
        rounds_freely: Operators whose result the provider may round to either neighbour, according to a
            document.
    """
    origins = judging_origins(case).known
    if not origins:
        return ()
    found = []
    for index, answer in enumerate(answers):
        inputs = dict(case.data_sets[index].inputs)
        known = {**inputs, **dict(answer), **(dict(revealed[index]) if revealed else {})}
        kinds: dict[str, OutputKind] = {}
        for name, origin in origins.items():
            output_kind: OutputKind | None
            match origin:
                case ChosenFrom():
                    output_kind = _chosen(origin, known, exact_inputs=exact_inputs)
                case QuantizedWith():
                    # In a profile that was published before, any quantized output may be a step off.
                    granted = origin.in_integers or case.frozen is not None
                    output_kind = _quantized(origin, known.get(name), inputs) if granted else None
                case CopiedFrom():
                    rounds_else = rounds_freely.intersection(origin.rounding)
                    output_kind = Copied() if exact_inputs and not rounds_else else None
                case DrawnBy():
                    output_kind = _drawn(origin, inputs)
                case UnorderedWith():
                    positions = origin.positions and numbered(index, origin.positions)
                    output_kind = Unordered(axis=origin.axis, positions=positions)
            if output_kind is not None:
                kinds[name] = output_kind
        found.append(kinds)
    return tuple(found)


def draws(case: Case, kinds: Sequence[Mapping[str, OutputKind]]) -> bool:
    """Return whether any result of a model depends on random numbers."""
    directly = any(
        isinstance(output_kind, Distribution) for of_set in kinds for output_kind in of_set.values()
    )
    return directly or bool(case.facts.origins.by_chance)


def _chosen(
    origin: ChosenFrom, known: Mapping[str, Value], *, exact_inputs: bool
) -> Chosen | UnknownPositions:
    data = known.get(origin.data)
    if not isinstance(data, Tensor):
        return UnknownPositions()
    exact = exact_inputs and not origin.computed
    return Chosen(op=origin.op, data=data, axis=origin.axis, exact=exact, unordered=origin.unordered)


def _quantized(origin: QuantizedWith, answer: Value, inputs: Mapping[str, Value]) -> Quantized | None:
    if not isinstance(answer, Tensor):
        return None
    if not (origin.scale or origin.values):
        # A float8 is quantized, too, but its values have no even grid.
        whole = answer.dtype.startswith(("int", "uint"))
        return Quantized(scale=np.ones(())) if whole else None
    scale = _array(inputs, origin.scale) if origin.scale else np.array(origin.values)
    if scale is None or scale.ndim > 1 or not (np.isfinite(scale) & (scale != 0)).all():
        return None
    if scale.size != 1:
        rank = answer.array.ndim
        if not -rank <= origin.axis < rank or answer.array.shape[origin.axis] != scale.size:
            return None
        scale = scale.reshape([-1 if axis == origin.axis % rank else 1 for axis in range(rank)])
    else:
        scale = scale.reshape(())
    return Quantized(scale=scale.astype(np.float64))


def _drawn(origin: DrawnBy, inputs: Mapping[str, Value]) -> Distribution | None:
    parameters = dict(origin.parameters)
    for key, name in origin.inputs.items():
        given = _array(inputs, name)
        if given is None or given.size != 1:
            return None
        parameters[key] = float(given.reshape(-1)[0])
    match origin.op:
        case "RandomUniform" | "RandomUniformLike":
            return Uniform(low=parameters["low"], high=parameters["high"])
        case "RandomNormal" | "RandomNormalLike":
            return Normal(mean=parameters["mean"], scale=parameters["scale"])
    data = _array(inputs, origin.data)
    return None if data is None else _drawn_from(origin, data, parameters)


def _drawn_from(origin: DrawnBy, data: Array, parameters: Mapping[str, float]) -> Distribution | None:
    if origin.op == "Bernoulli":
        return Bernoulli(probabilities=data)
    if origin.op == "Multinomial":
        return Multinomial(logits=data)
    ratio = parameters["ratio"]
    drops = parameters.get("training", 0) != 0 and 0 < ratio < 1
    return Dropped(data=data, ratio=ratio, mask=origin.mask) if drops else None


def _array(values: Mapping[str, Value], name: str) -> Array | None:
    value = values.get(name)
    return value.array if isinstance(value, Tensor) and value.dtype != "string" else None
