"""The recipe of generated inputs: with it, other attempts need no model file."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.core.records.model_settings import InputSettings
from harness.core.values.value import Tensor
from harness.corpus.beside.data_sets import GENERATED, DataSet
from harness.corpus.inputs.attempts import ATTEMPTS, FIRST, MOST_ELEMENTS, InputAttempt
from harness.corpus.inputs.contents import Constant, Content, Pattern, content_of, rows_of
from harness.corpus.inputs.fitting.demand_walk import Walk
from harness.corpus.inputs.fitting.fit import NO_FIT, Fit, SizeSearch, fit
from harness.corpus.inputs.fitting.known_tensors import NOTHING, KnownTensor
from harness.corpus.inputs.fitting.small_tensors import NumberArray
from harness.corpus.inputs.fitting.starts import DRAWS, beginning
from harness.corpus.inputs.generated_inputs import REMEDY, UNKNOWN_SIZE, generate
from harness.corpus.inputs.open_sizes import (
    BATCH_SIZE,
    TABLE_ROWS,
    completed,
    dimension_size,
    open_dimensions,
    sizes_of,
)
from harness.corpus.inputs.recipes.natural import natural
from harness.corpus.inputs.recipes.recipe_parts import FromRecipe, by_recipe
from harness.corpus.model.model_errors import InputError, SettingsError
from harness.corpus.model.port import Port, ValueType
from harness.corpus.model.symbols import axis_name, free_symbols
from harness.operators.value_domains import Domain

if TYPE_CHECKING:
    import onnx

_LIMIT_BYTES = 1 << 30
"""Larger generated inputs count as an error in a size."""

_DRAWN_BYTES = 8
"""Bytes of a number while it is drawn, for any type."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Everything from which inputs are generated.

    Attributes:
        of: SHA-256 in hex of the model and its external data, the seed of the values: the name of a file does
            not matter.
        given: Sizes from the matrix or the side file, by name.
        domains: The values for which the graph is defined, by the names of inputs.
        attempt: The attempt that these inputs belong to.
        sizes: The sizes of the model's open dimensions, by name.
        first: Digest of the case with the first attempt; empty for that attempt itself.
        fit: The graph's requirements for the model's open dimensions.
    """

    of: str
    seed: int
    ports: tuple[Port, ...]
    given: dict[str, int]
    settings: dict[str, InputSettings]
    domains: dict[str, Domain]
    attempt: InputAttempt = FIRST
    sizes: dict[str, int] = {}
    first: str = ""
    fit: Fit = NO_FIT

    def at(self, attempt: InputAttempt) -> "Recipe":
        """Return the recipe of another attempt."""
        return msgspec.structs.replace(self, attempt=attempt, sizes=self._sizes(attempt))

    @property
    def dimensions(self) -> dict[str, int]:
        """Sizes of symbolic dimensions by name, given ones included."""
        symbols = free_symbols(symbol for port in self.ports for symbol in port.type.symbols)
        names = dict.fromkeys((*symbols, *open_dimensions(self.ports)))
        return {name: self.sizes[name] for name in names if name in self.sizes}

    def attempts(self) -> tuple[InputAttempt, ...]:
        """Return the attempts with other inputs than those before them; the first attempt comes first."""
        if not self.ports:
            return (FIRST,)
        seen: dict[tuple[str, str], InputAttempt] = {}
        for attempt in ATTEMPTS:
            sizes = repr(sorted(self._sizes(attempt).items()))
            seen.setdefault((sizes, attempt.values), attempt)
        return tuple(seen.values())

    @property
    def fixed(self) -> dict[str, int]:
        """Return the sizes that are given, in the matrix or by the shapes of inputs there."""
        return _sizes_in_shapes(self.ports, self.settings) | self.given

    @property
    def rows(self) -> int:
        """Return the size of the batch, where the pattern of an attempt names none."""
        columns = (column for domain in self.domains.values() for column in domain.columns)
        return TABLE_ROWS if any(column.choices or column.near for column in columns) else BATCH_SIZE

    def _sizes(self, attempt: InputAttempt) -> dict[str, int]:
        return sizes_of(self.ports, attempt.sizes, self.fixed, self.fit, attempt.draw, self.rows)


def fitted(recipe: Recipe, model: "onnx.ModelProto") -> Recipe:
    """Return a recipe whose sizes fit a graph.

    Unnamed dimensions have one size for each axis in all inputs, unless the graph needs others.
    """
    walk = Walk(model)
    together = msgspec.structs.replace(recipe, fit=_fit(recipe, walk))
    unnamed = {axis_name(axis) for port in recipe.ports for axis in range(port.type.rank)}
    asks = [name for name, size in together.fit.least.items() if name in unnamed and size > 1]
    if len(recipe.ports) == 1 or not (asks or together.fit.unmet):
        return together
    separate = msgspec.structs.replace(recipe, ports=tuple(map(_named_apart, recipe.ports)))
    separate = msgspec.structs.replace(separate, fit=_fit(separate, walk))
    return min(together, separate, key=lambda one: (one.fit.unmet, sum(one.fit.least.values())))


def _fit(recipe: Recipe, walk: Walk) -> Fit:
    given, ports = recipe.fixed, recipe.ports
    names = [name for name in open_dimensions(ports) if name not in given]
    numbers = {port.name: _number(port, recipe) for port in ports}

    def inputs(sizes: Mapping[str, int]) -> dict[str, KnownTensor]:
        all_sizes = completed(ports, sizes, given)
        return {port.name: _on_trial(port, recipe, all_sizes, numbers[port.name]) for port in ports}

    def starts(least: dict[str, int]) -> tuple[dict[str, int], ...]:
        chosen = (sizes_of(ports, FIRST.sizes, given, draw=draw, rows=recipe.rows) for draw in range(DRAWS))
        return tuple(beginning(ports, one, least, draw) for draw, one in enumerate(chosen))

    totals = completed(ports, dict.fromkeys(names, 1), given)
    free = [name for name in names if totals[name] == 1]  # others follow from these
    return fit(SizeSearch(walk, inputs, free), free, starts)


def _on_trial(
    port: Port, recipe: Recipe, sizes: Mapping[str, int], number: NumberArray | None
) -> KnownTensor:
    try:
        declared = _shaped(port, recipe.settings.get(port.name), sizes).type
    except ValueError:  # reported when the inputs are made
        return NOTHING
    known = declared.kind == "tensor" and declared.shape is not None and None not in declared.shape
    return KnownTensor(declared.shape, number) if known else NOTHING  # type: ignore[arg-type]


def _number(port: Port, recipe: Recipe) -> NumberArray | None:
    """Return the number of a scalar input in all attempts, such as a sample rate; None without one."""
    shape = port.type.shape
    if port.type.kind != "tensor" or shape is None or any(size != 1 for size in shape):
        return None
    try:
        content = content_of(port, recipe.settings.get(port.name), recipe.domains.get(port.name), {})
        if not isinstance(content, Constant | Pattern):
            return None
        value = generate(recipe.of, port, recipe.seed, content)
    except ValueError:
        return None
    return value.array if isinstance(value, Tensor) and value.array.dtype.kind in "biuf" else None


def _named_apart(port: Port) -> Port:
    symbols = tuple(
        f"{port.name} {axis_name(axis)}" if name == "" else name
        for axis, name in enumerate(port.type.symbols)
    )
    return Port(name=port.name, type=msgspec.structs.replace(port.type, symbols=symbols))


def inputs_of(path: Path, recipe: Recipe) -> DataSet:
    """Return the inputs of a recipe that has the sizes of its attempt; see ``Recipe.at``.

    Raises:
        InputError: One of the inputs cannot be made.
    """
    shaped = []
    for port in recipe.ports:
        with _blame_input(path, port, recipe.settings):
            shaped.append(_shaped(port, recipe.settings.get(port.name), recipe.sizes))
    elements = sum(map(_elements, shaped))
    if elements * _DRAWN_BYTES > _LIMIT_BYTES or (recipe.attempt != FIRST and elements > MOST_ELEMENTS):
        large = max(shaped, key=_elements)
        what = f"its inputs would be too large; {large.name!r} is {list(large.type.shape or ())}"
        raise InputError(path, f"{what}: {REMEDY}")
    draw = recipe.attempt.draw
    source = f"{recipe.of} {draw}" if draw else recipe.of
    inputs = []
    for port in shaped:
        with _blame_input(path, port, recipe.settings):
            settings, values = recipe.settings.get(port.name), recipe.attempt.values
            plain = port.type.kind == "tensor"
            domain = recipe.domains.get(port.name)
            content: Content | FromRecipe | None = None
            if plain:
                vocabulary = rows_of(domain, recipe.sizes)
                content = by_recipe(port, tuple(shaped), recipe.settings, vocabulary)
                if values == "natural" and settings is None and domain is None:
                    content = content or natural(port)
                content = content or content_of(port, settings, domain, recipe.sizes, values)
            inputs.append((port.name, generate(source, port, recipe.seed, content)))
    return DataSet(name=GENERATED, inputs=tuple(inputs))


@contextmanager
def _blame_input(path: Path, port: Port, settings: Mapping[str, InputSettings]) -> Iterator[None]:
    try:
        yield
    except (ValueError, MemoryError) as error:
        kind = SettingsError if port.name in settings else InputError
        raise kind(path, f"input {port.name!r}: {error}") from error


def _sizes_in_shapes(ports: tuple[Port, ...], settings: Mapping[str, InputSettings]) -> dict[str, int]:
    """Return the sizes of symbols that follow from the given shapes of inputs."""
    found: dict[str, int] = {}
    for port in ports:
        given = settings.get(port.name)
        shape = given.shape if given is not None else msgspec.UNSET
        if shape is not msgspec.UNSET and len(shape) == len(port.type.symbols):
            pairs = zip(port.type.symbols, shape, strict=True)
            found |= {
                symbol: size for symbol, size in pairs if symbol and free_symbols([symbol]) == (symbol,)
            }
    return found


def _elements(port: Port) -> int:
    declared = port.type
    while declared.item is not None:  # a container gets one element
        declared = declared.item
    return math.prod(UNKNOWN_SIZE if size is None else size for size in declared.shape or ())


def _shaped(port: Port, settings: InputSettings | None, sizes: Mapping[str, int]) -> Port:
    """Return an input with a size for each dimension.

    Raises:
        ValueError: The settings contradict the declaration.
    """
    declared = port.type
    if settings is not None and declared.kind != "tensor":
        raise ValueError(f"only tensors can be described, and this is of kind {declared.kind}")
    shaped = _with_sizes(declared, sizes)
    if settings is not None and settings.shape is not msgspec.UNSET:
        fixed = declared.shape or ()  # it contains the size that was given for a symbol
        asked = tuple(settings.shape)
        if declared.shape is not None and not (
            len(fixed) == len(asked) and all(a in (b, None) for b, a in zip(asked, fixed, strict=True))
        ):
            spelled = ", ".join("?" if size is None else str(size) for size in fixed)
            raise ValueError(f"the shape {list(asked)} is not one of [{spelled}], as the model declares")
        shaped = msgspec.structs.replace(shaped, shape=asked)
    return Port(name=port.name, type=shaped)


def _with_sizes(declared: ValueType, sizes: Mapping[str, int]) -> ValueType:
    shape = declared.shape
    if shape is not None:
        shape = tuple(
            dimension_size(symbol or axis_name(axis), sizes) if size is None else size
            for axis, (symbol, size) in enumerate(zip(declared.axes, shape, strict=True))
        )
    item = declared.item and _with_sizes(declared.item, sizes)
    return msgspec.structs.replace(declared, shape=shape, item=item)
