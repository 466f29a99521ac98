"""Sequences and optionals."""

from harness.operators.row import BookRow
from harness.operators.value_domains import ZERO

# fmt: off
ROWS = (
    BookRow("ConcatFromSequence", exact=True, joins_values=True),
    BookRow("Optional", exact=True),
    BookRow("OptionalGetElement", exact=True),
    BookRow("OptionalHasElement", exact=True),
    BookRow("SequenceAt", exact=True, values={1: ZERO}, keeps_values=True),
    BookRow("SequenceConstruct", exact=True, joins_values=True),
    BookRow("SequenceEmpty", exact=True, float32_unless="dtype"),
    BookRow("SequenceErase", exact=True, values={1: ZERO}),
    BookRow("SequenceInsert", exact=True, values={2: ZERO}),
    BookRow("SequenceLength", exact=True),
    BookRow("SplitToSequence", exact=True, keeps_values=True),
)
# fmt: on
