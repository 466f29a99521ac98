"""The content that a recipe makes for one input, and the inputs that it has to fit."""

from collections.abc import Mapping

import msgspec
import numpy as np

from harness.core.records.input_recipe import PICTURES, RANGED, SEQUENCES
from harness.core.records.model_settings import InputSettings
from harness.core.values.value import STRING, Array
from harness.corpus.inputs.recipes.numbers import boxes, probabilities
from harness.corpus.inputs.recipes.picture import height_and_width, pictures
from harness.corpus.inputs.recipes.row_lengths import lengths, mask, tokens
from harness.corpus.inputs.recipes.sound import sounds, time_axis
from harness.corpus.model.element_types import is_floating, limits_of
from harness.corpus.model.port import Port

_BRIGHTEST = 255


class FromRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an input by its recipe.

    Attributes:
        low: The least id of ``tokens``.
        high: Upper bound of the ids of ``tokens``, exclusive.
        longest: Samples or tokens of the input that ``lengths`` belong to.
        padded: Whether another input says which part of the rows counts.
        picture: Height and width of the picture that ``boxes-pixels`` are in.
    """

    recipe: str
    low: int = 1
    high: int = 0
    longest: int = 0
    padded: bool = False
    picture: tuple[int, int] | None = None


def by_recipe(
    port: Port, ports: tuple[Port, ...], settings: Mapping[str, InputSettings], vocabulary: int | None
) -> FromRecipe | None:
    """Return the content of an input with a recipe, which fits those of the others; None without a recipe.

    Args:
        port: The input, with the size of each dimension.
        ports: All inputs, likewise.
        settings: Input -> its settings.
        vocabulary: Rows of the table that the input indexes, if the graph shows one.

    Raises:
        ValueError: The recipe does not suit the input.
    """
    given = settings.get(port.name)
    if given is None or given.recipe is msgspec.UNSET:
        return None
    recipe = given.recipe
    _check_type(recipe, port.type.dtype)
    others = {
        one: str(settings[one.name].recipe) for one in ports if one.name in settings and one.name != port.name
    }
    padded = not {"mask", "lengths"}.isdisjoint(others.values())
    if recipe == RANGED:
        return _of_tokens(given, vocabulary, port.type.dtype, padded=padded)
    if recipe == "lengths":
        whose = next((one for one, name in others.items() if name in SEQUENCES), None)
        if whose is None:
            raise ValueError(
                "lengths belong to another input with the recipe tokens, mask or audio; name one"
            )
        shape, by_time = _sizes(whose), others[whose].startswith("audio")
        return FromRecipe(recipe=recipe, longest=shape[time_axis(shape) if by_time else -1] if shape else 1)
    if recipe == "boxes-pixels":
        shown = next(((one, name) for one, name in others.items() if name in PICTURES), None)
        if shown is None:
            raise ValueError("boxes-pixels belong to another input with a recipe such as rgb; name one")
        return FromRecipe(
            recipe=recipe, picture=height_and_width(_sizes(shown[0]), 3 if shown[1].startswith("rgb") else 1)
        )
    return FromRecipe(recipe=recipe, padded=padded)


def elements_of(
    content: FromRecipe, dtype: str, shape: tuple[int, ...], random: np.random.Generator
) -> Array:
    """Return the elements of an input of a type and shape, in float64.

    Raises:
        ValueError: The recipe does not suit the shape.
    """
    recipe, whole = content.recipe, not is_floating(dtype)
    if recipe in PICTURES or recipe == "region":
        made = pictures(recipe, shape, random, whole=whole)
    elif recipe.startswith("audio"):
        made = sounds(recipe, shape, random, whole=whole, padded=content.padded)
    elif recipe == RANGED:
        made = tokens(shape, content.low, content.high, random, padded=content.padded)
    elif recipe == "mask":
        made = mask(shape)
    elif recipe == "lengths":
        made = lengths(shape, content.longest)
    elif recipe == "probabilities":
        made = probabilities(shape, random)
    else:
        made = boxes(shape, random, content.picture)
    return made


def _of_tokens(given: InputSettings, vocabulary: int | None, dtype: str, *, padded: bool) -> FromRecipe:
    high = vocabulary if given.high is msgspec.UNSET else int(given.high)
    if high is None:
        what = "the graph does not show how many tokens there are"
        raise ValueError(f'{what}; write {{ recipe = "tokens", high = 30522 }}, say')
    low = 1 if given.low is msgspec.UNSET else int(given.low)
    most = limits_of(dtype)[1] + 1
    if not 0 <= low < high <= most:
        raise ValueError(f"tokens from {low} to below {high} are none; valid are 0 to {most - 1}")
    return FromRecipe(recipe=RANGED, low=low, high=high, padded=padded)


def _check_type(recipe: str, dtype: str) -> None:
    """Check that a recipe has values of an element type.

    Raises:
        ValueError: It has none.
    """
    takes = "floating types"
    if recipe in {"mask", "region"}:
        fits, takes = dtype != STRING and not dtype.startswith("complex"), "numbers or bool"
    elif recipe == RANGED:
        fits, takes = "int" in dtype, "integers"
    elif recipe in {"probabilities", "boxes", "rgb-signed", "rgb-imagenet", "gray-signed"}:
        fits = is_floating(dtype)
    elif recipe.startswith("audio"):
        fits, takes = (
            is_floating(dtype) or dtype in {"int16", "int32", "int64"},
            "floats, or integers of 16 bits",
        )
    else:
        fits, takes = is_floating(dtype) or "int" in dtype, "numbers"
    if recipe in PICTURES and "int" in dtype and limits_of(dtype)[1] < _BRIGHTEST:
        fits = False
    if not fits:
        raise ValueError(
            f"the recipe {recipe!r} is for {takes}, and the input is of type {dtype or 'unknown'}"
        )


def _sizes(port: Port) -> tuple[int, ...]:
    return tuple(size or 0 for size in port.type.shape or ())
