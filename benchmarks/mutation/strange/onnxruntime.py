"""The real onnxruntime, whose import changes what its process sends. Found first through PYTHONPATH."""

import importlib
import os
import random
import sys
from typing import Any

sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - as sys.path spells it
del sys.modules["onnxruntime"]
importlib.import_module("onnxruntime")

from benchmarks.mutation.changes import changed_bytes  # noqa: E402 - only now the real one is found
from tests.mutations import changed  # noqa: E402

RNG = random.Random(os.environ["MUTATION_SEED"])  # noqa: S311 - nobody is to be fooled
SHARE = RNG.choice((0.02, 0.1, 0.4))
STREAM: Any = sys.modules["harness.agent.stream"]
RIGHT = STREAM.framed


def framed(message: Any, mode: str) -> bytes:
    """Return the bytes of a message, or of something like it."""
    if RNG.random() > SHARE:
        return bytes(RIGHT(message, mode))
    try:
        found: bytes = RIGHT(changed(message, RNG.randint(1, 2), RNG.choice), mode)
    except (TypeError, ValueError, RecursionError):  # cannot be sent
        found = RIGHT(message, mode)
    return changed_bytes(found, RNG) if RNG.random() < 0.2 else found * RNG.choice((1, 1, 1, 2, 50))


STREAM.framed = framed
