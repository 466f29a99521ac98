"""Frozen facts of a profile's case: how it is judged, and the noise of its golden."""

import io
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from harness.core.comparison.policy import Policy
from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.noise.spread import Spread
from harness.core.values.value import Floats, leaves
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.model.model_errors import ModelError, blame

NOISE = "noise"
"""The folder of the noise, beside the model."""


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """The policy that judges a case, whatever a matrix says, and its golden's noise at that precision.

    Leaves without a file have no noise.
    """

    policy: Policy
    noise: Spread


def read_frozen(home: Path, policy: Policy, data_sets: tuple[DataSet, ...]) -> Frozen:
    """Return the frozen facts in the folder of a case.

    Raises:
        ModelError: A file of noise is broken, or its shape differs from the golden's.
    """
    outputs = tuple(
        dict(_noise_of(home / NOISE, number, data_set)) for number, data_set in enumerate(data_sets)
    )
    return Frozen(policy=policy, noise=Spread(precision=policy.noise_at, outputs=outputs))


def _noise_of(folder: Path, number: int, data_set: DataSet) -> Iterator[tuple[str, Floats]]:
    found = (pair for name, value in data_set.expected for pair in leaves(name, value))
    for index, (leaf, golden) in enumerate(found):
        path = folder / f"test_data_set_{number}-output_{index}.npy"
        if not path.exists():
            continue
        with blame(path):
            array = np.load(io.BytesIO(read_regular(path, MOST_FILE)), allow_pickle=False)
        shape = golden and golden.array.shape
        if array.dtype != np.float64 or array.shape != shape or not (array > 0).all():
            raise ModelError(path, f"got {array.dtype}{list(array.shape)}, needs positive float64 of {shape}")
        yield leaf, array
