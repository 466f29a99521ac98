"""Specifications of recurrent operators, attention, quantization, spectra, sequences and classical models."""

import numpy as np

from benchmarks.reference_trust.specs import (
    Make,
    Spec,
    floats,
    integers,
    left_out,
    positive,
    unit,
    values,
)

LENGTH, BATCH, WIDTH, HIDDEN = 4, 2, 3, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ML = "ai.onnx.ml"
TRANSFORMS = (None, "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def _recurrent() -> list[Spec]:
    specs = []
    for name, gates in GATES.items():
        own: dict[str, tuple[object, ...]] = {"linear_before_reset": (None, 0, 1)} if name == "GRU" else {}
        for direction, ways in ((None, 1), ("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            weights = [floats(ways, gates * HIDDEN, WIDTH), floats(ways, gates * HIDDEN, HIDDEN)]
            bias, start = floats(ways, 2 * gates * HIDDEN), floats(ways, BATCH, HIDDEN)
            more: list[list[Make]] = [[], [bias], [bias, left_out, start]]
            if name == "LSTM":
                more += [
                    [bias, left_out, start, start],
                    [bias, left_out, start, start, floats(ways, 3 * HIDDEN)],
                ]
            outputs = 3 if name == "LSTM" else 2
            for extra in more:
                attributes = {"hidden_size": (HIDDEN,), "direction": (direction,), **own}
                specs.append(
                    Spec(name, [floats(LENGTH, BATCH, WIDTH), *weights, *extra], attributes, outputs=outputs)
                )
            batch_first = {"hidden_size": (HIDDEN,), "direction": (direction,), "layout": (1,), **own}
            specs.append(
                Spec(name, [floats(BATCH, LENGTH, WIDTH), *weights, bias], batch_first, outputs=outputs)
            )
    return specs


def _attention() -> list[Spec]:
    heads = [floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 6)]
    flat = [floats(2, 3, 32), floats(2, 5, 16), floats(2, 5, 12)]
    options = {"is_causal": (None, 0, 1), "scale": (None, 0.3), "softcap": (None, 0.0, 2.0)}
    counts = {"q_num_heads": (4,), "kv_num_heads": (2,)}
    return [
        Spec("Attention", heads, options),
        Spec("Attention", [*heads, floats(3, 5)], options),
        Spec("Attention", flat, {**options, **counts}),
        Spec("Attention", [*flat, floats(2, 1, 3, 5)], {**options, **counts}),
        Spec(
            "RotaryEmbedding",
            [floats(2, 4, 3, 8), floats(6, 4), floats(6, 4), integers(0, 6, (2, 3))],
            {"interleaved": (None, 0, 1)},
        ),
        Spec(
            "RotaryEmbedding",
            [floats(2, 3, 32), floats(6, 2), floats(6, 2), integers(0, 6, (2, 3))],
            {"interleaved": (None, 0, 1), "num_heads": (4,), "rotary_embedding_dim": (4,)},
        ),
    ]


def _quantized() -> list[Spec]:
    scale, scales = values(0.05, "float32"), positive(3)
    specs = []
    for dtype in ("uint8", "int8", "uint16", "int16"):
        point, points = values(3, dtype), integers(0, 9, (3,), dtype)
        numbers = integers(0, 100, (2, 3, 4), dtype)
        specs += [
            Spec("QuantizeLinear", [floats(2, 3, 4), scale, point]),
            Spec("QuantizeLinear", [floats(2, 3, 4), scales, points], {"axis": (None, 1, -2)}),
            Spec("DequantizeLinear", [numbers, scale, point]),
            Spec("DequantizeLinear", [numbers, scales, points], {"axis": (None, 1, -2)}),
            Spec("DequantizeLinear", [numbers, scale]),
        ]
    ties = values(np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 300.0, -300.0]), "float32")
    specs.append(Spec("QuantizeLinear", [ties, values(1.0, "float32")]))
    specs.append(Spec("QuantizeLinear", [ties, values(1.0, "float32"), values(2, "int8")]))
    specs += [
        Spec(
            "QuantizeLinear",
            [floats(2, 6, 4), positive(2, 3, 4), integers(0, 9, (2, 3, 4), "uint8")],
            {"axis": (1,), "block_size": (2,)},
        ),
        Spec(
            "DequantizeLinear",
            [integers(0, 100, (2, 6, 4), "uint8"), positive(2, 3, 4), integers(0, 9, (2, 3, 4), "uint8")],
            {"axis": (1,), "block_size": (2,)},
        ),
        Spec("DynamicQuantizeLinear", [floats(3, 4)], outputs=3),
        Spec("DynamicQuantizeLinear", [positive(3, 4)], outputs=3),
    ]
    for first, second in (("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8")):
        factors = [integers(0, 100, (2, 4), first), integers(0, 100, (4, 3), second)]
        points_of = [values(3, first), values(5, second)]
        specs.append(Spec("MatMulInteger", [*factors, *points_of]))
        specs.append(Spec("MatMulInteger", factors))
        specs.append(
            Spec(
                "QLinearMatMul",
                [
                    factors[0],
                    scale,
                    points_of[0],
                    factors[1],
                    scale,
                    points_of[1],
                    values(1.0, "float32"),
                    values(3, first),
                ],
            )
        )
        image, weight = integers(0, 100, (1, 2, 5, 5), first), integers(0, 100, (3, 2, 3, 3), second)
        specs.append(
            Spec(
                "QLinearConv",
                [
                    image,
                    scale,
                    points_of[0],
                    weight,
                    scale,
                    points_of[1],
                    values(1.0, "float32"),
                    values(3, first),
                ],
                {"pads": (None, [1, 1, 1, 1]), "strides": (None, [2, 2])},
            )
        )
    return specs


