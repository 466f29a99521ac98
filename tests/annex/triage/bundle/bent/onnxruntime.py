"""The real onnxruntime, whose runs are bent as the variable BENT says. Found first through PYTHONPATH."""

import ctypes
import importlib
import os
import sys
import time
from typing import Any

import numpy as np

sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - as sys.path spells it
del sys.modules["onnxruntime"]
real: Any = importlib.import_module("onnxruntime")

BENT = os.environ.get("BENT", "")
THIRD = 3
COUNT = {"runs": 0, "sessions": 0}
Real: Any = real.InferenceSession


class Bent(Real):  # type: ignore[misc]
    def __init__(self, model: Any, *arguments: Any, **named: Any) -> None:
        COUNT["sessions"] += 1
        if BENT == "refuses" and named.get("providers") != ["CPUExecutionProvider"]:
            raise RuntimeError("[ONNXRuntimeError] : 1 : FAIL : Node 17 is something wrong at /home/x/y.cc:3")
        super().__init__(model, *arguments, **named)

    def run(self, *arguments: Any, **named: Any) -> Any:
        COUNT["runs"] += 1
        outputs = super().run(*arguments, **named)
        if BENT == "segv":
            ctypes.string_at(0)
        if BENT == "abort":
            os.abort()
        if BENT == "hang":
            time.sleep(1000)
        return bent(outputs)

    def get_provider_graph_assignment_info(self) -> Any:
        return [] if BENT == "elsewhere" else super().get_provider_graph_assignment_info()

    def get_providers(self) -> Any:
        more = ["OtherExecutionProvider"] if BENT == "switches" and COUNT["runs"] else []
        return super().get_providers() + more


def bent(outputs: Any) -> Any:
    first, *rest = outputs
    if BENT == "raises":
        raise RuntimeError("[ONNXRuntimeError] : 1 : FAIL : Node 4 is something wrong at /tmp/z.cc:99")
    if BENT == "used":
        raise RuntimeError("used up")
    if BENT == "other":
        raise RuntimeError("no memory for that")
    if (
        BENT == "wrong"
        or (BENT == "second" and COUNT["runs"] % 2 == 0)
        or (BENT == "leak" and COUNT["runs"] > 1)
        or (BENT == "third" and COUNT["runs"] >= THIRD)
        or (BENT == "fourth" and COUNT["runs"] > THIRD)
    ):
        first = first + np.ones_like(first)
    if BENT == "random":
        first = first + first.dtype.type(COUNT["runs"] % 3)
    if BENT == "nan":
        first = np.full_like(first, np.nan)
    if BENT == "shape":
        first = first[:1]
    if BENT == "dtype":
        first = first.astype(np.float64)
    return [first, *rest]


real.InferenceSession = Bent
sys.modules["onnxruntime"] = real
