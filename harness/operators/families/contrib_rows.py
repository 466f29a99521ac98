"""Operators of onnxruntime alone: its domain ``com.microsoft``, and those of its optimizer."""

from harness.operators.row import MICROSOFT, NCHWC, BookRow, plain
from harness.operators.value_domains import SCALE, index_into

# fmt: off
ROWS = (
    BookRow("BiasAdd", domains=(MICROSOFT,), adds_bias=True),
    BookRow("BiasGelu", domains=(MICROSOFT,), units=4, rounds_inside=True, from_one=True, steps="stepwise",
        shape="like_first"),
    BookRow("DecoderMaskedMultiHeadAttention", domains=(MICROSOFT,), terms="attended", multiplies=True),
    BookRow("DynamicQuantizeLSTM", domains=(MICROSOFT,), byte_products=True),
    BookRow("DynamicQuantizeMatMul", domains=(MICROSOFT,), byte_products=True, layer="weights",
        head="linear"),
    BookRow("EmbedLayerNormalization", domains=(MICROSOFT,),
        values={0: index_into(2), 1: index_into(4), 8: index_into(3)}),
    BookRow("FastGelu", domains=(MICROSOFT,), units=4, rounds_inside=True, from_one=True, steps="stepwise",
        shape="like_first"),
    BookRow("FusedConv", domains=(MICROSOFT,), offset=2, terms="window", multiplies=True,
        shows_precision=True, size="convolution", fit="convolution", products="window", layer="weights",
        head="image"),
    BookRow("FusedGemm", domains=(MICROSOFT,), offset=2, terms="gemm", multiplies=True, shows_precision=True,
        size="gemm", products="gemm", layer="weights", head="linear"),
    BookRow("FusedMatMul", domains=(MICROSOFT,), terms="matmul", multiplies=True, shows_precision=True,
        size="matmul", products="matmul", layer="weights", head="linear"),
    BookRow("GatherBlockQuantized", domains=(MICROSOFT,), values={1: index_into(0, attribute="axis")}),
    BookRow("GemmFloat8", domains=(MICROSOFT,), layer="weights", head="linear"),
    BookRow("GroupQueryAttention", domains=(MICROSOFT,), rounds_inside=True, even="rows", steps="composed",
        copied_outputs=(2,), terms="attended", multiplies=True, shows_precision=True, differs_in_float16=True,
        products="attention", layer="weights", mask_inputs=(10,)),
    BookRow("MatMulBnb4", domains=(MICROSOFT,), layer="weights", head="linear"),
    BookRow("MatMulIntegerToFloat", domains=(MICROSOFT,), byte_products=True, layer="weights", head="linear"),
    BookRow("MatMulNBits", domains=(MICROSOFT,), terms="block_product", multiplies=True, size="block_product",
        products="block_product", layer="weights", head="linear",
        note="By accuracy_level 4 it rounds the other factor to int8, block by block."),
    BookRow("MultiHeadAttention", domains=(MICROSOFT,), rounds_inside=True, even="rows", steps="composed",
        terms="attended", multiplies=True, shows_precision=True, differs_in_float16=True,
        products="attention", layer="weights", mask_inputs=(4, 5)),
    BookRow("QAttention", domains=(MICROSOFT,), byte_products=True, layer="weights"),
    BookRow("QGemm", domains=(MICROSOFT,), byte_products=True, layer="weights", head="linear"),
    BookRow("QLinearAdd", domains=(MICROSOFT,), values={1: SCALE, 4: SCALE, 6: SCALE},
        shape="quantized_broadcast", adds_bias=True),
    BookRow("QLinearAveragePool", domains=(MICROSOFT,), size="pool", fit="pool"),
    BookRow("QLinearMul", domains=(MICROSOFT,), values={1: SCALE, 4: SCALE, 6: SCALE},
        shape="quantized_broadcast"),
    BookRow("QLinearSigmoid", domains=(MICROSOFT,), head="sigmoid"),
    BookRow("QLinearSoftmax", domains=(MICROSOFT,), head="softmax"),
    BookRow("QuickGelu", domains=(MICROSOFT,), units=4, rounds_inside=True, from_one=True, steps="stepwise",
        shape="like_first"),
    BookRow("SkipLayerNormalization", domains=(MICROSOFT,), rounds_inside=True, even="rows", steps="stepwise",
        terms="third_input", shape="like_first", sized_as_first=True),
    BookRow("SkipSimplifiedLayerNormalization", domains=(MICROSOFT,), rounds_inside=True, steps="stepwise",
        terms="third_input", sized_as_first=True),
    BookRow("CDist", domains=(MICROSOFT,), columns="rows"),
    BookRow("Tokenizer", domains=(MICROSOFT,), columns="tokens"),
    *plain(
        """
        AttnLSTM BeamSearch BiasDropout BiasSoftmax BiasSplitGelu BifurcationDetector
        BitmaskBiasDropout BitmaskDropout BranchwiseRMSNorm ComplexMul ComplexMulConj
        ConvStateReplay ConvTransposeWithDynamicPads CropAndResize DecoderAttention
        DecoderMaskedSelfAttention DequantizeBFP DequantizeWithOrder
        DynamicSparseAttention DynamicTimeWarping EPContext EngramGate ExpandDims
        FusedMatMulActivation GatedAdd GatedDeltaNet GatedDeltaNetStateReplay GatedRMSNorm
        GatedRelativePositionBias GatherPacked GemmFastGelu GemmaRotaryEmbedding GreedySearch
        GroupNorm HyperConnectionLowRankMix HyperConnectionPostMix HyperConnectionPreMix Inverse
        Irfft IsAllFinite LinearAttentionGate LongformerAttention MRotaryEmbedding Mamba2Verify
        MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight MatMulFpQ4 MatMulInteger16
        MatMulNBitsMlp MatMulNBitsQLoRA MatMulNBitsQkv MatMulPacked MaxpoolWithMask MoE
        MoEGroupRouter MoEPacked MulInteger MurmurHash3 NGramHashMapping NGramRepeatBlock NhwcConv
        NhwcFusedConv NhwcMaxPool PackedAttention PackedMultiHeadAttention
        PackedSparseAttentionIndexer PackedSparseAttentionIndexerMerge PagedAttention
        QEmbedLayerNormalization QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu
        QLinearReduceMean QLinearWhere QMoE QOrderedAttention QOrderedGelu
        QOrderedLayerNormalization QOrderedLongformerAttention QOrderedMatMul QuantizeBFP
        QuantizeWithOrder RMSNormRotary ReduceSumInteger RelativePositionBias RemovePadding
        RestorePadding Rfft RouterGateUpProj SampleOp Sampling ScaledSiLU SkipGroupNorm Snpe
        SparseAttention SparseAttentionIndexer SparsePagedAttention SparseToDenseMatMul
        SpeculativePrefixCommit SwiGLU TorchEmbedding TransposeMatMul UnfoldTensor
        VarlenCausalConvWithState VarlenNGramHashMapping WhisperBeamSearch WordConvEmbedding
        """,
        domains=(MICROSOFT,),
    ),
    *plain("ReorderInput ReorderOutput", domains=(NCHWC,)),
)
# fmt: on
