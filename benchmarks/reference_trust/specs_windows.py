"""Specifications of convolutions, pooling, normalization over images, and changes of size."""

from benchmarks.reference_trust.specs import Spec, floats, integers, left_out, positive, tied, unit, values

IMAGE = floats(2, 4, 7, 8)
LINE = floats(2, 4, 9)
VOLUME = floats(1, 2, 5, 6, 5)
PADS = (None, [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0])
AUTO = (None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
POOLS: dict[str, dict[str, tuple[object, ...]]] = {
    "AveragePool": {"count_include_pad": (None, 0, 1)},
    "MaxPool": {},
    "LpPool": {"p": (None, 1, 2, 3)},
}


def _pools() -> list[Spec]:
    specs = []
    for name, own in POOLS.items():
        windows = {
            "kernel_shape": ([2, 3], [3, 3]),
            "strides": (None, [2, 1], [2, 2]),
            "ceil_mode": (None, 0, 1),
        }
        specs += [
            Spec(name, [IMAGE], {**own, **windows, "pads": PADS}),
            Spec(name, [IMAGE], {**own, **windows, "auto_pad": AUTO}),
            Spec(
                name, [IMAGE], {**own, **windows, "dilations": (None, [1, 1], [2, 1], [2, 2]), "pads": PADS}
            ),
            Spec(
                name, [LINE], {**own, "kernel_shape": ([3],), "strides": (None, [2]), "pads": (None, [1, 1])}
            ),
            Spec(name, [VOLUME], {**own, "kernel_shape": ([2, 3, 2],), "strides": (None, [2, 1, 1])}),
        ]
    windows = {
        "kernel_shape": ([2, 3],),
        "strides": (None, [2, 2]),
        "storage_order": (None, 0, 1),
        "pads": PADS,
    }
    specs.append(Spec("MaxPool", [IMAGE], {**windows, "dilations": (None, [2, 1])}, outputs=2))
    specs.append(Spec("MaxPool", [tied(1, 2, 6, 6)], windows, outputs=2))
    specs.append(
        Spec("MaxPool", [integers(-99, 99, (1, 2, 6, 6), "int8")], {"kernel_shape": ([2, 2],), "pads": PADS})
    )
    for name in ("GlobalAveragePool", "GlobalMaxPool"):
        specs += [Spec(name, [data]) for data in (LINE, IMAGE, VOLUME)]
    specs += [Spec("GlobalLpPool", [data], {"p": (None, 1, 2, 3)}) for data in (LINE, IMAGE, VOLUME)]
    regions = values([[0, 0, 0, 5, 5], [1, 1, 2, 6, 6]], "float32")
    specs.append(
        Spec("MaxRoiPool", [IMAGE, regions], {"pooled_shape": ([2, 2], [3, 2]), "spatial_scale": (None, 0.5)})
    )
    specs.append(
        Spec(
            "RoiAlign",
            [floats(2, 2, 8, 8), values([[0, 0, 5, 5], [1, 2, 6, 7]], "float32"), values([0, 1])],
            {
                "mode": (None, "avg", "max"),
                "output_height": (2, 3),
                "output_width": (2,),
                "sampling_ratio": (None, 0, 2),
                "spatial_scale": (None, 0.5),
                "coordinate_transformation_mode": (None, "half_pixel", "output_half_pixel"),
            },
        )
    )
    return specs


def _convolutions() -> list[Spec]:
    windows = {"strides": (None, [2, 1], [2, 2]), "dilations": (None, [2, 1]), "pads": PADS}
    specs = [
        Spec("Conv", [IMAGE, floats(6, 4, 3, 2)], windows),
        Spec("Conv", [IMAGE, floats(6, 4, 3, 2), floats(6)], {"auto_pad": AUTO, "strides": (None, [2, 2])}),
        Spec("Conv", [IMAGE, floats(6, 2, 3, 3), floats(6)], {"group": (2,), "pads": PADS}),
        Spec(
            "Conv", [IMAGE, floats(4, 1, 3, 3)], {"group": (4,), "pads": PADS, "kernel_shape": (None, [3, 3])}
        ),
        Spec(
            "Conv",
            [LINE, floats(3, 4, 3)],
            {"pads": (None, [1, 1]), "strides": (None, [2]), "dilations": (None, [2])},
        ),
        Spec("Conv", [VOLUME, floats(3, 2, 2, 3, 2)], {"strides": (None, [2, 1, 1])}),
        Spec("ConvTranspose", [IMAGE, floats(4, 3, 3, 2)], windows),
        Spec(
            "ConvTranspose",
            [IMAGE, floats(4, 3, 3, 3), floats(3)],
            {"auto_pad": AUTO, "strides": (None, [2, 2])},
        ),
        Spec("ConvTranspose", [IMAGE, floats(4, 3, 3, 3)], {"group": (1, 2), "pads": PADS}),
        Spec(
            "ConvTranspose",
            [IMAGE, floats(4, 2, 3, 3)],
            {"strides": ([2, 2],), "output_padding": (None, [1, 1], [1, 0])},
        ),
        Spec(
            "ConvTranspose",
            [IMAGE, floats(4, 2, 3, 3)],
            {
                "strides": ([2, 2],),
                "output_shape": ([15, 17], [16, 17], [14, 16]),
                "auto_pad": (None, "SAME_LOWER"),
            },
        ),
        Spec("ConvTranspose", [LINE, floats(4, 3, 3)], {"strides": (None, [2]), "pads": (None, [1, 1])}),
        Spec(
            "ConvInteger",
            [
                integers(0, 255, (1, 2, 5, 5), "uint8"),
                integers(0, 255, (3, 2, 3, 3), "uint8"),
                values(7, "uint8"),
                values(9, "uint8"),
            ],
            {"pads": PADS, "strides": (None, [2, 2])},
        ),
        Spec("Col2Im", [floats(1, 8, 12), values([4, 5]), values([2, 2])]),
        Spec("Einsum", [floats(2, 3), floats(3, 4)], {"equation": ("ij,jk->ik", "ij,jk", "ij,jk->ki")}),
        Spec(
            "Einsum",
            [floats(2, 3, 4), floats(2, 4, 5)],
            {"equation": ("bij,bjk->bik", "...ij,...jk->...ik", "bij,bjk->b")},
        ),
        Spec("MatMul", [floats(2, 3, 4), floats(4, 5)]),
        Spec("MatMul", [floats(4), floats(2, 4, 5)]),
        Spec("MatMul", [floats(2, 3, 4), floats(4)]),
        Spec("MatMul", [floats(4), floats(4)]),
    ]
    scalars = {"alpha": (None, 0.5, 2.0), "beta": (None, 0.25, 0.0)}
    specs += [
        Spec("Gemm", [floats(*one), floats(*two), third], {**scalars, "transA": (a,), "transB": (b,)})
        for one, a in (((3, 4), 0), ((4, 3), 1))
        for two, b in (((4, 5), 0), ((5, 4), 1))
        for third in (floats(3, 5), floats(5), floats(3, 1), floats(1))
    ]
    specs.append(Spec("Gemm", [floats(3, 4), floats(4, 5)], {"alpha": (None, 0.5), "beta": (None, 2.0)}))
    return specs


def _normalizations() -> list[Spec]:
    specs = []
    for shape in ((2, 3), (2, 3, 4), (2, 3, 4, 5), (1, 3, 2, 3, 4)):
        statistics = [floats(3), floats(3), floats(3), positive(3)]
        epsilons = (None, 1e-5, 1e-2, 0.5)
        specs.append(
            Spec(
                "BatchNormalization",
                [floats(*shape), *statistics],
                {"epsilon": epsilons, "momentum": (None, 0.5), "training_mode": (None, 0)},
            )
        )
        specs.append(
            Spec(
                "BatchNormalization",
                [floats(*shape), *statistics],
                {"epsilon": epsilons, "momentum": (None, 0.5), "training_mode": (1,)},
                outputs=3,
            )
        )
        each = shape[1:]
        specs.append(
            Spec(
                "BatchNormalization",
                [floats(*shape), floats(*each), floats(*each), floats(*each), positive(*each)],
                {"epsilon": (None, 0.1), "spatial": (0,)},
                opset=7,
            )
        )
        specs.append(Spec("BatchNormalization", [floats(*shape), *statistics], {"spatial": (1,)}, opset=7))
        if len(shape) > 2:
            specs.append(
                Spec("InstanceNormalization", [floats(*shape), floats(3), floats(3)], {"epsilon": epsilons})
            )
            specs.append(
                Spec(
                    "LRN",
                    [floats(shape[0], 7, *shape[2:])],
                    {"size": (1, 2, 3, 4, 5), "alpha": (None, 0.5), "beta": (None, 0.5), "bias": (None, 2.0)},
                )
            )
        for axis in (None, *range(-len(shape), len(shape))):
            tail = shape[-1 if axis is None else axis :]
            specs.append(
                Spec(
                    "LayerNormalization",
                    [floats(*shape), floats(*tail), floats(*tail)],
                    {"axis": (axis,), "epsilon": epsilons, "stash_type": (None, 1)},
                )
            )
            specs.append(
                Spec("LayerNormalization", [floats(*shape), floats(*tail)], {"axis": (axis,)}, outputs=3)
            )
            specs.append(
                Spec(
                    "RMSNormalization",
                    [floats(*shape), floats(*tail)],
                    {"axis": (axis,), "epsilon": epsilons},
                )
            )
    specs += [
        Spec(
            "GroupNormalization",
            [floats(2, 6, 3, 4), floats(6), floats(6)],
            {"num_groups": (1, 2, 3, 6), "epsilon": (None, 0.1), "stash_type": (None, 1)},
        ),
        Spec(
            "GroupNormalization",
            [floats(2, 6, 3, 4), floats(2), floats(2)],
            {"num_groups": (2,), "epsilon": (None, 0.1)},
            opset=18,
        ),
    ]
    return specs


def _sizes() -> list[Spec]:
    modes = {
        "mode": ("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": (
            None, "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        ),
    }  # fmt: skip
    small = floats(1, 2, 4, 5)
    scales = [values(one, "float32") for one in ([1, 1, 2, 2], [1, 1, 0.6, 0.8], [1, 1, 1.5, 2.3])]
    specs = [Spec("Resize", [small, left_out, one], modes) for one in scales]
    specs += [Spec("Resize", [small, left_out, left_out, values([1, 2, 7, 3])], modes)]
    specs += [Spec("Resize", [floats(1, 2, 6), left_out, values([1, 1, 1.7], "float32")], modes)]
    for one in scales:
        nearest = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        specs.append(
            Spec("Resize", [small, left_out, one], {**modes, "mode": ("nearest",), "nearest_mode": nearest})
        )
        cubic = {"cubic_coeff_a": (None, -0.5), "exclude_outside": (None, 1)}
        specs.append(Spec("Resize", [small, left_out, one], {**modes, "mode": ("cubic",), **cubic}))
        specs.append(
            Spec("Resize", [small, left_out, one], {**modes, "mode": ("linear", "cubic"), "antialias": (1,)})
        )
    specs.append(
        Spec(
            "Resize",
            [small, values([0, 0, 0.2, 0.1, 1, 1, 0.9, 0.8], "float32"), scales[0]],
            {
                "mode": modes["mode"],
                "coordinate_transformation_mode": ("tf_crop_and_resize",),
                "extrapolation_value": (None, 3.0),
            },
        )
    )
    policies = {"keep_aspect_ratio_policy": (None, "stretch", "not_larger", "not_smaller"), "axes": ([2, 3],)}
    specs.append(Spec("Resize", [small, left_out, left_out, values([7, 7])], policies))
    specs += [
        Spec("Upsample", [small, one], {"mode": (None, "nearest", "linear")}, opset=9) for one in scales[::2]
    ]
    edges = values([0, 1, 1, 0, 2, 1])
    specs += [
        Spec("Pad", [floats(3, 4, 5), edges], {"mode": (None, "reflect", "edge", "wrap", "constant")}),
        Spec("Pad", [floats(3, 4, 5), edges, values(1.5, "float32")], {"mode": (None, "constant")}),
        Spec("Pad", [floats(3, 4, 5), values([0, -1, 1, 0, 1, -2])], {"mode": (None, "constant")}),
        Spec(
            "Pad",
            [floats(3, 4, 5), values([1, 2]), left_out, values([1])],
            {"mode": (None, "edge", "reflect")},
        ),
        Spec("DepthToSpace", [floats(1, 8, 2, 3)], {"blocksize": (2,), "mode": (None, "DCR", "CRD")}),
        Spec("SpaceToDepth", [floats(1, 2, 4, 6)], {"blocksize": (2,)}),
    ]
    sampling = {"padding_mode": (None, "zeros", "border", "reflection"), "align_corners": (None, 0, 1)}
    specs += [
        Spec("GridSample", [floats(1, 2, 4, 5), grid], {**sampling, "mode": names}, opset=opset)
        for grid in (floats(1, 3, 3, 2), unit(1, 3, 3, 2))
        for names, opset in (
            ((None, "linear", "nearest", "cubic"), 22),
            ((None, "bilinear", "nearest", "bicubic"), 16),
        )
    ]
    specs.append(
        Spec("GridSample", [VOLUME, unit(1, 3, 3, 2, 3)], {**sampling, "mode": (None, "linear", "nearest")})
    )
    specs += [
        Spec("AffineGrid", [floats(2, 2, 3), values([2, 3, 4, 5])], {"align_corners": (None, 0, 1)}),
        Spec("AffineGrid", [floats(1, 3, 4), values([1, 3, 4, 5, 2])], {"align_corners": (None, 0, 1)}),
    ]
    return specs


SPECS = [*_pools(), *_convolutions(), *_normalizations(), *_sizes()]
