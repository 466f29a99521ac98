"""Quantization, and products of quantized tensors."""

from harness.operators.row import MICROSOFT, BookRow
from harness.operators.value_domains import SCALE

# fmt: off
ROWS = (
    BookRow("DequantizeLinear", values={1: SCALE}, added_by_conversion=True, shape="like_first",
        sized_as_first=True, restricts_as_first=True, passes_scores="moves"),
    BookRow("DequantizeLinear", domains=(MICROSOFT,), values={1: SCALE}, added_by_conversion=True,
        shape="like_first", sized_as_first=True),
    BookRow("DynamicQuantizeLinear", exact=True, jumps=True, divides_by_scale=True, undefined="nan",
        added_by_conversion=True, shape="like_first"),
    BookRow("QLinearConv", jumps=True, values={1: SCALE, 4: SCALE, 6: SCALE}, size="quantized_convolution",
        fit="quantized_convolution", byte_products=True, products="quantized_window", layer="weights",
        head="image"),
    BookRow("QLinearConv", domains=(MICROSOFT,), jumps=True, size="quantized_convolution",
        fit="quantized_convolution", byte_products=True, products="quantized_window", layer="weights",
        head="image"),
    BookRow("QLinearMatMul", jumps=True, values={1: SCALE, 4: SCALE, 6: SCALE}, size="quantized_matmul",
        byte_products=True, products="quantized_matmul", layer="weights", head="linear"),
    BookRow("QuantizeLinear", exact=True, jumps=True, divides_by_scale=True, values={1: SCALE},
        undefined="nan", added_by_conversion=True, shape="like_first", sized_as_first=True,
        passes_scores="moves"),
    BookRow("QuantizeLinear", domains=(MICROSOFT,), exact=True, jumps=True, divides_by_scale=True,
        values={1: SCALE}, added_by_conversion=True, shape="like_first", sized_as_first=True),
)
# fmt: on
