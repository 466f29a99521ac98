"""GridSample and AffineGrid."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode

_CUBIC = -0.75  # the text's coefficient


class _Border(NamedTuple):
    """The values beyond the border, and whether corners are aligned."""

    padding: str
    align: bool


def grid_sample(node: VersionedNode, x: AnyArray, grid: AnyArray) -> AnyArray:
    """GridSample of any rank: ``(N, C, D1...)`` at points ``(N, out..., rank)``, the last axis first."""
    rank = x.ndim - 2
    align = bool(node.get("align_corners", 0))
    mode = node.get("mode", "linear").replace("bi", "", 1)
    border = _Border(node.get("padding_mode", "zeros"), align)
    points = grid.reshape(grid.shape[0], -1, rank)[..., ::-1]
    taps = []
    for axis, size in enumerate(x.shape[2:]):
        at = (
            (points[..., axis] + 1.0) / 2.0 * (size - 1)
            if align
            else ((points[..., axis] + 1.0) * size - 1.0) / 2.0
        )
        taps.append([_inside(place, weight, size, border) for place, weight in _taps(at, mode, size, border)])
    node.budget.need(float(x.shape[0]) * x.shape[1] * points.shape[1] * 8 * 3)
    y = np.zeros((*x.shape[:2], points.shape[1]))
    for n in range(x.shape[0]):
        flat = x[n].reshape(x.shape[1], -1)
        for chosen in np.ndindex(*(len(one) for one in taps)):
            index, weight = np.zeros(points.shape[1], np.int64), np.ones(points.shape[1])
            for axis, number in enumerate(chosen):
                place, share = taps[axis][number]
                index, weight = index * x.shape[axis + 2] + place[n], weight * share[n]
            # A place outside has no weight, and must not bring NaN or infinity.
            y[n] += np.where(weight == 0, 0.0, flat[:, index] * weight)
    return y.reshape(*x.shape[:2], *grid.shape[1:-1])


def _taps(at: AnyArray, mode: str, size: int, border: _Border) -> list[tuple[AnyArray, AnyArray]]:
    """Return the neighbours of points along one axis, with their weights."""
    if mode == "nearest":
        if border.padding == "reflection":
            at = _reflected(at, size, align=border.align)
        return [(np.rint(at), np.ones_like(at))]  # halves go to the even one
    low = np.floor(at)
    r = at - low
    if mode == "linear":
        return [(low, 1.0 - r), (low + 1, r)]
    return [(low + step, _cubic(np.abs(r - step))) for step in (-1, 0, 1, 2)]


def _cubic(distance: AnyArray) -> AnyArray:
    a, d = _CUBIC, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))  # noqa: PLR2004 - its reach


def _inside(place: AnyArray, weight: AnyArray, size: int, border: _Border) -> tuple[AnyArray, AnyArray]:
    """Return indices within an axis; outside of it, the weight is zero."""
    if border.padding == "zeros":
        weight = np.where((place >= 0) & (place <= size - 1), weight, 0.0)
    elif border.padding == "reflection":
        place = np.rint(_reflected(place, size, align=border.align))
    return np.clip(np.nan_to_num(place), 0, size - 1).astype(np.int64), weight


def _reflected(at: AnyArray, size: int, *, align: bool) -> AnyArray:
    """Return places mirrored at the borders until they are inside."""
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return np.full_like(at, low)
    off = np.abs(at - low)
    turns, rest = np.floor(off / span), np.mod(off, span)
    return np.where(turns % 2 == 0, low + rest, high - rest)


def affine_grid(node: VersionedNode, theta: AnyArray, size: AnyArray) -> AnyArray:
    """AffineGrid, of two or three dimensions."""
    spatial = [int(one) for one in size[2:]]
    lines: list[Any] = []
    for count in spatial:
        if node.get("align_corners", 0):
            lines.append(np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1))
        else:
            lines.append((2.0 * np.arange(count) + 1.0) / count - 1.0)
    places = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(spatial)], -1)
    return (places.reshape(1, -1, len(spatial) + 1) @ theta.swapaxes(1, 2)).reshape(
        -1, *spatial, len(spatial)
    )


def deform_conv(
    node: VersionedNode,
    x: AnyArray,
    w: AnyArray,
    offset: AnyArray,
    bias: AnyArray = None,
    mask: AnyArray = None,
) -> AnyArray:
    """DeformConv of pictures: the sampled places of a kernel are moved, and their values interpolated."""
    kernel, groups, parts = w.shape[2:], node.get("group", 1), node.get("offset_group", 1)
    strides, dilations = node.get("strides") or [1, 1], node.get("dilations") or [1, 1]
    pads = node.get("pads") or [0, 0, 0, 0]
    out, taps = offset.shape[2:], int(np.prod(kernel))
    moved = offset.reshape(x.shape[0], parts, taps, 2, *out)
    shares = (
        np.ones((x.shape[0], parts, taps, *out))
        if mask is None
        else mask.reshape(x.shape[0], parts, taps, *out)
    )
    columns = np.zeros((x.shape[0], x.shape[1], taps, *out))
    node.budget.need(columns.nbytes * 2.0)
    rows, lines = np.meshgrid(*(np.arange(one) for one in out), indexing="ij")
    channels = x.shape[1] // parts
    for n, part, tap in np.ndindex(x.shape[0], parts, taps):
        high, wide = divmod(tap, kernel[1])
        at_h = rows * strides[0] - pads[0] + high * dilations[0] + moved[n, part, tap, 0]
        at_w = lines * strides[1] - pads[1] + wide * dilations[1] + moved[n, part, tap, 1]
        some = slice(part * channels, (part + 1) * channels)
        columns[n, some, tap] = _between(x[n, some], at_h, at_w) * shares[n, part, tap]
    flat = columns.reshape(x.shape[0], groups, x.shape[1] // groups * taps, -1)
    y = (w.reshape(groups, w.shape[0] // groups, -1) @ flat).reshape(x.shape[0], w.shape[0], *out)
    return y if bias is None else y + bias.reshape(1, -1, 1, 1)


def _between(x: AnyArray, at_h: AnyArray, at_w: AnyArray) -> AnyArray:
    """Return ``(C, ...)`` interpolated between the four neighbours; outside of ``(C, H, W)`` is zero."""
    low_h, low_w = np.floor(at_h), np.floor(at_w)
    y = np.zeros((x.shape[0], *at_h.shape))
    for add_h, add_w in np.ndindex(2, 2):
        h, w = low_h + add_h, low_w + add_w
        weight = (1.0 - np.abs(at_h - h)) * (1.0 - np.abs(at_w - w))
        inside = (h >= 0) & (h < x.shape[1]) & (w >= 0) & (w < x.shape[2])
        place_h = np.clip(h, 0, x.shape[1] - 1).astype(np.int64)
        place_w = np.clip(w, 0, x.shape[2] - 1).astype(np.int64)
        y += np.where(inside, x[:, place_h, place_w] * weight, 0.0)
    return y
