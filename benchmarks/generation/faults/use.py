"""Faults of use: what a session keeps from run to run, and what it makes of shared buffers."""

from typing import Any

import numpy as np

from benchmarks.generation.faults.fault import use
from benchmarks.generation.faults.positions import PROMPT

ANY = ("gqa-h64", "mha-h64", "onnx23-h64")
SHARING = ("gqa-h64", "gqa-h64-nodes", "gqa-h64-int4")


class Session:
    """What a fault of use may change; it keeps its own state.

    Feeds and results are by name; a cache is one whose name begins with ``past_`` or ``present``.
    """

    def before(self, feeds: dict[str, Any]) -> dict[str, Any]:
        """Return what is really fed."""
        return feeds

    def after(self, feeds: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
        """Return what is given as the results; ``feeds`` are the caller's."""
        return results

    def shared(self, name: str, buffer: Any, past: int, new: int) -> Any:
        """Return the content of a buffer that past and present share, after a run; None to leave it."""


def past_of(feeds: dict[str, Any]) -> int:
    """The length of the cache that is fed."""
    return next((value.shape[2] for name, value in feeds.items() if name.startswith("past_")), 0)


class _Keeps(Session):
    """Keeps the cache of the last run."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def after(self, feeds: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
        pasts = [name for name in feeds if name.startswith("past_") and "cross" not in name]
        presents = [name for name in results if name.startswith("present")]
        # Model Builder's models have both in the same order.
        self.kept = dict(zip(pasts, (results[name] for name in presents), strict=True))
        return results

    @property
    def length(self) -> int:
        return past_of(self.kept)

    def fits(self, feeds: dict[str, Any]) -> bool:
        """Whether what is kept is of as many texts."""
        first = next(iter(self.kept.values()), None)
        return first is not None and first.shape[0] == feeds["input_ids"].shape[0]


@use(*ANY)
class StaleCacheAfterRewind(_Keeps):
    """After a rewind, the newest positions of the longer cache are read for the ones that were asked for."""

    def before(self, feeds: dict[str, Any]) -> dict[str, Any]:
        past = past_of(feeds)
        if 0 < past < self.length and self.fits(feeds):
            return {**feeds, **{name: value[:, :, -past:] for name, value in self.kept.items()}}
        return feeds


@use(*ANY)
class SequencesShareACache(_Keeps):
    """The cache of the run before is read, whoever's it was, if it has the right length."""

    def before(self, feeds: dict[str, Any]) -> dict[str, Any]:
        if past_of(feeds) == self.length > 0 and self.fits(feeds):
            return {**feeds, **self.kept}
        return feeds


@use(*SHARING, layer=0, upstream="onnxruntime-genai #1110")
class SharedBufferLosesARow(Session):
    """With a shared buffer, the last row that was written is lost."""

    def shared(self, name: str, buffer: Any, past: int, new: int) -> Any:
        if name.endswith("key"):
            buffer[:, :, past + new - 1] = 0
            return buffer
        return None


@use(*SHARING, layer=0)
class SharedBufferAliased(Session):
    """With a shared buffer, new rows are written to its start, over the oldest."""

    def shared(self, name: str, buffer: Any, past: int, new: int) -> Any:
        if past == 0:
            return None
        buffer[:, :, :new] = buffer[:, :, past : past + new]
        return buffer


@use(*ANY, upstream="onnxruntime-genai #2291", since={"step": PROMPT + 1})
class TokensDoubled(Session):
    """In decode, every second step gives the logits of the step before, so that its token is doubled."""

    def __init__(self) -> None:
        self.last: Any = None

    def after(self, feeds: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
        logits = results["logits"]
        past, new = past_of(feeds), feeds["input_ids"].shape[1]
        same = self.last is not None and self.last.shape == logits[:, -1:].shape
        if new == 1 and past % 2 and same:
            return {**results, "logits": self.last}
        self.last = logits[:, -1:]
        return results


@use(*ANY, since={"at_once": 0})
class LogitsOfTheLastPosition(Session):
    """Only the last position's logits are computed, and given for all."""

    def after(self, feeds: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
        logits = results["logits"]
        return {**results, "logits": np.repeat(logits[:, -1:], logits.shape[1], axis=1)}


@use(*ANY)
class OutputBufferReused(Session):
    """Results of a shape that occurred before are those of the earlier run."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, ...], Any] = {}

    def after(self, feeds: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
        key = results["logits"].shape
        given = self.seen.get(key, results["logits"])
        self.seen[key] = results["logits"]
        return {**results, "logits": given}


@use(*ANY, since={"at_once": PROMPT})
class PrefillOf32AtMost(Session):
    """Of a longer prefill, logits after the 32nd position are those of that position."""

    def after(self, feeds: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
        logits = results["logits"].copy()
        logits[:, PROMPT:] = logits[:, PROMPT - 1 : PROMPT]
        return {**results, "logits": logits}


@use("mha-h64", "onnx23-h64")
class PaddingOnTheOtherSide(Session):
    """A mask with zeros at its start is taken for one with zeros at its end."""

    def before(self, feeds: dict[str, Any]) -> dict[str, Any]:
        mask = feeds["attention_mask"]
        return {**feeds, "attention_mask": np.sort(mask, axis=1)[:, ::-1]}
