"""Faults of narrow types: saturation, rounding, zero points; and of wide ones."""

from functools import partial

import numpy as np

from benchmarks.fuzzing.faults.fault import Array, Fault, Site, fault

_quantized = partial(fault, "int8")
_typed = partial(fault, "type")


def _scaled(site: Site) -> Array:
    scale, x = site.x(1), site.x(0)
    if scale.ndim:
        axis = site.given.get("axis", 1) % max(x.ndim, 1)
        scale = scale.reshape([-1 if at == axis else 1 for at in range(x.ndim)])
    return x / scale


def _plain(site: Site, dtype: str) -> bool:
    return (
        site.x(0).dtype == np.float32 and site.x(1).ndim == 0 and site.y.dtype == dtype and bool(site.y.size)
    )


def _saturates(site: Site) -> bool:
    limits = np.iinfo(np.int8)
    whole = (
        np.rint(_scaled(site)) + (int(site.x(2)) if site.has(2) else 0)
        if _plain(site, "int8")
        else np.zeros(1)
    )
    return bool(np.any((whole < limits.min) | (whole > limits.max)))


def _wrapped(site: Site) -> Array:
    whole = np.rint(_scaled(site)) + (int(site.x(2)) if site.has(2) else 0)
    return whole.astype(np.int64).astype(np.int8)


def _ties(site: Site) -> bool:
    return _plain(site, "uint8") and not np.array_equal(_half_up(site), site.y)


def _half_up(site: Site) -> Array:
    whole = np.floor(_scaled(site) + 0.5) + (int(site.x(2)) if site.has(2) else 0)
    clipped: Array = np.clip(whole, 0, 255)
    return clipped.astype(np.uint8)


QUANTIZED: tuple[Fault, ...] = (
    _quantized("QuantizeLinear: saturation of int8", "QuantizeLinear", _saturates, _wrapped),
    _quantized("QuantizeLinear: ties of uint8", "QuantizeLinear", _ties, _half_up),
    _quantized("DequantizeLinear: zero points by channel", "DequantizeLinear",
               lambda s: s.x(1).ndim == 1 and s.has(2) and bool(np.any(s.x(2)))),
    _quantized("MatMulInteger: a zero point", "MatMulInteger", lambda s: s.has(2) and bool(np.any(s.x(2)))),
    _quantized("QLinearConv: a bias", "QLinearConv", lambda s: s.has(8)),
    _typed("MatMul: float64", "MatMul Gemm", lambda s: s.y.dtype == np.float64),
    _typed("reductions: float16", "ReduceSum ReduceMean ReduceL2 ReduceSumSquare",
           lambda s: s.y.dtype == np.float16),
)  # fmt: skip
"""The numbers in the conditions are the forms themselves."""
