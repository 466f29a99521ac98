"""What one provider answers to models with expected data, by bare onnxruntime: a script of its own.

    python oracle_loop.py FOLDER TARGET [--after MODEL]

FOLDER holds one folder for each model, TARGET is a matrix's target as JSON. One line of JSON for each model,
as soon as it is known: ``{"model", "says", "why", "of_largest"}``. ``says`` is

* ``right``: within ONNX's tolerances of the expected data, 1e-3 of each element and 1e-7; integers, booleans
  and strings are equal;
* ``near``: beyond them, and each error at most 1e-3 of the output's largest number, or 16 roundings to its
  type if that is more. Where numbers of 100 cancel to 1e-6, no float32 meets ONNX's tolerances, whoever
  computes, and 1e-3 is two roundings to float16;
* ``wrong``: farther away, or of another type or shape;
* ``random``: not ``right``, and an operator draws random numbers, of which nobody has the expected ones;
* ``none``: there is no answer, and ``why`` is the message.

``of_largest`` is the largest error over the largest expected number of its output. A model that ends the
process has no line; the caller goes on ``--after`` it.
"""

import argparse
import ctypes
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.numpy_helper
from bare_loop import HELD, creator, ort, read

RTOL, ATOL = 1e-3, 1e-7
"""ONNX's own, of each of its operator tests (onnx.backend.test.loader)."""
RTOL_BFLOAT16 = 2**-6
"""Two units in the last place, as ONNX's own runner allows (onnx.backend.test.runner)."""
ROUNDINGS = 16
RANDOM = (
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)
WORDS = ("right", "near", "wrong")
"""From best to worst."""


def main() -> None:
    """Loop and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("target", type=json.loads)
    parser.add_argument("--after", default="")
    arguments = parser.parse_args()
    ort.set_default_logger_severity(4)
    create = creator(arguments.target)
    # Some providers set their device up anew where no session lives.
    held = create(arguments.folder / HELD / "model.onnx")
    for folder in sorted(path.parent for path in arguments.folder.glob("*/test_data_set_0")):
        if folder.name > arguments.after:
            line = {"model": folder.name, "says": "none", "why": "", "of_largest": None}
            try:
                path, feeds, expected = read(folder)
                outputs = answers(create(path), feeds)
                line |= judged(outputs, expected)
                if line["says"] != "right" and draws(path):
                    line["says"] = "random"
            except Exception as error:  # noqa: BLE001 - what cannot be loaded, fed or computed has no answer
                line["why"] = str(error)[:300]
            print("\n" + json.dumps(line), flush=True)
    del held


def answers(session: Any, feeds: dict[str, Any]) -> list[Any]:
    """What a session answers. Tensors go as the bytes that ONNX's files have, too: numpy lacks some types."""
    tensors = all(isinstance(item, np.ndarray) and item.dtype.kind not in "OUST" for item in feeds.values())
    if not tensors or not all(one.type.startswith("tensor(") for one in session.get_outputs()):
        return list(session.run(None, feeds))
    values = {name: ort_value(item) for name, item in feeds.items()}
    return [tensor(value) for value in session.run_with_ort_values(None, values)]


def ort_value(array: np.ndarray) -> Any:
    """A tensor for onnxruntime."""
    packed = onnx.numpy_helper.from_array(array)
    value = ort.OrtValue.ortvalue_from_shape_and_type(list(packed.dims), packed.data_type)
    ctypes.memmove(value.data_ptr(), packed.raw_data, len(packed.raw_data))
    return value


def tensor(value: Any) -> np.ndarray | None:
    """A tensor of onnxruntime as ONNX's Python package reads it; None for an output that is not there."""
    if not value.has_value():
        return None
    if value.data_type() == "tensor(string)":
        return np.asarray(value.numpy())
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    packed = onnx.TensorProto(dims=value.shape(), data_type=value.element_type(), raw_data=data)
    return onnx.numpy_helper.to_array(packed)


def draws(path: Path) -> bool:
    """Whether a model, or a function in it, has an operator that draws random numbers."""
    model = onnx.load(path, load_external_data=False)
    graphs = (model.graph, *model.functions)
    return any(node.op_type in RANDOM for graph in graphs for node in graph.node)


def judged(outputs: list[Any], expected: list[Any]) -> dict[str, Any]:
    """The worst that can be said of any output, and the largest of the errors."""
    words, errors = ["right"], [0.0]
    for found, wanted in leaves(outputs, expected):
        if found is None or wanted is None:
            words.append("right" if found is wanted else "wrong")
        else:
            word, error = compared(np.asarray(found), np.asarray(wanted))
            words.append(word)
            errors.append(error)
    worst = max(errors)
    return {"says": max(words, key=WORDS.index), "of_largest": worst if np.isfinite(worst) else None}


def leaves(found: Any, wanted: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs of tensors, of sequences element by element; a lacking one is None."""
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        for at in range(max(len(found), len(wanted))):
            one = found[at] if at < len(found) else None
            yield from leaves(one, wanted[at] if at < len(wanted) else None)
    else:
        yield found, wanted


def compared(found: np.ndarray, wanted: np.ndarray) -> tuple[str, float]:
    """A word for one tensor, and its largest error over the largest expected number."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return "wrong", np.inf
    rounding = rounding_of(wanted.dtype)
    if rounding is None:
        return "right" if np.array_equal(found, wanted) else "wrong", 0.0
    rtol = RTOL_BFLOAT16 if wanted.dtype.name == "bfloat16" else RTOL
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    found, wanted = found.astype(wide), wanted.astype(wide)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        errors = np.where(same, 0, np.abs(found - wanted))
    largest = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
    most = np.max(errors, initial=0)
    of_largest = most / largest if largest else (np.inf if most else 0.0)
    if np.allclose(found, wanted, rtol=rtol, atol=ATOL, equal_nan=True):
        return "right", float(of_largest)
    return "near" if of_largest <= max(RTOL, ROUNDINGS * rounding) else "wrong", float(of_largest)


def rounding_of(dtype: np.dtype) -> float | None:
    """The largest error of rounding to a type, as a part of the number; None for a type without fractions."""
    try:
        digits = ml_dtypes.finfo(dtype).nmant  # type: ignore[no-untyped-call]
    except ValueError:
        return None
    return float(2.0 ** -(digits + 1))


if __name__ == "__main__":
    main()
