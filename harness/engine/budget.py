"""The budget of a job: how many messages about it an agent may send.

Each ``phase`` starts a time limit anew, and each ``need`` has a piece of a file read. So both are counted
against what the job asks for. ``docs/reference/agent-protocol.md`` has the formulas: an agent that runs the
model as often as it is asked, in whatever order, never comes near the end.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.engine.messages import ProtocolError

MEASURED_TEXTS = 32
"""Times that a stopwatch runs in the scenario ``generate``: lengths of prompts, and sizes of batches."""

_PHASES = {"create": 8, "run": 32, "teardown": 8}
"""What any job may enter besides: a session for a profile, another one in a fresh process."""

_TWICE = 2
"""For an agent that reports before and after, or runs everything in a fresh process once more."""


class Budget(msgspec.Struct):
    """What is left of the messages about one job.

    Attributes:
        phases: Phase -> how often it may still be entered.
        pieces: How many pieces of its model's files may still be requested.
    """

    phases: dict[str, int]
    pieces: int

    def enter(self, phase: str) -> None:
        """Count a ``phase``.

        Raises:
            ProtocolError: There have been too many.
        """
        self.phases[phase] -= 1
        if self.phases[phase] < 0:
            raise ProtocolError(f"it began phase {phase} of one job more often than the job can ask for")

    def need(self) -> None:
        """Count a ``need``.

        Raises:
            ProtocolError: There have been too many.
        """
        self.pieces -= 1
        if self.pieces < 0:
            raise ProtocolError("it asked for more pieces of a model than its files have")


def budget_of(job: Mapping[str, Any], piece_bytes: int) -> Budget:
    """Return what an agent may send about a job, whose model travels in pieces of so many bytes."""
    sessions, runs = _asked(job)
    phases = {
        "create": _PHASES["create"] + _TWICE * sessions,
        "run": _PHASES["run"] + _TWICE * runs,
        "teardown": _PHASES["teardown"] + _TWICE * sessions,
    }
    return Budget(phases=phases, pieces=_pieces(job["model"], piece_bytes))


def _asked(job: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many sessions and runs a job asks for."""
    data_sets = len(job["data_sets"])
    sessions, runs = 1, 2 * data_sets  # dynamic_shapes runs each twice
    if repeat := job.get("repeat"):
        sessions += repeat["sessions"]
        runs += repeat["sessions"] * repeat["runs"]
    settings = job.get("scenario_settings", {})
    if count := settings.get("count"):
        sessions += count
        runs += count * (data_sets + 1)  # the last session runs as often once more
    if threads := settings.get("threads"):
        runs += 2 * threads * settings["runs"]  # of the given inputs and of others
    texts = 1
    if generate := job.get("generate"):
        # A step may be one row's; the first play comes twice, and the text that the EP chooses is one more.
        steps = [_TWICE * (len(play["ends"]) + 1) for play in generate["plays"]]
        runs += sum(steps) + steps[0] + generate["new_tokens"]
        texts = MEASURED_TEXTS
    if latency := job.get("latency"):
        runs += texts * (latency["warm_up"] + latency["repeats"] + 2)
    return sessions, runs


def _pieces(model: Any, piece_bytes: int) -> int:
    """Return how many pieces the files of a model have, each with one more that may be empty.

    Twice: what has arrived may be lost before its turn.
    """
    if isinstance(model, str):
        return 0
    pieces: int = sum(nbytes // piece_bytes + 2 for _, nbytes, _ in model["files"])
    return _TWICE * pieces
