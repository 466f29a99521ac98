"""Products of matrices, convolutions and sums by an equation."""

from harness.operators.row import MICROSOFT, NCHWC, ONNX_DOMAIN, BookRow, plain

# fmt: off
ROWS = (
    BookRow("CausalConvWithState", domains=(ONNX_DOMAIN, MICROSOFT), rounds_inside=True, even="all",
        steps="composed", terms="window", multiplies=True),
    BookRow("Conv", offset=2, exact_where="sum", terms="window", multiplies=True, shows_precision=True,
        differs_in_float16=True, size="convolution", fit="convolution", products="window", layer="weights",
        head="image"),
    BookRow("Conv", domains=(NCHWC,), offset=2, terms="window", multiplies=True, shows_precision=True,
        differs_in_float16=True, size="convolution", products="window", layer="weights", head="image"),
    BookRow("ConvInteger", size="convolution", fit="convolution", byte_products=True, products="window",
        layer="weights", head="image"),
    BookRow("ConvTranspose", offset=2, exact_where="sum", terms="transposed_window", multiplies=True,
        shows_precision=True, differs_in_float16=True, size="transposed_convolution",
        fit="transposed_convolution", products="transposed_window", layer="weights", head="image"),
    BookRow("DeformConv", terms="window", multiplies=True, shows_precision=True, float32_inside=True,
        size="convolution", products="window", layer="weights"),
    BookRow("Einsum", terms="equation", multiplies=True, shows_precision=True, differs_in_float16=True,
        products="equation"),
    BookRow("Gemm", offset=2, by_blocks=True, exact_where="sum", terms="gemm", multiplies=True,
        shows_precision=True, differs_in_float16=True, shape="gemm", size="gemm", fit="gemm", products="gemm",
        layer="weights", head="linear"),
    BookRow("MatMul", by_blocks=True, exact_where="sum", terms="matmul", multiplies=True,
        shows_precision=True, differs_in_float16=True, shape="matmul", size="matmul", fit="matmul",
        products="matmul", layer="weights", head="linear"),
    BookRow("MatMulInteger", size="matmul", fit="matmul", byte_products=True, products="matmul",
        layer="weights", head="linear"),
    *plain("Det"),
)
# fmt: on