def _spectra() -> list[Spec]:
    kinds = {"output_datatype": (None, 1, 11), "periodic": (None, 0, 1)}
    specs = [Spec(name, [values(8)], kinds) for name in ("HannWindow", "HammingWindow", "BlackmanWindow")]
    specs += [
        Spec(
            "DFT",
            [floats(2, 6, 5, last), left_out, values(axis)],
            {"inverse": (None, 0, 1), "onesided": (None, 0, 1)},
        )
        for last in (1, 2)
        for axis in (1, 2, -2)
    ]
    specs.append(Spec("DFT", [floats(2, 6, 1), values(8), values(1)], {"onesided": (None, 1)}))
    specs.append(Spec("DFT", [floats(2, 6, 1)], {"inverse": (None, 1)}))
    window = positive(8)
    specs.append(Spec("STFT", [floats(1, 32, 1), values(4), window, values(8)], {"onesided": (None, 0, 1)}))
    specs.append(Spec("STFT", [floats(1, 32, 1), values(4), left_out, values(8)], {"onesided": (None, 0, 1)}))
    mel = [values(8), values(32), values(8000), values(0.0, "float32"), values(4000.0, "float32")]
    specs.append(Spec("MelWeightMatrix", mel))
    return specs


def _selections() -> list[Spec]:
    def boxes(random: np.random.Generator) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        corners = random.uniform(0, 5, (1, 8, 2))
        return np.concatenate([corners, corners + random.uniform(1, 4, (1, 8, 2))], -1).astype(np.float32)

    limits = [values([3]), values([0.4], "float32"), values([0.2], "float32")]
    return [
        Spec("NonMaxSuppression", [boxes, unit(1, 2, 8), *limits], {"center_point_box": (None, 0, 1)}),
        Spec("NonMaxSuppression", [boxes, unit(1, 2, 8), *limits[:2]]),
        Spec("NonMaxSuppression", [boxes, unit(1, 2, 8), limits[0]]),
        Spec("Range", [values(1.0, "float32"), values(9.5, "float32"), values(1.5, "float32")]),
        Spec("Range", [values(9), values(1), values(-3)]),
        Spec("Tile", [floats(2, 3), values([2, 3])]),
        Spec("Expand", [floats(3, 1), values([2, 1, 4])]),
        Spec("Reshape", [floats(2, 3, 4), values([0, -1])], {"allowzero": (None, 0)}),
        Spec("Squeeze", [floats(1, 3, 1), values([0, -1])]),
        Spec("Squeeze", [floats(1, 3, 1)]),
        Spec("Unsqueeze", [floats(3, 4), values([0, -1])]),
        Spec("Shape", [floats(2, 3, 4)], {"start": (None, 1, -2), "end": (None, 2, -1)}),
        Spec("Size", [floats(2, 3, 4)]),
        Spec("ConstantOfShape", [values([2, 3])]),
        Spec("Where", [integers(0, 2, (3, 1), "bool"), floats(3, 4), floats(4)]),
        Spec("Det", [floats(3, 4, 4)]),
        Spec("CenterCropPad", [floats(5, 6, 3), values([4, 8])], {"axes": ([0, 1], [-3, -2])}),
        Spec("Dropout", [floats(3, 4), values(0.3, "float32")]),
        Spec("Dropout", [floats(3, 4), values(0.3, "float32")], outputs=2),
        Spec("SequenceConstruct", [floats(2, 3), floats(2, 3)]),
        Spec("SplitToSequence", [floats(6, 4)], {"axis": (None, 0, 1), "keepdims": (None, 0, 1)}),
        Spec("SplitToSequence", [floats(6, 4), values(2)], {"axis": (None, 0, 1)}),
        Spec(
            "NegativeLogLikelihoodLoss",
            [floats(3, 4, 2), integers(0, 4, (3, 2)), positive(4)],
            {"reduction": (None, "none", "sum", "mean"), "ignore_index": (None, 1)},
        ),
        Spec(
            "SoftmaxCrossEntropyLoss",
            [floats(3, 4, 2), integers(0, 4, (3, 2)), positive(4)],
            {"reduction": (None, "none", "sum", "mean"), "ignore_index": (None, 1)},
            outputs=2,
        ),
    ]


