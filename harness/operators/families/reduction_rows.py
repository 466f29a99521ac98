"""Reductions along axes, running sums, softmax and losses."""

from harness.operators.row import BookRow
from harness.operators.value_domains import COUNTED, POSITIVE, ZERO, index_into

# fmt: off
ROWS = (
    BookRow("ArgMax", exact=True, jumps=True, ties="first_index", shape="arg", size="arg"),
    BookRow("ArgMin", exact=True, jumps=True, ties="first_index", shape="arg", size="arg"),
    BookRow("CumProd", terms="longest_axis", multiplies=True, axes_input=1, values={1: ZERO}),
    BookRow("CumSum", control_inputs=(1,), terms="longest_axis", axes_input=1, values={1: ZERO},
        shape="like_first"),
    BookRow("Hardmax", exact=True, jumps=True, shape="like_first"),
    BookRow("LogSoftmax", units=2, rounds_inside=True, from_one=True, steps="stepwise", terms="axis",
        flattens_before=13, differs_in_float16=True, shape="like_first", head="log_softmax"),
    BookRow("NegativeLogLikelihoodLoss", terms="second_input", multiplies=True, values={1: index_into(0, 1)}),
    BookRow("ReduceL1", terms="axes", axes_input=1, values={1: COUNTED}, size="reduction"),
    BookRow("ReduceL2", terms="axes", axes_input=1, values={1: COUNTED}, differs_in_float16=True,
        size="reduction"),
    BookRow("ReduceLogSum", from_one=True, terms="axes", axes_input=1, values={0: POSITIVE, 1: COUNTED},
        size="reduction"),
    BookRow("ReduceLogSumExp", units=1.5, from_one=True, terms="axes", axes_input=1, values={1: COUNTED},
        differs_in_float16=True, size="reduction"),
    BookRow("ReduceMax", exact=True, values={1: COUNTED}, copies=0, shape_arithmetic=True, size="reduction",
        numbers="reduce_max"),
    BookRow("ReduceMean", terms="axes", axes_input=1, values={1: COUNTED}, differs_in_float16=True,
        size="reduction", passes_scores="pools"),
    BookRow("ReduceMin", exact=True, values={1: COUNTED}, copies=0, shape_arithmetic=True, size="reduction",
        numbers="reduce_min"),
    BookRow("ReduceProd", terms="axes", axes_input=1, values={1: COUNTED}, shape_arithmetic=True,
        size="reduction", numbers="reduce_prod"),
    BookRow("ReduceSum", exact_where="sum", control_inputs=(1,), terms="axes", axes_input=1,
        values={1: COUNTED}, differs_in_float16=True, shape_arithmetic=True, size="reduction",
        numbers="reduce_sum"),
    BookRow("ReduceSumSquare", terms="axes", axes_input=1, values={1: COUNTED}, differs_in_float16=True,
        size="reduction"),
    BookRow("Softmax", units=2, rounds_inside=True, steps="stepwise", terms="axis", flattens_before=13,
        differs_in_float16=True, shape="like_first", sized_as_first=True, head="softmax",
        mask_inputs=(0,), note="An exponential and a quotient."),
    BookRow("SoftmaxCrossEntropyLoss", terms="second_input", multiplies=True, values={1: index_into(0, 1)}),
)
# fmt: on
