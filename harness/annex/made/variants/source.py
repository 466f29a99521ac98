"""Graphs of a suite by number: a random graph, and after it a variant of that graph or of a known model.

Choosing needs neither onnx nor onnxruntime, so that a plan can list graphs by name.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.zoo.roster import build, zoo_models
from harness.corpus.beside.tolerance_file import TOLERANCE_FILE
from harness.corpus.beside.value_file import write_model_folder
from harness.corpus.model.nodes import opsets_of

if TYPE_CHECKING:
    import onnx

    from harness.annex.made.variants.sequence import Variant

STEPS = "harness.steps"
"""Key of a variant's metadata: the transformations, in order."""

_GROWN = "grown"
_OF = "variant-of-"
_OPERATOR_TEST = "operator-test"

_OLDEST_OPSET = 13
"""As in ``draft``, which would import onnx."""

_NEWEST_OPSET = 26
"""The newest one that onnxruntime 1.31 runs. 1.32 runs 28; then numbers would stand for other models."""

_ROUNDED_BY_DEFAULT = "int4-"
"""Models with weights of four bits.

By default onnxruntime rounds their other factors to 8 bits, at least 1,000 times the noise of float32
(`session.qdq_matmulnbits_accuracy_level`). So noise cannot judge their variants.
"""

_TRIES = 50
"""Number of operator tests that are drawn until one has a place for a transformation."""

StreamByNumber = Callable[[int], ChoiceStream]
"""Number of a model -> its stream of choices, from the start."""


def graph_name(number: int, draws: StreamByNumber) -> str:
    """Return the name of a graph.

    An even number is a random graph, such as ``000042-grown``. An odd number is a variant: of the random
    graph with the number before (``000043-variant-of-000042``), of a model of the zoo, or of an operator
    test.
    """
    what = f"{_OF}{_original(number, draws(number))}" if number % 2 else _GROWN
    return f"{number:06d}-{what}"


def original_of(name: str) -> str:
    """Return the random graph of the same suite from which a variant was made; empty for other models."""
    original = name.partition(f"-{_OF}")[2]
    return f"{original}-{_GROWN}" if original.isdigit() else ""


def is_random_graph(name: str) -> bool:
    """Return whether a model of a suite is a random graph."""
    return name.partition("-")[2] == _GROWN


def write_graph(number: int, draws: StreamByNumber, folder: Path, operator_tests: Callable[[], Path]) -> None:
    """Write ``model.onnx`` and ``test_data_set_0`` into an empty folder.

    Only a variant of an operator test has expected outputs: those of the test. ``operator_tests`` returns the
    folder of ONNX's operator tests.
    """
    from harness.annex.made.grown.grow import grow

    if number % 2 == 0:
        grown = grow(draws(number))
        write_model_folder(folder, grown.model, grown.inputs)
        return
    draw = draws(number)
    original = _original(number, draw)
    steps = draw.pick((1, 1, 2, 3, 5, 8))
    if original == _OPERATOR_TEST:
        _write_variant_of_test(draw, steps, folder, operator_tests())
        return
    if original.isdigit():
        grown = grow(draws(int(original)))
        model, inputs = grown.model, grown.inputs
    else:
        graph = build(zoo_models()[original])
        model, inputs = graph.model(original), graph.inputs
    variant = _variant(model, draw, steps)
    write_model_folder(folder, variant.model if variant is not None else model, inputs)


def _original(number: int, draw: ChoiceStream) -> str:
    kind = draw.below(10)
    if kind < 6:  # noqa: PLR2004 - six of ten
        return f"{number - 1:06d}"
    if kind < 8:  # noqa: PLR2004 - two of ten
        return _OPERATOR_TEST
    return draw.pick(
        [
            name
            for name, model in zoo_models().items()
            if model.size == "small"
            and model.opset >= _OLDEST_OPSET
            and model.ml_opset is None
            and not name.startswith(_ROUNDED_BY_DEFAULT)
        ]
    )


def _variant(model: "onnx.ModelProto", draw: ChoiceStream, steps: int) -> "Variant | None":
    import onnx.helper

    from harness.annex.made.variants.sequence import vary

    variant = vary(model, draw, steps)
    if variant is not None:
        told = "; ".join(f"{step.name}: {step.where}" for step in variant.steps)
        onnx.helper.set_model_props(variant.model, {STEPS: told})
    return variant


def _write_variant_of_test(draw: ChoiceStream, steps: int, folder: Path, tests: Path) -> None:
    import onnx

    names = sorted(entry.name for entry in tests.iterdir() if (entry / "model.onnx").is_file())
    for _ in range(_TRIES):
        home = tests / draw.pick(names)
        model = onnx.load(home / "model.onnx")
        opsets = opsets_of(model)
        # Only operators of ONNX's own, of a released opset.
        released = opsets.keys() == {""} and opsets[""] <= _NEWEST_OPSET
        variant = _variant(model, draw, steps) if released else None
        if variant is not None:
            model = variant.model
            break
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    shutil.copytree(home / "test_data_set_0", folder / "test_data_set_0")
    if (home / TOLERANCE_FILE).exists():
        shutil.copyfile(home / TOLERANCE_FILE, folder / TOLERANCE_FILE)
