"""Sets of operators that several packages ask about."""

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
"""Operators that sum many products: the precision of the arithmetic shows in their results."""

PRECISION_CASTS = frozenset({"Cast", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"})
"""Operators that a conversion to another precision adds around those that compute."""
