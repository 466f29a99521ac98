"""All corners by the names of their models."""

import numpy as np

from harness.corpus.corners.corner import Corner
from harness.corpus.corners.integers import integers
from harness.corpus.corners.not_finite import not_finite
from harness.corpus.corners.ties import ties
from harness.corpus.corners.zeros import zeros


def corners() -> dict[str, Corner]:
    """Every corner by its name, which is unique."""
    with np.errstate(all="ignore"):  # what numpy warns of is what corners are about
        return {corner.name: corner for kind in (not_finite, integers, zeros, ties) for corner in kind()}
