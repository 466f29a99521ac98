"""Suites of generated models: ``fuzz:SEED:COUNT``, the same for ever by seed and version of the generator.

Listing one opens no model and imports no onnx. A model is made at its first use.
"""

import functools
from collections.abc import Callable
from pathlib import Path

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.forms.numbered_forms import KernelChoice, choose, form_model
from harness.annex.made.variants.source import StreamByNumber, graph_name, write_graph
from harness.core.text.errors import UsageError, one_line
from harness.corpus.beside.value_file import write_model_folder
from harness.corpus.model.model_errors import ModelError

FUZZ = "fuzz:"
"""Before the seed and the count, in the name of a suite."""

GENERATOR = 2
"""Increase it when a number stands for another model than before."""

MOST = 1_000_000
"""Largest number of models of a suite: as many as a plan may have cells."""

CYCLE = 4
"""Period of the sources in the numbers: two graphs, two operator forms."""

_FORMS, _GRAPHS = 0, 1
"""Numbers of the sources: operator forms, graphs."""


def parse_fuzz(name: str) -> tuple[int, int]:
    """Return seed and count of a suite's name.

    Raises:
        UsageError: It is of another form.
    """
    parts = name.split(":")[1:]
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):  # noqa: PLR2004
        what = f"{name!r} is not fuzz:SEED:COUNT with two whole numbers"
        raise UsageError.at("suite", what, "for example fuzz:1:1000")
    seed, count = map(int, parts)
    if not 1 <= count <= MOST or seed >= 1 << 63:
        what = f"{name!r} asks for {count:,} models with the seed {seed}"
        hint = f"1 to {MOST:,} models, a seed below 2^63"
        raise UsageError.at("suite", what, hint)
    return seed, count


def fuzz_suite_name(seed: int) -> str:
    """Return the name of all suites of one seed. It has no count, so that a model keeps its id."""
    return f"fuzz-{seed}"


def is_graph(number: int) -> bool:
    """Return whether a model is a graph: two of every four are.

    The second is often a variant of the first.
    """
    return number % CYCLE < CYCLE // 2


def choice_of(seed: int, number: int) -> KernelChoice:
    """Return the operator, opset and types of an operator form."""
    return choose(_draw(seed, _FORMS, number))


def fuzz_name(seed: int, number: int) -> str:
    """Return the name of a model, such as ``000042-Conv-22-float32`` or ``000044-grown``."""
    if is_graph(number):
        return graph_name(number, _graph_draws(seed))
    return f"{number:06d}-{choice_of(seed, number).name}"


def model_number(name: str) -> int:
    """Return the number in the name of a model."""
    return int(name.partition("-")[0])


def fuzz_maker(seed: int, operator_tests: Callable[[], Path]) -> Callable[[str, Path], None]:
    """Return a function that fills the empty folder of one model, by its name.

    ``operator_tests`` returns the folder of ONNX's operator tests; it is called when one of these is first
    varied.
    """

    def make(name: str, folder: Path) -> None:
        number = model_number(name)
        if is_graph(number):
            write_graph(number, _graph_draws(seed), folder, operator_tests)
        else:
            _write_form(_draw(seed, _FORMS, number), folder)

    return make


def _draw(seed: int, source: int, number: int) -> ChoiceStream:
    return ChoiceStream(GENERATOR, source, seed, number)


def _graph_draws(seed: int) -> StreamByNumber:
    return functools.partial(_draw, seed, _GRAPHS)


def _write_form(draw: ChoiceStream, folder: Path) -> None:
    try:
        built = form_model(choose(draw), draw)
    except ValueError as error:
        raise ModelError(folder / "model.onnx", one_line(error)) from error
    write_model_folder(folder, built.model, built.inputs)
