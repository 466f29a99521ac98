"""A form, and the input from which a family of operators makes it."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.forms.input_values import GENERAL, ValueKind, values
from harness.annex.made.forms.operator_schemas import OperatorSchema
from harness.core.values.value import DTYPES, Array

FROM_END = 11
"""Version of most operators from which on axes and indices may count from the end."""

_SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 12, 13, 15, 16, 17, 24, 31, 32, 33)
_LARGE = (63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 300)
_RANKS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6)
_USUAL_ELEMENTS, _MOST_ELEMENTS = 600, 4096
_LARGE_PERCENT, _EMPTY_PERCENT = 12, 2


class Operand(msgspec.Struct, frozen=True, kw_only=True):
    """An input of a form.

    ``constant`` says whether it is an initializer; None if either will do. ``fixed`` says whether its
    declared shape has sizes.
    """

    array: Array
    dtype: str
    constant: bool | None = None
    fixed: bool = False


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A node with its inputs, or a few nodes.

    Attributes:
        inputs: One for each input; None for one that is left out.
        outputs: Number of its outputs.
        types: Index of an output -> its element type, where neither schema nor input names it.
        nodes: The nodes (``onnx.NodeProto``), where the operator needs others beside it; else it is the only
            one. They read ``x0``, ``x1``, and make ``y0``, ``y1``.
        aliases: Whether one tensor may be fed as several inputs of one shape and type.
    """

    inputs: tuple[Operand | None, ...]
    attributes: dict[str, Any] = {}
    outputs: int = 1
    types: dict[int, str] = {}
    nodes: tuple[Any, ...] = ()
    aliases: bool = False


class Setting:
    """An operator, the types of one of its kernels by type variable, and a stream of choices."""

    def __init__(self, operator: OperatorSchema, types: dict[str, str], draw: ChoiceStream) -> None:
        self.operator = operator
        self.types = types
        self.draw = draw
        self.name = operator.name
        self.since = operator.since

    def has(self, attribute: str) -> bool:
        """Return whether the operator has an attribute."""
        return attribute in self.operator.attributes

    def dtype(self, index: int) -> str:
        """Return the element type of an input."""
        return self._type(self.operator.inputs, index)

    def output_type(self, index: int) -> str:
        """Return the element type of an output; empty if the schema does not name it."""
        return self._type(self.operator.outputs, index)

    def _type(self, formals: tuple[str, ...], index: int) -> str:
        text = formals[min(index, len(formals) - 1)].rstrip("?*")
        return self.types.get(text, "" if "(" in text or text in {"T", "V", "S", "O"} else text)

    def takes(self, index: int) -> bool:
        """Return whether there is a formal input of this number."""
        return index < len(self.operator.inputs)

    def shape(self, least: int = 0, most: int = 6, *, empty: bool = False) -> tuple[int, ...]:
        """Return a shape of some rank; with ``empty`` a size may be 0."""
        draw = self.draw
        rank = draw.pick([rank for rank in _RANKS if least <= rank <= most] or [least])
        sizes = [draw.pick(_SIZES) for _ in range(rank)]
        if sizes and draw.chance(_LARGE_PERCENT):
            sizes[draw.below(rank)] = draw.pick(_LARGE)
        limit = _MOST_ELEMENTS if draw.chance(_LARGE_PERCENT) else _USUAL_ELEMENTS
        while np.prod(sizes, dtype=np.int64) > limit:
            at = sizes.index(max(sizes)) if draw.chance(50) else draw.below(rank)
            sizes[at] = max(1, sizes[at] // 2)
        if empty and sizes and draw.chance(_EMPTY_PERCENT):
            sizes[draw.below(rank)] = 0
        return tuple(sizes)

    def size(self, most: int = 9) -> int:
        """Return one size from 1 to ``most``."""
        return self.draw.pick([size for size in _SIZES if size <= most])

    def operand(
        self, index: int, shape: Sequence[int], kind: ValueKind = GENERAL, *, constant: bool | None = None
    ) -> Operand:
        """Return an input with drawn values."""
        return self.drawn(self.dtype(index), shape, kind, constant=constant)

    def given(self, index: int, content: Any, *, constant: bool | None = None) -> Operand:
        """Return an input with these values."""
        return self.given_as(self.dtype(index), content, constant=constant)

    def given_as(self, dtype: str, content: Any, *, constant: bool | None = None) -> Operand:
        """Return an operand with these values in an element type."""
        return Operand(array=np.asarray(content, DTYPES.get(dtype, object)), dtype=dtype, constant=constant)

    def drawn(
        self, dtype: str, shape: Sequence[int], kind: ValueKind = GENERAL, *, constant: bool | None = None
    ) -> Operand:
        """Return an operand with drawn values in an element type."""
        return Operand(array=values(self.draw, dtype, shape, kind), dtype=dtype, constant=constant)

    def axis(self, rank: int, signed_since: int = 0) -> int:
        """Return an axis, counted from either end; before a version of the operator, from the start only."""
        axis = self.draw.below(max(1, rank))
        from_end = rank and self.draw.chance(40) and self.since >= signed_since
        return axis - rank if from_end else axis

    def maybe(self, percent: int, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return attributes, or nothing, so that the defaults are tried as well."""
        return attributes if self.draw.chance(percent) else {}


def broadcast(setting: Setting, shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape that broadcasts to another one, of at most its rank."""
    draw = setting.draw
    sizes = list(shape)
    if draw.chance(40):
        return tuple(sizes)
    sizes = [1 if draw.chance(35) else size for size in sizes]
    return tuple(sizes[draw.below(len(sizes) + 1) :]) if draw.chance(40) else tuple(sizes)
