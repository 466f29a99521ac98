"""A cell: one model on one target at one point of the axes; and the spelling of its id."""

import re
from functools import cached_property, lru_cache
from typing import Literal
from urllib.parse import quote, unquote

import msgspec

AXIS_DEFAULTS: dict[str, str] = {
    "precision": "fp32",
    "graph_optimization": "all",
    "execution_mode": "sequential",
    "scenario": "plain",
}
"""The axes that every cell has, with the value that stays out of its id."""


class Cell(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One model on one target at one point of the axes. ``dict`` lets the id be spelled only once.

    Attributes:
        suite: Name of the suite, or a folder's base name.
        model: The model's name within its suite; for a folder the relative path.
        target: Name of the target.
        axes: ``(axis, value)`` pairs sorted by axis; the axes of ``AXIS_DEFAULTS`` and any ``option.<key>``.
    """

    suite: str
    model: str
    target: str
    axes: tuple[tuple[str, str], ...] = ()

    @cached_property
    def id(self) -> str:
        """``<suite>/<model>[<target>,<axis>=<value>,...]``, axes at their default left out."""
        return f"{escape(self.suite)}/{escape(self.model, '/')}[{_where(self.target, self.axes)}]"

    def axis(self, name: str) -> str:
        """The value of one axis; its default, or an empty string, where the cell does not set it."""
        for axis, value in self.axes:  # few; and this is asked many times for each cell
            if axis == name:
                return value
        return AXIS_DEFAULTS.get(name, "")


def escape(text: str, also_safe: Literal["", "/"] = "") -> str:
    """Percent-encode what has a meaning in an id or lies outside its alphabet (UTF-8, uppercase hex)."""
    if _PLAIN[also_safe].fullmatch(text):
        return text
    safe = "._+-" + also_safe
    # quote() leaves "~" alone, which is outside the alphabet of ids. A file name that is no UTF-8 reaches
    # Python with lone surrogates.
    return quote(text, safe=safe, errors="surrogatepass").replace("~", "%7E")


@lru_cache(maxsize=4096)
def _where(target: str, axes: tuple[tuple[str, str], ...]) -> str:
    """What stands in an id's brackets: the same for all models, of which there are many more."""
    shown = (f",{escape(axis)}={escape(value)}" for axis, value in axes if AXIS_DEFAULTS.get(axis) != value)
    return escape(target) + "".join(shown)


_PLAIN = {"": re.compile(r"[A-Za-z0-9._+-]*"), "/": re.compile(r"[A-Za-z0-9._+/-]*")}
"""Text that needs no escaping, as nearly all does; asked first, because ids are made by the 100,000."""


def parse_cell_id(cell_id: str) -> tuple[str, str, str, dict[str, str]]:
    """Split an id into suite, model, target and the axes that are not at their default.

    Raises:
        ValueError: The text is not a cell id.
    """
    path, bracket, rest = cell_id.partition("[")
    suite, slash, model = path.partition("/")
    if not (bracket and slash and rest.endswith("]") and suite and model):
        raise ValueError(f"not a cell id: {cell_id!r}; it reads suite/model[target,axis=value]")
    target, *axes = rest[:-1].split(",")
    pairs = dict(axis.split("=", 1) for axis in axes)
    return (
        _unescape(suite),
        _unescape(model),
        _unescape(target),
        {_unescape(axis): _unescape(value) for axis, value in pairs.items()},
    )


def _unescape(text: str) -> str:
    return unquote(text, errors="surrogatepass")
