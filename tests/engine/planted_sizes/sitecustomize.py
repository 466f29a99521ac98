"""An ``InferenceSession`` that raises where an input has an extent among those of ``REFUSED_EXTENTS``."""

import os
from typing import Any

from benchmarks.planting import plant

REFUSED = {int(one) for one in os.environ.get("REFUSED_EXTENTS", "").split()}


def planted(onnxruntime: Any) -> Any:
    class Planted(onnxruntime.InferenceSession):  # type: ignore[misc]
        def run(self, names: Any, feeds: Any, *more: Any) -> Any:
            extents = {extent for value in feeds.values() for extent in getattr(value, "shape", ())}
            if refused := extents & REFUSED:
                raise RuntimeError(f"no kernel for an extent of {min(refused)}")
            return super().run(names, feeds, *more)

    return Planted


plant(planted)
