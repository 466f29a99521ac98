"""Normalizations and dropout."""

from harness.operators.row import BookRow
from harness.operators.value_domains import POSITIVE, Domain

# fmt: off
ROWS = (
    BookRow("BatchNormalization", even="channels", steps="stepwise", values={4: POSITIVE},
        differs_in_float16=True, shape="like_first", sized_as_first=True, fit="channels",
        note="Usually computed as a product and an offset, both of which may be larger than their sum."),
    BookRow("Dropout", exact=True, values={1: Domain(low=0.1, high=0.5)}, keeps_values=True,
        shape="like_first", sized_as_first=True, restricts_as_first=True, passes_scores="moves"),
    BookRow("GroupNormalization", rounds_inside=True, even="channels", steps="stepwise", terms="group",
        differs_in_float16=True, float32_inside=True, shape="like_first"),
    BookRow("InstanceNormalization", rounds_inside=True, even="channels", steps="stepwise", terms="plane",
        differs_in_float16=True, shape="like_first", sized_as_first=True, fit="channels"),
    BookRow("LRN", terms="neighbours", differs_in_float16=True, shape="like_first"),
    BookRow("LayerNormalization", rounds_inside=True, even="normalized", steps="stepwise",
        terms="second_input", differs_in_float16=True, float32_inside=True, shape="like_first",
        sized_as_first=True, fit="layer"),
    BookRow("LpNormalization", rounds_inside=True, even="all", steps="stepwise", terms="axis",
        differs_in_float16=True, shape="like_first"),
    BookRow("MeanVarianceNormalization", rounds_inside=True, even="all", steps="stepwise", terms="channel",
        shape="like_first"),
    BookRow("RMSNormalization", rounds_inside=True, even="normalized", steps="stepwise", terms="second_input",
        differs_in_float16=True, float32_inside=True, shape="like_first", sized_as_first=True, fit="layer"),
    BookRow("SimplifiedLayerNormalization", rounds_inside=True, steps="stepwise", terms="second_input",
        sized_as_first=True),
)
# fmt: on
