"""Choosing and writing elements by positions."""

from harness.operators.row import MICROSOFT, ONNX_DOMAIN, BookRow, plain
from harness.operators.value_domains import (
    COUNTED,
    ONE,
    ZERO,
    Domain,
    index_into,
    index_tuples,
    length_along,
    one_hot_indices,
    scattered_indices,
    scattered_tuples,
)

# fmt: off
ROWS = (
    BookRow("Compress", exact=True, copies=0),
    BookRow("Gather", exact=True, columns="selects", passes_angles=True, keeps_whole=True,
        values={1: index_into(0, attribute="axis")}, keeps_values=True, copies=0, indexed=True,
        shape_arithmetic=True, size="gather", fit="gather", numbers="gather", partly_read=True,
        passes_scores="moves"),
    BookRow("GatherElements", exact=True, values={1: index_into(0, attribute="axis")}, keeps_values=True,
        copies=0, indexed=True, size="like_second", partly_read=True),
    BookRow("GatherND", exact=True, values={1: index_tuples}, keeps_values=True, copies=0,
        size="like_first", partly_read=True, note="Its size is an estimate only."),
    BookRow("GatherND", domains=(MICROSOFT,), exact=True, values={1: index_tuples}, size="like_first",
        partly_read=True),
    BookRow("NonZero", exact=True, jumps=True, ties="any"),
    BookRow("OneHot", exact=True, jumps=True, control_inputs=(1,),
        values={0: one_hot_indices, 1: Domain(low=3, high=6)}, copies=2),
    BookRow("ReverseSequence", exact=True, control_inputs=(1,), values={1: length_along(0, "time_axis")},
        copies=0, shape="like_first"),
    BookRow("Scatter", exact=True, values={1: scattered_indices}, undefined="scatter"),
    BookRow("ScatterElements", values={1: scattered_indices}, undefined="scatter", indexed=True,
        shape="like_first"),
    BookRow("ScatterND", values={1: scattered_tuples}, undefined="scatter_tuples", shape="like_first"),
    BookRow("Slice", exact=True, passes_angles=True, keeps_whole=True, control_inputs=(1, 2, 3, 4),
        values={1: ZERO, 2: Domain(pattern=(2,)), 3: COUNTED, 4: ONE}, keeps_values=True, copies=0,
        shape_arithmetic=True, shape="slice", fit="slice", numbers="slice", partly_read=True,
        passes_scores="moves"),
    BookRow("TensorScatter", exact=True, values={2: ZERO}),
    BookRow("TopK", exact=True, jumps=True, control_inputs=(1,), values={1: length_along(-1, "axis")},
        copies=0, ties="first_index", shape="top_k", fit="top_k"),
    BookRow("Unique", domains=(ONNX_DOMAIN, MICROSOFT), exact=True, jumps=True),
    *plain("DynamicSlice"),
)
# fmt: on
