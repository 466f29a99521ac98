"""What is known about operators, whoever computes them."""

COMPUTE_HEAVY = frozenset(
    {
        "Attention",
        "Conv",
        "ConvTranspose",
        "DeformConv",
        "Einsum",
        "FusedConv",
        "FusedGemm",
        "FusedMatMul",
        "GRU",
        "Gemm",
        "GroupQueryAttention",
        "LSTM",
        "MatMul",
        "MultiHeadAttention",
        "RNN",
    }
)
"""Operators that sum many products: where the precision of the arithmetic shows in the result."""
