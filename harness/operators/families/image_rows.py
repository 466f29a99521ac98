"""Pooling, resizing, sampling and boxes."""

from harness.operators.row import MICROSOFT, NCHWC, BookRow, plain
from harness.operators.value_domains import Domain, index_into, resize_factors

# fmt: off
ROWS = (
    BookRow("AffineGrid", terms="last_axis", multiplies=True),
    BookRow("AveragePool", terms="kernel", differs_in_float16=True, size="pool", fit="pool",
        products="kernel", passes_scores="pools"),
    BookRow("AveragePool", domains=(NCHWC,), terms="kernel", differs_in_float16=True, size="pool",
        products="kernel"),
    BookRow("Col2Im", control_inputs=(1, 2)),
    BookRow("GlobalAveragePool", terms="plane", differs_in_float16=True, size="global_pool",
        passes_scores="pools"),
    BookRow("GlobalAveragePool", domains=(NCHWC,), terms="plane", differs_in_float16=True,
        size="global_pool"),
    BookRow("GlobalLpPool", terms="plane", size="global_pool"),
    BookRow("GlobalMaxPool", exact=True, copies=0, size="global_pool"),
    BookRow("GlobalMaxPool", domains=(NCHWC,), exact=True, size="global_pool"),
    BookRow("GridSample", units=4, even="planes", values={1: Domain(low=-1.0, high=1.0)}),
    BookRow("GridSample", domains=(MICROSOFT,), units=4, even="planes"),
    BookRow("LpPool", terms="kernel", size="pool", fit="pool", products="kernel"),
    BookRow("MaxPool", exact=True, copies=0, ties="any", size="pool", fit="pool", products="kernel"),
    BookRow("MaxPool", domains=(NCHWC,), exact=True, size="pool", products="kernel"),
    BookRow("MaxRoiPool", exact=True),
    BookRow("MaxUnpool", exact=True, jumps=True),
    BookRow("NonMaxSuppression", exact=True, jumps=True, control_inputs=(2, 3, 4),
        values={2: Domain(pattern=(3,)), 3: Domain(low=0.2, high=0.8), 4: Domain(high=0.3)}, ties="any"),
    BookRow("Resize", units=4, rounds_inside=True, even="planes", control_inputs=(1, 2, 3),
        values={2: resize_factors}, differs_in_float16=True, shape_inputs=(2, 3), size="resize",
        any_size=True, head="image"),
    BookRow("RoiAlign", units=4, even="all", values={2: index_into(0)}),
    BookRow("Upsample", units=4, even="planes", control_inputs=(1,), values={1: resize_factors},
        shape_inputs=(1,), size="resize", any_size=True),
    BookRow("Upsample", domains=(NCHWC,), units=4, even="planes", control_inputs=(1,), size="resize",
        any_size=True),
    *plain("Crop ImageDecoder"),
)
# fmt: on
