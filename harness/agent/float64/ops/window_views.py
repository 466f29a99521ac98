"""The windows of convolutions and pools: padding, and a view of the elements that each covers."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode

WINDOW_BYTES = 1 << 26
"""Bytes of windows that are expanded at once."""


class Windows:
    """Kernel, strides, dilations and padding of a node, for inputs of a spatial shape.

    Args:
        node: The node.
        spatial: Its input's shape without batch and channels.
        kernel: The kernel's shape.
    """

    def __init__(self, node: VersionedNode, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> None:
        rank = len(spatial)
        self.kernel = kernel
        self.strides = tuple(node.get("strides") or [1] * rank)
        self.dilations = tuple(node.get("dilations") or [1] * rank)
        self.extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, self.dilations))
        pads = node.get("pads") or [0] * (2 * rank)
        auto = node.get("auto_pad", "NOTSET")
        begin, end = list(pads[:rank]), list(pads[rank:])
        if auto == "VALID":
            begin, end = [0] * rank, [0] * rank
        elif auto.startswith("SAME"):
            for i, size in enumerate(spatial):
                total = max((-(-size // self.strides[i]) - 1) * self.strides[i] + self.extent[i] - size, 0)
                small, large = total // 2, total - total // 2
                begin[i], end[i] = (small, large) if auto == "SAME_UPPER" else (large, small)
        self.begin, self.end = begin, end
        self.out = []
        is_ceil = bool(node.get("ceil_mode", 0)) and not auto.startswith("SAME")
        for i, size in enumerate(spatial):
            room = size + begin[i] + end[i] - self.extent[i]
            count = (-(-room // self.strides[i]) if is_ceil else room // self.strides[i]) + 1
            if is_ceil and (count - 1) * self.strides[i] >= size + begin[i]:
                count -= 1  # a window that would begin in the trailing padding does not count
            self.out.append(max(count, 0))

    def padded(self, x: AnyArray, value: Any) -> AnyArray:
        """Return an input ``(N, C, ...)`` with its padding, extended to the reach of the last windows."""
        reach = [
            max(0, (count - 1) * stride + extent - size - begin)
            for count, stride, extent, size, begin in zip(
                self.out, self.strides, self.extent, x.shape[2:], self.begin
            )
        ]
        ends = [max(one, other) for one, other in zip(reach, self.end)]
        widths = [(0, 0), (0, 0), *((max(b, 0), max(e, 0)) for b, e in zip(self.begin, ends))]
        wide = np.pad(x, widths, constant_values=value)
        cut = [slice(max(-b, 0), wide.shape[i + 2]) for i, b in enumerate(self.begin)]
        return wide[(slice(None), slice(None), *cut)]

    def view(self, padded: AnyArray) -> AnyArray:
        """Return a view ``(N, C, out..., kernel...)`` of the elements that each window covers."""
        steps = padded.strides[2:]
        shape = (*padded.shape[:2], *self.out, *self.kernel)
        strides = (
            *padded.strides[:2],
            *(step * stride for step, stride in zip(steps, self.strides)),
            *(step * dilation for step, dilation in zip(steps, self.dilations)),
        )
        return np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)
