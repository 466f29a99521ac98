"""An ``InferenceSession`` that is right for the first inputs of a session, and faulty for all others.

The variable ``FAULT_FOR_OTHERS`` chooses the fault. Nothing is imported before onnxruntime is.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.planting import plant

FAULT = os.environ.get("FAULT_FOR_OTHERS", "")


def planted(onnxruntime: Any) -> Any:
    class Planted(onnxruntime.InferenceSession):  # type: ignore[misc]
        first: Any = None

        def run(self, names: Any, feeds: Any, *more: Any) -> Any:
            found = super().run(names, feeds, *more)
            if self.first is None:
                self.first = feeds, found
            before, outputs = self.first
            if all(np.array_equal(value, before[name]) for name, value in feeds.items()):
                return found
            if FAULT == "raises":
                raise RuntimeError("the shapes of before were kept")
            return outputs if FAULT == "stale" else [changed(value) for value in found]

    return Planted


def changed(value: Any) -> Any:
    if isinstance(value, list):
        return [changed(item) for item in value]
    return np.ascontiguousarray(FAULTS[FAULT](value))


def scaled(factor: float) -> Callable[[Any], Any]:
    return lambda value: (value * factor).astype(value.dtype) if value.dtype.kind == "f" else value


def one_wrong(value: Any) -> Any:
    """The last element as NaN, the next integer, the other boolean, or another text."""
    wrong = value.copy()
    flat = wrong.reshape(-1)
    last = flat[-1]
    if value.dtype.kind == "f":
        flat[-1] = np.nan
    elif value.dtype.kind == "b":
        flat[-1] = not last
    else:
        flat[-1] = f"{last}x" if value.dtype.kind == "O" else last + 1
    return wrong


FAULTS: dict[str, Callable[[Any], Any]] = {
    "honest": lambda value: value,
    "rounds": lambda value: np.nextafter(value, value.dtype.type(9)) if value.dtype.kind == "f" else value,
    "off by 1e-3": scaled(1.001),
    "off by 10 %": scaled(1.1),
    "off by 30 %": scaled(0.7),
    "lost": scaled(-1.0),
    "one element": one_wrong,
    "shorter": lambda value: value[:-1],
    "wider": lambda value: value.astype(np.float64) if value.dtype.kind == "f" else value,
    "last of a tie": lambda value: np.where(value == 0, 1, value) if value.dtype.kind == "i" else value,
}

if FAULT:
    plant(planted)
