"""A text with its layout, and the inputs of a decoder for some of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.decoding.arrays import OnnxArray, array_of, joined

Cache = dict[str, OnnxArray]
"""Input of the cache -> its tensor."""


class ColumnTexts:
    """The texts of one play, column by column.

    Args:
        generate: The job's field: roles of inputs and outputs, and axes of the batch.
        play: The layout and its steps; see ``harness.core.records.ways.Play``.
        inputs: The data set of the play, in wire form: the whole texts, with an empty cache.
    """

    def __init__(self, generate: dict[str, Any], play: dict[str, Any], inputs: list[Any]) -> None:
        self.decoder: dict[str, Any] = generate["decoder"]
        self.axes: dict[str, int] = generate["batch_axes"]
        self.given = {name: array_of(wire) for name, wire in inputs}
        self.layout = np.array(play["layout"], np.int64)
        self.rows = len(self.layout)
        self.length: int = self.given[self.decoder["tokens"]].shape[1]
        self.pasts: dict[str, dict[str, Any]] = {pair["past"]: pair for pair in self.decoder["cache"]}

        passed = generate["passed"]
        self.by_token = (self.decoder["logits"], *(name for name in passed if not passed[name]["once"]))
        """Outputs that have only the columns of one step; those of all steps are joined."""
        self.once = tuple(name for name in passed if passed[name]["once"])
        self.judged = (*self.by_token, *(pair["present"] for pair in self.decoder["cache"]), *self.once)

    @property
    def empty(self) -> Cache:
        """The cache before the first column."""
        return {name: self.given[name] for name in self.pasts}

    def feeds(self, start: int, end: int, cache: Cache, rows: slice = slice(None)) -> dict[str, Any]:
        """Return the inputs that feed rows of the columns from ``start``, the cache's end, to ``end``."""
        return self._feeds(self._tokens()[rows, start:end], start, end, cache, rows)

    def detour(self, start: int, count: int, cache: Cache) -> dict[str, Any]:
        """Return the inputs that feed other tokens in place of the columns from ``start`` on."""
        columns = self._tokens()[:, np.arange(start, start + count) % self.layout.shape[1]]
        return self._feeds(
            (columns + 1) % self.decoder["vocabulary"], start, start + count, cache, slice(None)
        )

    def _feeds(self, tokens: Any, start: int, end: int, cache: Cache, rows: slice) -> dict[str, Any]:
        role = self.decoder
        feeds = {}
        for name, given in self.given.items():
            if name == role["tokens"]:
                array = given.like(tokens.astype(given.values.dtype))
            elif name == role["positions"]:
                array = given.like(self._positions(end)[rows, start:end].astype(given.values.dtype))
            elif name == role["mask"]:
                array = self._mask(given, end, rows)
            elif name in role["counts"]:
                array = self._counted(name, start, end, rows)
            else:
                array = cache[name] if name in self.pasts else self.of_rows(name, given, rows)
            feeds[name] = array.feed()
        return feeds

    def _counted(self, name: str, start: int, end: int, rows: slice) -> OnnxArray:
        """Return an input that counts the columns before the fed ones, or that has the place of each."""
        given = self.of_rows(name, self.given[name], rows)
        places = self.decoder["counts"][name] == "places"
        values = np.arange(start, end) if places else np.full(given.shape, start)
        return given.like(values.astype(given.values.dtype))

    def of_rows(self, name: str, array: OnnxArray, rows: slice) -> OnnxArray:
        """Return the part of an input that belongs to some rows."""
        if name not in self.axes or rows == slice(None):
            return array
        return array.cut(self.axes[name], rows.start, rows.stop)

    def batch_axis(self, output: str) -> int:
        """Return the batch axis of an output: for logits the first, for the cache that of its input."""
        return next(
            (self.axes.get(name, 0) for name, pair in self.pasts.items() if pair["present"] == output), 0
        )

    def in_order(self, columns: dict[str, OnnxArray]) -> dict[str, OnnxArray]:
        """Return the outputs of the text's positions in order, from those of all columns."""
        found = {name: self._by_place(columns[name], 0, 1, self.layout) for name in self.by_token}
        found.update((name, columns[name]) for name in self.once)
        # An operator that takes a length leaves no gaps: later tokens overwrite padding.
        by_length = np.broadcast_to(np.arange(self.layout.shape[1]), self.layout.shape)
        layout = by_length if self.decoder["takes_lengths"] else self.layout
        fixed = self.decoder["cache_length"]
        for name, pair in self.pasts.items():
            own = self._by_place(columns[pair["present"]], self.axes.get(name, 0), pair["axis"], layout)
            found[pair["present"]] = own.extended(pair["axis"], fixed) if fixed else own
        return found

    def _by_place(self, array: OnnxArray, batch: int, axis: int, layout: Any) -> OnnxArray:
        """Return the parts of an array that belong to places of the text, in order for each row."""
        rows = []
        for row, places in enumerate(layout):
            wanted = np.flatnonzero((places >= 0) & (places < self.length))
            rows.append(array.cut(batch, row, row + 1).take(axis, wanted[np.argsort(places[wanted])]))
        return joined(rows, batch)

    def _tokens(self) -> Any:
        """Return the token id of each column; behind the text, that of its last position."""
        texts = self.given[self.decoder["tokens"]].values
        places = np.take_along_axis(texts, np.clip(self.layout, 0, self.length - 1), 1)
        return np.where(self.layout >= 0, places, self.decoder["pads_token"])

    def _positions(self, end: int) -> Any:
        """Return the position of each column up to ``end``, including those of a detour."""
        beyond = end - self.layout.shape[1]
        positions = np.maximum(self.layout, 0)
        if beyond <= 0:
            return positions
        more = positions[:, -1:] + np.arange(1, beyond + 1)
        return np.concatenate([positions, more], 1)

    def _mask(self, given: OnnxArray, end: int, rows: slice) -> OnnxArray:
        """Return 1 for each column that counts."""
        columns = self.decoder["cache_length"] if self.decoder["masks_cache"] else end
        counts = np.zeros((self.rows, columns), bool)
        known = min(end, self.layout.shape[1])
        counts[:, known:end] = True
        counts[:, :known] = self.layout[:, :known] >= 0
        if given.dtype == "bfloat16":
            return given.like(np.where(counts[rows], 0x3F80, 0).astype(np.uint16))
        return given.like(counts[rows].astype(given.values.dtype))
