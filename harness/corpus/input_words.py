"""The inputs of a cell, in words: their owner, or how they were generated."""

import msgspec

from harness.core.text.errors import one_line
from harness.core.values.value import Map, NamedValues, Sequence, Tensor, Value
from harness.corpus.case import Case
from harness.corpus.inputs.recipe import Recipe

_SHOWN = 4
_CHARS = 300
_NAME_CHARS = 60


def fed_words(given: Case, run: Case) -> str:
    """Return the inputs of a model: ``generated 2x3x64x96, seed 0``, or ``your data: test_data_set_0``.

    Args:
        given: The model as it is run plainly.
        run: The model as its scenario runs it, with data that may be cut or repeated from the given.
    """
    names = [one.name for one in given.data_sets]
    if run.chain is not None:
        given = run  # the inputs of all sessions of a folder
    if not given.ports:
        words = "nothing: the model has no inputs"
    elif given.recipe is not None:
        words = _generated(given.recipe, given.data_sets[0].inputs)
    else:
        words = f"{given.owner} data: {_some(names)}"
    others = [one.name for one in run.data_sets]
    return one_line(words if others == names else f"{words}; varied: {_some(others)}", _CHARS)


def _generated(recipe: Recipe, inputs: NamedValues) -> str:
    """Return the shape of each input, with its name if there are several, and how else it was generated."""
    parts = []
    for name, value in inputs:
        shape = _shape(value)
        settings = recipe.settings.get(name)
        kind = msgspec.UNSET if settings is None else settings.recipe
        label = "" if len(inputs) == 1 else f"{one_line(name, _NAME_CHARS)} "
        parts.append(f"{label}{shape}" + ("" if kind is msgspec.UNSET else f" ({kind})"))
    values = "" if recipe.attempt.values == "plain" else f", {recipe.attempt.values} values"
    return f"generated {_some(parts)}{values}, seed {recipe.seed}"


def _shape(value: Value) -> str:
    match value:
        case Tensor(array=array):
            return "x".join(map(str, array.shape)) or "scalar"
        case Sequence():
            return "sequence"
        case Map():
            return "map"
    return "nothing"


def _some(words: list[str]) -> str:
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more
