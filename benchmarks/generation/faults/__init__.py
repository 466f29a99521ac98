"""Kinds of faults of decoders, as transformations of the model and as wrong uses of a session."""

from benchmarks.generation.faults import caches, masks, parts, positions, scores, upstream, use, weights
from benchmarks.generation.faults.fault import AFTER, FAULTS, Fault

__all__ = ["AFTER", "FAULTS", "Fault", "caches", "masks", "parts", "positions", "scores", "upstream", "use", "weights"]