def _classical() -> list[Spec]:
    weights = [0.3, -0.7, 0.2, 0.9, -0.4, 0.1]
    trees = {
        "nodes_treeids": ([0] * 5,),
        "nodes_nodeids": ([0, 1, 2, 3, 4],),
        "nodes_featureids": ([0, 1, 0, 0, 0],),
        "nodes_values": ([0.1, -0.2, 0.0, 0.0, 0.0],),
        "nodes_truenodeids": ([1, 3, 0, 0, 0],),
        "nodes_falsenodeids": ([2, 4, 0, 0, 0],),
    }
    compares = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ")
    modes = tuple([one, one, "LEAF", "LEAF", "LEAF"] for one in compares)
    kernel = {"kernel_type": ("LINEAR", "POLY", "RBF", "SIGMOID"), "kernel_params": ([0.4, 0.5, 2.0],)}
    made: list[tuple[str, dict[str, tuple[object, ...]], int]] = [
        ("Scaler", {"offset": ([0.5], [0.1, 0.2, 0.3]), "scale": ([2.0], [1.0, 2.0, 3.0])}, 1),
        ("Normalizer", {"norm": (None, "MAX", "L1", "L2")}, 1),
        ("Binarizer", {"threshold": (None, 0.2)}, 1),
        ("Imputer", {"imputed_value_floats": ([1.0], [1.0, 2.0, 3.0]), "replaced_value_float": (0.0,)}, 1),
        (
            "LinearRegressor",
            {
                "coefficients": (weights,), "intercepts": (None, [0.1, 0.2]), "targets": (2,),
                "post_transform": TRANSFORMS,
            },
            1,
        ),
        (
            "LinearClassifier",
            {
                "coefficients": (weights,), "intercepts": ([0.1, 0.2],), "classlabels_ints": ([3, 5],),
                "post_transform": TRANSFORMS, "multi_class": (None, 0, 1),
            },
            2,
        ),
        (
            "TreeEnsembleRegressor",
            {
                **trees, "nodes_modes": modes, "target_treeids": ([0, 0, 0],), "target_nodeids": ([2, 3, 4],),
                "target_ids": ([0, 0, 0],), "target_weights": ([1.5, -0.5, 0.25],), "n_targets": (1,),
                "aggregate_function": (None, "SUM", "AVERAGE", "MIN", "MAX"), "base_values": (None, [0.5]),
                "post_transform": TRANSFORMS,
            },
            1,
        ),
        (
            "TreeEnsembleClassifier",
            {
                **trees, "nodes_modes": modes[:2], "class_treeids": ([0, 0, 0],),
                "class_nodeids": ([2, 3, 4],),
                "class_ids": ([0, 1, 2],), "class_weights": ([1.5, 0.5, 0.25],),
                "classlabels_int64s": ([4, 5, 6],),
                "post_transform": TRANSFORMS, "base_values": (None, [0.5, 0.1, 0.2]),
            },
            2,
        ),
        (
            "SVMRegressor",
            {
                **kernel, "support_vectors": (weights,), "coefficients": ([0.4, -0.3],), "rho": ([0.2],),
                "n_supports": (2,), "post_transform": TRANSFORMS,
            },
            1,
        ),
        (
            "SVMClassifier",
            {
                **kernel, "support_vectors": (weights,), "coefficients": ([0.4, -0.3],), "rho": ([0.2],),
                "vectors_per_class": ([1, 1],), "classlabels_ints": ([3, 5],), "post_transform": TRANSFORMS,
                "prob_a": (None, [0.7]), "prob_b": (None, [0.1]),
            },
            2,
        ),
    ]  # fmt: skip
    specs = [
        Spec(name, [floats(6, 3)], attributes, outputs=count, domain=ML) for name, attributes, count in made
    ]
    specs += [
        Spec("FeatureVectorizer", [floats(4, 2), floats(4, 3)], {"inputdimensions": ([2, 3],)}, domain=ML),
        Spec("ArrayFeatureExtractor", [floats(4, 5), values([0, 3])], domain=ML),
        Spec(
            "OneHotEncoder",
            [integers(0, 5, (6,))],
            {"cats_int64s": ([0, 1, 2, 3],), "zeros": (None, 1)},
            domain=ML,
        ),
        Spec(
            "LabelEncoder",
            [integers(0, 5, (6,))],
            {"keys_int64s": ([0, 1, 2],), "values_floats": ([0.5, 1.5, 2.5],), "default_float": (None, 9.0)},
            domain=ML,
        ),
    ]
    return specs


SPECS = [*_recurrent(), *_attention(), *_quantized(), *_spectra(), *_selections(), *_classical()]
