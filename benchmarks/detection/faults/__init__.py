"""The ways in which execution providers go wrong, as changes of the model that the CPU provider runs."""

from benchmarks.detection.faults import (
    activations,
    attention,
    indices,
    normalization,
    precision,
    quantization,
    recurrence,
    tensors,
    weights,
    windows,
)
from benchmarks.detection.faults.fault import FAULTS, Fault

__all__ = [
    "FAULTS",
    "Fault",
    "activations",
    "attention",
    "indices",
    "normalization",
    "precision",
    "quantization",
    "recurrence",
    "tensors",
    "weights",
    "windows",
]
