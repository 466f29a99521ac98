"""Attention and rotary embeddings."""

from harness.operators.row import MICROSOFT, PREVIEW, BookRow
from harness.operators.value_domains import index_into

# fmt: off
ROWS = (
    BookRow("Attention", rounds_inside=True, even="rows", steps="composed", copied_outputs=(1, 2),
        terms="attended", multiplies=True, shows_precision=True, differs_in_float16=True, float32_inside=True,
        products="attention", layer="weights", mask_inputs=(3,)),
    BookRow("Attention", domains=(MICROSOFT,), rounds_inside=True, even="rows", steps="composed",
        copied_outputs=(1, 2), terms="attended", multiplies=True, shows_precision=True,
        differs_in_float16=True, products="attention", layer="weights", mask_inputs=(3,)),
    BookRow("FlexAttention", domains=(PREVIEW,), rounds_inside=True, even="all", steps="composed",
        terms="attended", multiplies=True, float32_inside=True),
    BookRow("LinearAttention", rounds_inside=True, even="all", steps="composed", terms="positions",
        multiplies=True, float32_inside=True),
    BookRow("LinearAttention", domains=(MICROSOFT,), rounds_inside=True, even="all", steps="composed",
        terms="positions", multiplies=True),
    BookRow("RotaryEmbedding", rounds_inside=True, even="rows", values={3: index_into(1)},
        float32_inside=True),
    BookRow("RotaryEmbedding", domains=(MICROSOFT,), rounds_inside=True, even="rows",
        values={1: index_into(2)}),
)
# fmt: on
