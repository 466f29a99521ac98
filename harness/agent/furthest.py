"""The results of a scenario beside those of a plain run of the same session: the furthest ones are judged."""

from __future__ import annotations

from harness.agent.difference import difference
from harness.agent.job_run import Feeds, JobRun, RawOutputs

TOLD = 1e-3
"""Share of the largest value by which a result has to differ before its circumstances are named."""


class FurthestFromFirst:
    """Keeps, for each data set, the outputs that are furthest from the first ones."""

    def __init__(self) -> None:
        self.first: list[RawOutputs] = []
        self.worst: list[tuple[float, RawOutputs]] = []
        self.differing = 0
        """How often any of the outputs differed."""

    def compare(self, outputs: list[RawOutputs]) -> None:
        """Compare outputs, a list for each data set; the first call gives those that count."""
        if not self.first:
            self.first = outputs
            self.worst = [(0.0, values) for values in outputs]
        apart = list(map(difference, self.first, outputs))
        self.differing += any(apart)
        for index, values in enumerate(outputs):
            if apart[index] > self.worst[index][0]:
                self.worst[index] = (apart[index], values)

    @property
    def apart(self) -> float:
        """How far the furthest outputs are off."""
        return max((apart for apart, _ in self.worst), default=0.0)


class Furthest:
    """Keeps, for each data set, the result that is furthest from the one of a plain run.

    ``pairs`` are inputs and outputs of plain runs, one for each data set; the first runs twice, because what
    differs from run to run is no matter of a scenario.
    """

    def __init__(self, job_run: JobRun, pairs: list[tuple[Feeds, RawOutputs]]) -> None:
        self.pairs = pairs
        self.apart = [0.0] * len(pairs)
        self.worst = [outputs for _, outputs in pairs]
        self.circumstances = ""
        """Where the furthest result came about."""
        job_run.further()
        self.wanders = difference(pairs[0][1], job_run.runner(pairs[0][0]))

    def compare(self, index: int, outputs: RawOutputs, circumstances: str) -> None:
        """Keep the outputs of a data set if they are further from those of the plain run than any before."""
        apart = difference(self.pairs[index][1], outputs)
        if apart > self.apart[index]:
            self.apart[index], self.worst[index] = apart, outputs
            if apart == max(self.apart):
                self.circumstances = circumstances

    @property
    def tells(self) -> bool:
        """Whether a result differs by more than rounding and chance explain."""
        return max(self.apart) > max(TOLD, self.wanders)

    def conclude(self, job_run: JobRun, equal: str) -> None:
        """Report the furthest results; the fact ``equal`` says whether all have the bits of the plain run."""
        apart = max(self.apart)
        job_run.facts[equal] = apart == 0
        if apart:
            job_run.facts["difference"] = apart
        if self.tells:
            job_run.facts["only"] = self.circumstances
        job_run.result["outputs"] = [job_run.send(outputs) for outputs in self.worst]
