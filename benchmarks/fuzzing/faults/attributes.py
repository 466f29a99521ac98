"""Faults that show for some values of attributes only, some of which an opset brought."""

from functools import partial

import numpy as np

from benchmarks.fuzzing.faults.fault import Array, Fault, Site, fault, last

_attribute = partial(fault, "attribute")
_opset = partial(fault, "opset")


def _asymmetric(site: Site) -> bool:
    pads = list(site.given.get("pads", ()))
    return pads[: len(pads) // 2] != pads[len(pads) // 2 :]


def _spread(site: Site) -> bool:
    return any(step > 1 for step in site.given.get("dilations", ()))


def _negative(site: Site) -> bool:
    return bool(np.any(site.x(1) < 0))


def _backwards(site: Site) -> bool:
    return bool(np.any(site.x(4) < 0)) and site.y.size > 1


def _rolled(site: Site) -> Array:
    return np.roll(site.y, 1, -1) if site.y.ndim else site.y + np.array(1, site.y.dtype)


def _mode(name: str) -> "partial[bool]":
    return partial(_has_mode, name)


def _has_mode(name: str, site: Site) -> bool:
    return site.given.get("mode", "constant") == name and bool(np.any(site.x(1)))


ATTRIBUTES: tuple[Fault, ...] = (
    _attribute("Conv, pools: SAME_LOWER", "Conv MaxPool AveragePool",
               lambda s: s.given.get("auto_pad") == "SAME_LOWER"),
    _attribute("Conv: dilated, in groups", "Conv", lambda s: s.given.get("group", 1) > 1 and _spread(s)),
    _attribute("Conv: padding that differs by side", "Conv", _asymmetric),
    _attribute("ConvTranspose: output_padding", "ConvTranspose",
               lambda s: any(s.given.get("output_padding", ()))),
    _attribute("AveragePool: count_include_pad", "AveragePool",
               lambda s: s.given.get("count_include_pad", 0) == 1 and any(s.given.get("pads", ()))),
    _attribute("MaxPool: dilated", "MaxPool", _spread),
    _attribute("pools: ceil_mode", "MaxPool AveragePool",
               lambda s: s.given.get("ceil_mode", 0) == 1 and max(s.given.get("strides", [1])) > 1, last(2)),
    _attribute("Gemm: transA with a bias of one column", "Gemm",
               lambda s: s.given.get("transA", 0) == 1 and s.x(2).ndim == 2 and s.x(2).shape[1] == 1),
    _attribute("Gemm: beta", "Gemm", lambda s: s.has(2) and s.given.get("beta", 1) != 1),
    _attribute("CumSum: exclusive and reverse", "CumSum",
               lambda s: s.given.get("exclusive", 0) == 1 and s.given.get("reverse", 0) == 1),
    _attribute("TopK: the smallest", "TopK", lambda s: s.given.get("largest", 1) == 0),
    _attribute("ArgMax: select_last_index", "ArgMax ArgMin",
               lambda s: s.given.get("select_last_index", 0) == 1),
    _attribute("Pad: reflect", "Pad", _mode("reflect"), _rolled),
    _attribute("Slice: backwards", "Slice", _backwards, _rolled),
    _attribute("Gather: indices from the end", "Gather GatherElements GatherND", _negative),
    _attribute("ScatterElements: an axis from the end", "ScatterElements",
               lambda s: s.given.get("axis", 0) < 0),
    _attribute("DepthToSpace: CRD", "DepthToSpace", lambda s: s.given.get("mode") == "CRD"),
    _attribute("Elu, Celu: alpha", "Elu Celu", lambda s: s.given.get("alpha", 1.0) != 1.0),
    _attribute("LSTM, GRU, RNN: reverse", "LSTM GRU RNN", lambda s: s.given.get("direction") == "reverse"),
    _attribute("GRU: linear_before_reset", "GRU", lambda s: s.given.get("linear_before_reset", 0) == 1),
    _opset("Gelu: tanh (20)", "Gelu", lambda s: s.given.get("approximate") == "tanh"),
    _opset("Pad: wrap (19)", "Pad", _mode("wrap"), _rolled),
    _opset("Split: num_outputs (18)", "Split", lambda s: "num_outputs" in s.given and bool(s.y.size)),
    _opset("reductions: axes as an input, keepdims 0 (18)", "ReduceMean ReduceMax ReduceMin ReduceL2",
           lambda s: s.has(1) and s.given.get("keepdims", 1) == 0),
)  # fmt: skip
"""The numbers in the conditions are the forms themselves; those in the names are opsets."""
