"""Faults in rare forms of operators: one module for each kind of rarity."""

from benchmarks.fuzzing.faults.attributes import ATTRIBUTES
from benchmarks.fuzzing.faults.fault import Fault
from benchmarks.fuzzing.faults.places import PLACES
from benchmarks.fuzzing.faults.quantized import QUANTIZED
from benchmarks.fuzzing.faults.shapes import SHAPES

FAULTS: dict[str, Fault] = {one.name: one for one in (*SHAPES, *ATTRIBUTES, *QUANTIZED, *PLACES)}
"""All faults by name."""

__all__ = ["FAULTS", "Fault"]
