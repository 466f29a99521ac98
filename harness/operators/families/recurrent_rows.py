"""Recurrent layers."""

from harness.operators.row import BookRow
from harness.operators.value_domains import length_along

# fmt: off
ROWS = (
    BookRow("GRU", units=4, rounds_inside=True, from_one=True, steps="composed", control_inputs=(4,),
        terms="recurrence", multiplies=True, values={4: length_along()}, shows_precision=True,
        differs_in_float16=True, shape="recurrence", size="recurrence", fit="recurrence",
        products="recurrence", layer="weights"),
    BookRow("LSTM", units=4, rounds_inside=True, from_one=True, steps="composed", control_inputs=(4,),
        terms="recurrence", multiplies=True, values={4: length_along()}, shows_precision=True,
        differs_in_float16=True, shape="recurrence", size="recurrence", fit="recurrence",
        products="recurrence", layer="weights"),
    BookRow("RNN", units=4, rounds_inside=True, from_one=True, steps="composed", control_inputs=(4,),
        terms="recurrence", multiplies=True, values={4: length_along()}, shows_precision=True,
        differs_in_float16=True, shape="recurrence", size="recurrence", fit="recurrence",
        products="recurrence", layer="weights"),
)
# fmt: on
