"""Suites of generated models: ``fuzz:SEED:COUNT``, the same for ever by seed and version of the generator.

Listing one opens no model and imports no onnx. A model is made when it is first asked for.
"""

import functools
from collections.abc import Callable
from pathlib import Path

from harness.core.errors import Problem, UsageError, one_line
from harness.corpus.errors import ModelError
from harness.corpus.forms.draw import Draw
from harness.corpus.forms.make import choose, form_model

GENERATOR = 1
"""Rises when a number stands for another model than before."""

PREFIX = "fuzz:"

MOST = 1_000_000
"""Models of a suite at most: as many as a plan has cells."""

_FORMS = 0
"""Number of the source of operator forms."""


def parse_fuzz(name: str) -> tuple[int, int]:
    """Return seed and count of a suite's name.

    Raises:
        UsageError: It is of another form.
    """
    parts = name.removeprefix(PREFIX).split(":")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):  # noqa: PLR2004
        what = f"{name!r} is not fuzz:SEED:COUNT with two whole numbers"
        raise UsageError(Problem(where="suite", what=what, hint="for example fuzz:1:1000"))
    seed, count = map(int, parts)
    if not 1 <= count <= MOST or seed >= 1 << 63:
        what = f"{name!r} asks for {count:,} models with the seed {seed}"
        hint = f"1 to {MOST:,} models, a seed below 2^63"
        raise UsageError(Problem(where="suite", what=what, hint=hint))
    return seed, count


def fuzz_names(seed: int, numbers: range, operators: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the names of models, such as ``000042-Conv-22-float32``.

    Args:
        seed: The seed.
        numbers: The numbers of the models.
        operators: Operators to choose from; all if there are none.
    """
    return tuple(f"{number:06d}-{choose(_draw(seed, number), operators).name}" for number in numbers)


def fuzz_maker(seed: int, operators: tuple[str, ...] = ()) -> Callable[[str, Path], None]:
    """Return a function that fills the empty folder of one model, by its name."""
    return functools.partial(_write, seed, operators)


def _draw(seed: int, number: int) -> Draw:
    return Draw(GENERATOR, _FORMS, seed, number)


def _write(seed: int, operators: tuple[str, ...], name: str, folder: Path) -> None:
    """Write ``model.onnx`` and ``test_data_set_0/input_N.pb``; goldens are computed.

    Raises:
        ModelError: onnx refuses the form.
    """
    from harness.corpus.protos import tensor_proto

    draw = _draw(seed, int(name.partition("-")[0]))
    try:
        built = form_model(choose(draw, operators), draw)
    except ValueError as error:
        raise ModelError(folder / "model.onnx", one_line(error)) from error
    (folder / "model.onnx").write_bytes(built.model.SerializeToString(deterministic=True))
    data_set = folder / "test_data_set_0"
    data_set.mkdir()
    for index, (port, value) in enumerate(built.inputs):
        proto = tensor_proto(value)
        proto.name = port
        (data_set / f"input_{index}.pb").write_bytes(proto.SerializeToString(deterministic=True))
