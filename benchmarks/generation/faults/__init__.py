"""Kinds of faults of decoders, as transformations of the model and as wrong uses of a session."""

from benchmarks.generation.faults import caches, masks, parts, positions, scores, upstream, use, weights
from benchmarks.generation.faults.fault import AFTER, FAULTS, Fault

MODULES = (positions, masks, caches, scores, weights, parts, upstream, use)
"""Importing them lists their faults."""

__all__ = ["AFTER", "FAULTS", "MODULES", "Fault"]
