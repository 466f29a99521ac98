"""Other inputs for runs beside the given ones: if their data are mixed up, the results show it."""

from __future__ import annotations

from typing import Any

import numpy as np

_FADE = 0.875
"""Factor for the values of other inputs: exact in every type, and in any range around zero."""

CROSS_TALK = 0.05
"""Share of the largest value by which a result of such inputs may change; rounding explains less."""


def faded(feeds: dict[str, Any]) -> dict[str, Any]:
    """Return inputs of the same shapes with other values; empty if there are none.

    Only matrices and beyond change: a vector of floats may hold the scales of a Resize, which decide a shape.
    """
    other = {
        name: (feed * feed.dtype.type(_FADE))
        for name, feed in feeds.items()
        if isinstance(feed, np.ndarray) and feed.dtype.kind == "f" and feed.ndim > 1 and feed.size
    }
    return {**feeds, **other} if other else {}
