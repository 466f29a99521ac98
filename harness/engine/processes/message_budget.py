"""The budget of a job: how many messages about the job an agent may send.

Each ``phase`` restarts a time limit, and each ``need`` makes the harness read a piece of a file. So both are
limited by what the job asks for. ``docs/reference/agent-protocol.md`` has the formulas. An agent that runs
the model as often as requested, in whatever order, never comes near the limit.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.engine.processes.messages import ProtocolError

MEASURED_TEXTS = 32
"""Largest number of timed texts in the scenario ``generate``: lengths of prompts, and sizes of batches."""

_PHASES = {"create": 8, "run": 32, "teardown": 8}
"""Further phases that any job may enter: a session for a profile, another one in a fresh process."""

SCENARIO_SESSIONS = 32
"""Further sessions of a scenario: beside others, from memory, and in fresh processes."""

SCENARIO_RUNS = 32
"""Further runs of each data set in a scenario: in each of its sessions, while others are closed."""

_ORDERS = 4
"""Orders of steps of the scenario ``lifecycle``, one of them in rounds."""

PROFILED_SESSIONS = 3
"""Further sessions whose profiles tell the time of nodes."""

_TWICE = 2
"""Factor for an agent that reports before and after, or that runs everything again in a fresh process."""


class MessageBudget(msgspec.Struct):
    """The remaining messages about one job.

    Attributes:
        phases: Phase -> how often it may still be entered.
        pieces: How many pieces of its model's files may still be requested.
    """

    phases: dict[str, int]
    pieces: int

    def enter(self, phase: str) -> None:
        """Count a ``phase``.

        Raises:
            ProtocolError: The phase was entered too often.
        """
        self.phases[phase] -= 1
        if self.phases[phase] < 0:
            raise ProtocolError(f"it began phase {phase} of one job more often than the job can ask for")

    def need(self) -> None:
        """Count a ``need``.

        Raises:
            ProtocolError: The phase was entered too often.
        """
        self.pieces -= 1
        if self.pieces < 0:
            raise ProtocolError("it asked for more pieces of a model than its files have")


def budget_of(job: Mapping[str, Any], piece_bytes: int) -> MessageBudget:
    """Return how many messages an agent may send about a job.

    Its model travels in pieces of so many bytes.
    """
    sessions, runs = _asked(job)
    phases = {
        "create": _PHASES["create"] + _TWICE * sessions,
        "run": _PHASES["run"] + _TWICE * runs,
        "teardown": _PHASES["teardown"] + _TWICE * sessions,
    }
    return MessageBudget(phases=phases, pieces=_pieces(job["model"], piece_bytes))


def _asked(job: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many sessions and runs a job asks for."""
    data_sets = len(job["data_sets"])
    sessions, runs = 1, 2 * data_sets  # dynamic_shapes runs each data set twice
    if "scenario" in job:
        sessions += SCENARIO_SESSIONS
        runs += SCENARIO_RUNS * data_sets
    if repeat := job.get("repeat"):
        sessions += repeat["sessions"]
        runs += repeat["sessions"] * repeat["runs"]
    settings = job.get("scenario_settings", {})
    if count := settings.get("count"):
        sessions += count
        runs += count * (data_sets + 1)  # the last session runs the same number once more
    if rounds := settings.get("rounds"):
        sessions += rounds + _ORDERS
        runs += rounds + _ORDERS
    if threads := settings.get("threads"):
        runs += 2 * threads * settings["runs"]  # of the given inputs and of others
    texts = 1
    if generate := job.get("generate"):
        # A step may belong to one row; the first play comes twice, and the text that the EP chooses is
        # another one.
        steps = [_TWICE * (len(play["ends"]) + 1) for play in generate["plays"]]
        runs += sum(steps) + steps[0] + generate["new_tokens"]
        texts = MEASURED_TEXTS
        # Each session of a folder, and another one of which a profile shows the placement.
        stages = len(job.get("stages", ()))
        sessions += _TWICE * stages
        runs += stages
    if latency := job.get("latency"):
        texts = data_sets if latency.get("grid") else texts
        runs += texts * (latency["warm_up"] + latency["repeats"] + 2)
        if latency.get("nodes"):
            sessions += PROFILED_SESSIONS
            runs += PROFILED_SESSIONS * (latency["warm_up"] + latency["repeats"] + 2)
    return sessions, runs


def _pieces(model: Any, piece_bytes: int) -> int:
    """Return how many pieces the files of a model have, each with one more that may be empty.

    Twice: pieces that have arrived may be lost before they are used.
    """
    if isinstance(model, str):
        return 0
    pieces: int = sum(nbytes // piece_bytes + 2 for _, nbytes, _ in model["files"])
    return _TWICE * pieces
