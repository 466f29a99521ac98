"""The kernels that a plugin declares: operators and versions, whatever it takes of a model in the end."""

from __future__ import annotations

from typing import Any

from harness.agent.safe_text import clean

_MOST = 4000
_LATEST = 1 << 30
"""Versions from here on have no end."""


def declared_kernels(provider: str) -> list[str] | None:
    """Return ``Add 7-12``, ``Add 14-``, ``com.microsoft:Gelu 1-`` and so on, sorted.

    None before onnxruntime 1.25, and where the provider compiles nodes and declares no kernels. onnxruntime
    makes an instance of the provider for this, with its default options.
    """
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as native
    except ImportError:  # an onnxruntime of another build
        return None
    ask: Any = getattr(native, "get_registered_ep_kernel_defs", None)
    if ask is None:
        return None
    try:
        found = {_words(kernel) for kernel in ask(provider)}
    except Exception:  # noqa: BLE001 - such as one that needs an option
        return None
    return sorted(found)[:_MOST] or None


def _words(kernel: Any) -> str:
    first, last = kernel.version_range
    name = "%s:%s" % (kernel.domain, kernel.op_name) if kernel.domain else kernel.op_name
    end = "" if last == first else "-" if last >= _LATEST else "-%d" % last
    return clean("%s %d%s" % (name, first, end), limit=200)
