"""How much operators round: tables of facts in the book of operators, which has their meaning and source.

Names go without their domain: onnxruntime's operators of ONNX's names round as these do.
"""

from harness.operators.book import operators_by, operators_with

EXACT_OPERATORS = operators_with(lambda row: row.exact)
DISCONTINUOUS = operators_with(lambda row: row.jumps)
"""Operators whose result jumps. ``Cast`` to anything but a float is one more."""

QUANTIZING = operators_with(lambda row: row.divides_by_scale)
INSIDE = operators_with(lambda row: row.rounds_inside)
CIRCULAR = operators_with(lambda row: row.circular)
COPIES = operators_with(lambda row: row.passes_angles)
EVEN = operators_by(lambda row: row.even)
COMPOSED = operators_with(lambda row: row.steps == "composed")
STEPWISE = operators_with(lambda row: row.steps == "stepwise")
TRANSFORMS = operators_with(lambda row: row.transform)
SUMS = operators_with(lambda row: row.sums_operands)
COPIED = operators_by(lambda row: row.copied_outputs)
"""Operators of ONNX's own domain or of contributors -> results that are copies of their inputs."""

OFFSETS = operators_by(lambda row: row.offset)
OF_ONE = operators_with(lambda row: row.from_one)
THROUGH_ZERO = operators_with(lambda row: row.through_zero)
BY_BLOCKS = "MatMulNBits"
"""onnxruntime's product with weights of a few bits: with ``accuracy_level`` 4 it rounds the other factor
to int8.

onnxruntime also forms it from a DequantizeLinear and an operator that multiplies by its result.
"""

MULTIPLIES_BY_WEIGHTS = operators_with(lambda row: row.by_blocks)
"""Operators that onnxruntime may make ``BY_BLOCKS`` of."""

CLOSED = operators_with(lambda row: row.keeps_whole)
CONTROL_INPUTS = operators_by(lambda row: row.control_inputs)
UNITS = operators_by(lambda row: row.units)
