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
"""The axes that every cell has -> the value that its id leaves out."""

SESSION_ENTRY = "session."
"""Prefix of axes that no matrix has: the key of a session configuration entry follows it.

Questions have such axes, and cells of variants that bring entries of their own."""


class Cell(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One model on one target at one point of the axes; ``dict`` is for the cached id.

    Attributes:
        suite: Name of the suite, or a folder's base name.
        model: The model's name within its suite; for a folder the relative path.
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
        """Return the value of one axis; its default, or an empty string, if the cell does not set it."""
        for axis, value in self.axes:  # few, and called many times for each cell
            if axis == name:
                return value
        return AXIS_DEFAULTS.get(name, "")


def escape(text: str, also_safe: Literal["", "/"] = "") -> str:
    """Percent-encode characters with a meaning in an id or outside its alphabet (UTF-8, uppercase hex)."""
    if _PLAIN[also_safe].fullmatch(text):
        return text
    safe = "._+-" + also_safe
    # quote() keeps "~", which is outside the alphabet of ids. File names that are not UTF-8 have lone
    # surrogates.
    return quote(text, safe=safe, errors="surrogatepass").replace("~", "%7E")


@lru_cache(maxsize=4096)
def _where(target: str, axes: tuple[tuple[str, str], ...]) -> str:
    """Return the text in an id's brackets, which many models share."""
    shown = (f",{escape(axis)}={escape(value)}" for axis, value in axes if AXIS_DEFAULTS.get(axis) != value)
    return escape(target) + "".join(shown)


_PLAIN = {"": re.compile(r"[A-Za-z0-9._+-]*"), "/": re.compile(r"[A-Za-z0-9._+/-]*")}
"""Text that needs no escaping: the frequent case, tried first because a plan may have 100,000 ids."""


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
    pairs = (axis.split("=", 1) for axis in axes)
    decoded = {_unescape(axis): _unescape(value) for axis, value in pairs}
    return _unescape(suite), _unescape(model), _unescape(target), decoded


def _unescape(text: str) -> str:
    return unquote(text, errors="surrogatepass")
