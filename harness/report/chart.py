"""A small line chart as SVG: one figure of one target over the runs."""

from collections.abc import Sequence

import msgspec

WIDTH, HEIGHT = 260, 72
_LEFT, _RIGHT, _TOP, _BOTTOM = 6.0, 6.0, 6.0, 6.0


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """One run's figure; ``title`` is the text under the pointer."""

    x: float
    y: float
    title: str
    marked: bool


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A line with gaps where runs have no figure.

    Attributes:
        latest: The newest figure in words; empty if the newest run has none.
        dots: A dot for each figure; marked if the environment changed.
        label: The whole chart in words, for screen readers.
    """

    name: str
    latest: str
    path: str
    dots: tuple[Dot, ...]
    limits: tuple[float, ...]
    label: str


def chart(
    name: str,
    values: Sequence[float | None],
    words: Sequence[str],
    *,
    top: float,
    marked: Sequence[bool],
    limits: Sequence[float] = (),
) -> Chart | None:
    """Draw a value for each run, oldest first, None where a run has none; None without any figure.

    ``top`` is at the upper edge, where larger values are drawn as well; the lower edge is 0. ``marked`` are
    runs before which the environment changed.
    """
    if all(value is None for value in values):
        return None
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(values) - 1)

    def height(value: float) -> float:
        share = min(max(value / top, 0.0), 1.0) if top else 0.0
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    dots: list[Dot] = []
    path: list[str] = []
    pen = "M"
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        x, y = round(_LEFT + index * step, 1), height(value)
        dots.append(Dot(x=x, y=y, title=words[index], marked=marked[index]))
        path.append(f"{pen}{x} {y}")
        pen = "L"
    return Chart(
        name=name,
        latest=words[-1] if values[-1] is not None else "",
        path=" ".join(path),
        dots=tuple(dots),
        limits=tuple(height(limit) for limit in limits),
        label=f"{name}, {len(dots)} runs: from {dots[0].title} to {dots[-1].title}",
    )
