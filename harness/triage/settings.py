"""What a reduction is asked for, and what it tells on its way."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from harness.core.value import Value
from harness.triage.subject import Subject

Values = Callable[[Subject, Sequence[str]], Mapping[str, Value] | None]
"""Computes tensors inside of a model by the CPU EP; None, or names left out, if that fails."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is reduced.

    Attributes:
        keep: Whether the node of this name must stay; nodes without a name go by their first output. Asked
            once for each node of the model to begin with, those in bodies and functions included.
        values: Computes inner tensors. Without it, tensors at which the model is cut are fed random numbers.
        keep_weights: Whether initializers keep their values.
        batch: Candidates that are tried at once.
        most_trials: Candidates of one transformation, at most, each time that it has its turn.
        most_rounds: How often all transformations have their turn, at most.
    """

    keep: Callable[[str], bool] | None = None
    values: Values | None = None
    keep_weights: bool = False
    batch: int = 1
    most_trials: int = 500
    most_rounds: int = 8


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a reduction stands.

    Attributes:
        transformation: What is being tried.
        trials: Candidates so far.
        nodes: Nodes of the smallest model so far, those in bodies and functions included.
        nbytes: Its bytes without external data.
        complete: Whether nothing can make it smaller; before the end always false.
    """

    transformation: str
    trials: int
    nodes: int
    nbytes: int
    complete: bool = False
