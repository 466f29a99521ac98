"""Branches and loops."""

from harness.operators.row import BookRow
from harness.operators.value_domains import ONE, Domain

# fmt: off
ROWS = (
    BookRow("If", exact=True),
    BookRow("Loop", exact=True, control_inputs=(0,), values={0: Domain(low=2, high=5), 1: ONE}),
    BookRow("Scan", exact=True, columns="rows"),
    BookRow("SequenceMap", exact=True),
)
# fmt: on
