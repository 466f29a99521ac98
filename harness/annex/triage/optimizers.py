"""Finds the graph optimizers that a failure needs: onnxruntime's own, switched off by name."""

from collections.abc import Callable, Sequence

ENTRY = "session.optimization.disable_specified_optimizers"
"""Axis of a trial; the session configuration entry is the part after ``session.``.

Names are separated by semicolons (``onnxruntime_session_options_config_keys.h``).
"""

OPTIMIZERS = (
    *("CommonSubexpressionElimination", "ConstantFolding", "ConstantFoldingDQ", "ConstantSharing"),
    *("CastElimination", "CastChainElimination", "EliminateDropout", "EliminateIdentity", "EliminateSlice"),
    *("ExpandElimination", "NoopElimination", "PreShapeNodeElimination", "UnsqueezeElimination"),
    *("ConvAddFusion", "ConvBNFusion", "ConvMulFusion", "DivMulFusion", "FuseReluClip", "GemmSumFusion"),
    *("GemmTransposeFusion", "LabelEncoderFusion", "MatMulAddFusion", "MatMul_BatchNormalization_Fusion"),
    *("NotWhereFusion", "Pad_Fusion", "ReshapeFusion", "ClipQuantRewrite", "ReluQuantRewrite"),
    *("GeluFusionL1", "LayerNormFusionL1", "GeluFusionL2", "LayerNormFusionL2", "SimplifiedLayerNormFusion"),
    *("AttentionFusion", "BiasDropoutFusion", "BiasGeluFusion", "BiasSkipLayerNormFusion"),
    *("BiasSoftmaxFusion", "EmbedLayerNormFusion", "FastGeluFusion", "QuickGeluFusion"),
    *("SkipLayerNormFusion", "GroupQueryAttentionFusion", "GatherToSliceFusion", "GatherSliceToSplitFusion"),
    *("ConvActivationFusion", "ConvAddActivationFusion", "GemmActivationFusion", "MatMulActivationFusion"),
    *("MatMulScaleFusion", "MatmulTransposeFusion", "DynamicQuantizeMatMulFusion", "DQMatMulNBitsFusion"),
    *("MatMulIntegerToFloatFusion", "QDQPropagationTransformer", "QDQS8ToU8Transformer"),
    *("QDQSelectorActionTransformer", "QDQFinalCleanupTransformer", "WeightBiasQuantization"),
    *("EnsureUniqueDQForNodeUnit", "TransposeOptimizer", "NchwcTransformer", "NhwcTransformer"),
    *("FreeDimensionOverrideTransformer", "SliceConcatToSpaceToDepthFusion", "DoubleQDQPairsRemover"),
)
"""Names of optimizers in onnxruntime 1.31 (``graph_transformer_utils.cc``).

A name that a release does not know has no effect there.
"""


def guilty_optimizers(
    fails_without: Callable[[Sequence[tuple[str, ...]]], Sequence[bool]],
) -> tuple[str, ...]:
    """Return the optimizers without which the failure is gone; empty if it needs none of them.

    Bisects: as long as the failure is gone without a set, the set is halved. If the failure stays without
    either half, several optimizers cause it, each on its own. Then optimizers that are not needed leave the
    set, in ever smaller parts.

    Args:
        fails_without: Returns for sets of optimizers whether the failure stays with each set switched off.
    """
    (fails,) = fails_without([OPTIMIZERS])
    if fails:
        return ()
    guilty: tuple[str, ...] = OPTIMIZERS
    while len(guilty) > 1:
        middle = len(guilty) // 2
        halves = (guilty[:middle], guilty[middle:])
        results = fails_without(halves)
        gone = next((half for half, fails in zip(halves, results, strict=True) if not fails), None)
        if gone is None:
            return _thinned(guilty, fails_without)
        guilty = gone
    return guilty


def _thinned(
    names: tuple[str, ...], fails_without: Callable[[Sequence[tuple[str, ...]]], Sequence[bool]]
) -> tuple[str, ...]:
    """Leave out all names that need not be switched off."""
    size = len(names) // 4 or 1
    while True:
        for start in range(len(names) - 1, -1, -size):
            rest = names[: max(0, start - size + 1)] + names[start + 1 :]
            if rest and not fails_without([rest])[0]:
                names = rest
        if size == 1:
            return names
        size //= 2
