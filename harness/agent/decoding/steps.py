"""The steps of a play: runs of one session, each with the cache of the previous one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from harness.agent.decoding.arrays import OnnxArray, array_of, joined
from harness.agent.decoding.text_columns import Cache, ColumnTexts
from harness.agent.job_run import JobRun
from harness.agent.system import elapsed_ms

StepResults = dict[str, OnnxArray]
"""Output -> its tensor."""


class OtherShapeError(Exception):
    """A step gave an output of another shape than its inputs require; the error has all of its outputs."""

    def __init__(self, results: StepResults) -> None:
        super().__init__("outputs of other shapes")
        self.results = results


class SessionSteps:
    """Runs a session step by step."""

    def __init__(self, job_run: JobRun, text: ColumnTexts) -> None:
        self.job_run = job_run
        self.text = text
        self.runs = 0

    def run(self, feeds: dict[str, Any]) -> StepResults:
        """Run once, as a separate phase: the time limit applies to one step."""
        self.job_run.enter("run")
        started = time.perf_counter()
        wires = self.job_run.runner(feeds)
        self.job_run.result["timings_ms"].setdefault("first_run", elapsed_ms(started))
        self.runs += 1
        return self.judged_of(wires)

    def judged_of(self, wires: list[Any]) -> StepResults:
        """Return the outputs that are compared, from all outputs of a run in wire form."""
        named = zip(self.job_run.runner.names, wires)
        return {name: array_of(wire) for name, wire in named if name in self.text.judged}

    def carried(self, play: dict[str, Any], turns: Sequence[slice] = (slice(None),)) -> list[StepResults]:
        """Play with the cache of each step in the next one; return the logits and the last cache.

        The rows in each part of ``turns`` are played alternately, one step each, and each part has its own
        result.
        """
        empty = self.text.empty.items()
        caches = [{name: self.text.of_rows(name, array, rows) for name, array in empty} for rows in turns]
        parts: list[list[StepResults]] = [[] for _ in turns]
        last: list[StepResults] = [{} for _ in turns]
        start = 0
        for end in play["ends"]:
            for number, rows in enumerate(turns):
                if start == play["detour_at"]:
                    caches[number] = self.after_detour(play, caches[number])
                last[number] = self.run(self.text.feeds(start, end, caches[number], rows))
                self.check(last[number], start, end, start)
                parts[number].append({name: last[number][name] for name in self.text.by_token})
                caches[number] = self.cache_of(last[number])
            start = end
        return [self._whole(part, results) for part, results in zip(parts, last)]

    def after_detour(self, play: dict[str, Any], cache: Cache) -> Cache:
        """Feed other tokens, and return the cache cut back to what it was."""
        start = play["detour_at"]
        results = self.run(self.text.detour(start, play["detour"], cache))
        self.check(results, start, start + play["detour"], start)
        if self.text.decoder["cache_length"]:
            # later tokens overwrite what is behind the text, and nothing is cut
            return self.cache_of(results)
        return {
            name: array.cut(self.text.pasts[name]["axis"], 0, start)
            for name, array in self.cache_of(results).items()
        }

    def uncached(self, play: dict[str, Any]) -> StepResults:
        """Play with the whole text so far in each step, and an empty cache."""
        parts, start, results = [], 0, {}
        for end in play["ends"]:
            results = self.run(self.text.feeds(0, end, self.text.empty))
            self.check(results, 0, end, 0)
            parts.append({name: results[name].cut(1, start, end) for name in self.text.by_token})
            start = end
        return self._whole(parts, results)

    def cache_of(self, results: StepResults) -> Cache:
        """Return the cache for the next step."""
        return {name: results[pair["present"]] for name, pair in self.text.pasts.items()}

    def check(self, results: StepResults, start: int, end: int, past: int) -> None:
        """Check that a step gave logits for each of its columns, and the cache of all columns so far.

        Raises:
            OtherShapeError: It did not, so that no further step is possible.
        """
        logits = results[self.text.decoder["logits"]].shape
        fits = len(logits) > 1 and logits[1] == end - start
        wanted = self.text.decoder["cache_length"] or past + end - start
        for pair in self.text.decoder["cache"]:
            shape = results[pair["present"]].shape
            fits = fits and len(shape) > pair["axis"] and shape[pair["axis"]] == wanted
        if not fits:
            self.job_run.facts["other_shape"] = "columns %d to %d" % (start, end - 1)
            raise OtherShapeError(results)

    def _whole(self, parts: list[StepResults], results: StepResults) -> StepResults:
        """Return the outputs of all columns: the logits of all steps, and the cache of the last one."""
        return {**results, **{name: joined([one[name] for one in parts], 1) for name in parts[0]}}
