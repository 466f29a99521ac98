"""Casts to a type that holds every value of the narrower one, and back: no value changes."""

from harness.corpus.variants.draft import Part, Type, number_of_type
from harness.corpus.variants.transformation import Transformation, pair

_WIDER: dict[str, tuple[str, ...]] = {
    "float32": ("float64",),
    "float16": ("float32", "float64"),
    "int32": ("int64", "float64"),
    "int8": ("int16", "int32", "float32", "float16"),
    "uint8": ("int32", "uint16", "float32", "float16"),
    "bool": ("uint8", "int32", "int64", "float32"),
}
"""Type -> types with all of its values: a float holds the whole numbers up to 2 ** (its precision)."""


def cast_up(part: Part, x: str, kind: Type) -> str:
    """Cast to a wider type and back: each value has an equal one in the wider type."""
    wider = part.draft.random.pick(_WIDER[kind.dtype])
    there = part.op("Cast", x, to=number_of_type(wider))
    return part.op("Cast", there, to=number_of_type(kind.dtype))


CASTS: tuple[Transformation, ...] = (pair("cast up and down", cast_up, _WIDER),)
