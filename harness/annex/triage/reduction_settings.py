"""The settings of a reduction, and its progress."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from harness.annex.triage.subject import Subject
from harness.core.values.value import Value

ComputeTensors = Callable[[Subject, Sequence[str]], Mapping[str, Value] | None]
"""Computes inner tensors of a model on the CPU EP; None, or missing names, if that fails."""


class ReductionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a reduction.

    Attributes:
        keep: Returns whether the node of this name must stay; an unnamed node has the name of its first
            output. It is called once for each node of the initial model, including those in bodies and
            functions.
        values: Computes inner tensors. Without it, tensors where the model is cut get random numbers.
        keep_weights: Whether initializers keep their values.
        batch: Number of candidates that are tried together.
        most_trials: Largest number of candidates of one transformation in each of its turns.
        most_rounds: Largest number of rounds in which all transformations take a turn.
    """

    keep: Callable[[str], bool] | None = None
    values: ComputeTensors | None = None
    keep_weights: bool = False
    batch: int = 1
    most_trials: int = 500
    most_rounds: int = 8


class ReductionProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a reduction.

    Attributes:
        transformation: The current transformation.
        trials: Candidates so far.
        nodes: Nodes of the smallest model so far, including those in bodies and functions.
        nbytes: Its bytes without external data.
        complete: Whether nothing can make it smaller; always false before the end.
    """

    transformation: str
    trials: int
    nodes: int
    nbytes: int
    complete: bool = False
