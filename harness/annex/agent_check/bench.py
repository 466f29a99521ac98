"""The common parts of the checks of one agent: its command, its configuration, models, and a ready agent."""

import hashlib
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx

from harness.agent.target_errors import NoRoomError
from harness.annex.agent_check.dialogue import PLAIN_OPENING, Dialogue, Opening
from harness.annex.agent_check.early_ends import FaultError, NotDoneError
from harness.annex.agent_check.models import MODELS, model
from harness.core.records.scenario import GENERATE, played_by
from harness.core.values.value import NamedValues, Tensor, Value, tensor
from harness.engine.processes.connection import Greeting
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.message_budget import MessageBudget, budget_of
from harness.engine.processes.messages import (
    After,
    Completed,
    Failed,
    Imported,
    JobDone,
    JobResult,
    NotFed,
    OptionRefused,
    PhaseEntered,
    PieceNeeded,
    ProtocolError,
    Ready,
    RunResult,
    ScenarioRefused,
    TargetUnavailable,
)
from harness.engine.tasks.outcome import ExpectedResult, Ran, from_result

_PIECE_BYTES = 64
"""Bytes of a file in one message: so few that even a small model needs several."""

NamedInputs = Mapping[str, Value]


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The subject of the checks: an agent, by its command, with one EP.

    The folder is empty. Every answer must come within ``limit_s`` seconds. The largest tensor has
    ``large_bytes``.
    """

    command: tuple[str, ...]
    folder: Path
    provider: str = "CPUExecutionProvider"
    options: dict[str, str] = {}
    limit_s: float = 60.0
    large_bytes: int = 1 << 30


class JobReply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one job."""

    phases: tuple[str, ...]
    result: RunResult
    after: After
    ran: Ran | None

    @property
    def output(self) -> Value:
        """The first output of the first data set; errors are those of ``outputs``."""
        return self.outputs()[0][1]

    def outputs(self, data_set: int = 0) -> NamedValues:
        """Return the outputs of a data set.

        Raises:
            FaultError: The job did not run.
            NotDoneError: The agent reports that it cannot do this.
        """
        if self.ran is not None:
            return self.ran.outputs[data_set]
        if isinstance(self.result, NotFed | ScenarioRefused):
            raise NotDoneError(self.result.message)
        kind = self.result.kind if isinstance(self.result, Failed) else ""
        raise FaultError("refused", f"it failed in {self.result.phase}: {kind}: {self.result.message}")


class Bench:
    """Dialogues with one agent, and models for it."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.greeting: Greeting | None = None
        """The greeting of the first process that greeted."""
        self.tensors = Tensors()
        self.files: dict[str, bytes] = {}
        """Files of models that travel in pieces."""
        self.needs: list[tuple[str, int]] = []
        """Pieces that the agent has requested: name and offset."""
        self.budgets: dict[int, MessageBudget] = {}
        """Job of this check -> the remaining budget of messages about it."""
        self._numbers = itertools.count()
        self._ids = itertools.count(1)
        self._open: list[Dialogue] = []
        self._ready: Dialogue | None = None
        self._models: dict[str, Path] = {}

    # --- processes ---

    def start(self, opening: Opening = PLAIN_OPENING) -> Dialogue:
        """Start a process; it ends with the check."""
        folder = self.folder("process")
        env = {"EP_HARNESS_CACHE": str(self.setup.folder / "cache")}
        try:
            dialogue = Dialogue(self.setup.command, env, folder, self.setup.limit_s, opening)
        except (OSError, ValueError) as error:
            raise FaultError("greeting", f"it cannot be started: {error}") from error
        self._open.append(dialogue)
        return dialogue

    def greeted(self, opening: Opening = PLAIN_OPENING) -> Dialogue:
        """Start a process and take its greeting."""
        dialogue = self.start(opening)
        greeting = dialogue.greet()
        self.greeting = self.greeting or greeting
        return dialogue

    def imported(self, opening: Opening = PLAIN_OPENING) -> Dialogue:
        """Start a process and wait until it has loaded its runtime."""
        dialogue = self.greeted(opening)
        message = dialogue.receive("imported")
        if not isinstance(message, Imported):
            raise _unusable(message, "imported")
        return dialogue

    def made_ready(self, opening: Opening = PLAIN_OPENING, **config: Any) -> Dialogue:
        """Start a process and make it use the EP."""
        dialogue = self.imported(opening)
        dialogue.send(("config", self.config(**config)))
        message = dialogue.receive("ready")
        if not isinstance(message, Ready):
            raise _unusable(message, "ready")
        return dialogue

    def shared(self) -> Dialogue:
        """Return a process that is ready, and that further checks will use."""
        if self._ready is None:
            self._ready = self.made_ready()
            self._open.remove(self._ready)
        return self._ready

    def give_up_shared(self) -> None:
        """End the shared process: a check has failed with it."""
        if self._ready is not None:
            self._ready.close()
            self._ready = None

    def end_check(self) -> None:
        """End the processes of one check."""
        self.budgets.clear()
        while self._open:
            self._open.pop().close()

    def close(self) -> None:
        """End every process."""
        self.end_check()
        self.give_up_shared()

    def declines(self, *names: str) -> None:
        """End the check if the agent declines one of these things.

        Raises:
            NotDoneError: The agent declines one.
        """
        declined = self.greeting.declines if self.greeting else {}
        for name in names:
            if name in declined:
                raise NotDoneError(f"declined: {declined[name]}")

    def config(self, **changed: Any) -> dict[str, Any]:
        """Return the configuration."""
        config: dict[str, Any] = {
            "providers": [self.setup.provider],
            "options": self.setup.options,
            "plugin": None,
            "device": {},
            "binding_device": "",
            "session": {},
            "memory_limit_mb": None,
            "tensor_folders": [],
        }
        return config | changed

    # --- models and jobs ---

    def folder(self, name: str) -> Path:
        """Make a new folder."""
        path = self.setup.folder / f"{name}-{next(self._numbers)}"
        path.mkdir(parents=True)
        return path

    def path(self, name: str, content: onnx.ModelProto | bytes | None = None) -> Path:
        """Write a model once, by default that of ``MODELS``; return its path."""
        if name not in self._models:
            made = model(MODELS[name]) if content is None else content
            self._models[name] = self.folder("models") / f"{name}.onnx"
            self._models[name].write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
        return self._models[name]

    def job(self, path: Path, *data_sets: NamedInputs, **fields: Any) -> dict[str, Any]:
        """Return a job; its model is a list of files if the agent declines paths."""
        by_path = self.greeting is None or "paths" not in self.greeting.declines
        self.tensors.begin()
        try:
            values = [[[name, self.tensors.put(value)] for name, value in one.items()] for one in data_sets]
        except NoRoomError as error:
            raise NotDoneError(str(error)) from error
        return {
            "model": str(path) if by_path else self.manifest({path.name: path.read_bytes()}),
            "data_sets": values or [[]],
            "graph_optimization": "all",
            "execution_mode": "sequential",
            **fields,
        }

    def manifest(self, files: Mapping[str, bytes]) -> dict[str, Any]:
        """Return a model as a list of files, the model's own first; their pieces are sent on request."""
        self.files.update(files)
        rows = [[name, len(data), hashlib.sha256(data).hexdigest()] for name, data in files.items()]
        return {"digest": hashlib.sha256(repr(rows).encode()).hexdigest(), "files": rows}

    def ask(self, path: Path, *data_sets: NamedInputs, **fields: Any) -> JobReply:
        """Let the shared process serve a job."""
        dialogue, number = self.shared(), next(self._ids)
        self.send_job(dialogue, number, path, *data_sets, **fields)
        return self.answer(dialogue, number, len(data_sets) or 1, str(fields.get("scenario", "")))

    def send_job(
        self, dialogue: Dialogue, number: int, path: Path, *data_sets: NamedInputs, **fields: Any
    ) -> None:
        """Send a job to a process."""
        job = self.job(path, *data_sets, **fields)
        self.budgets[number] = budget_of(job, _PIECE_BYTES)
        dialogue.send(("job", number, job))

    def answer(self, dialogue: Dialogue, number: int, data_sets: int = 1, scenario: str = "") -> JobReply:
        """Receive all messages about a job, which must be running.

        Raise FaultError for another order or form.
        """
        phases: list[str] = []
        budget = self.budgets.get(number)
        while isinstance(message := dialogue.receive("a phase or a result"), PhaseEntered | PieceNeeded):
            if isinstance(message, PhaseEntered):
                _check_job(message.job, number)
                phases.append(message.phase)
                _count(budget, lambda left: left.enter(message.phase))
            else:
                _count(self.budgets.get(message.job), MessageBudget.need)
                self.give_piece(dialogue, message)
        if not isinstance(message, JobResult):
            raise FaultError("order", f"{_name(message)} came in place of the result")
        _check_job(message.job, number)
        done = dialogue.receive("done")
        if not isinstance(done, JobDone):
            raise FaultError("order", f"{_name(done)} came in place of done")
        _check_job(done.job, number)
        made = isinstance(message.result, Completed) and (message.result.made or message.result.declined)
        ran = None if made else self._ran(message.result, data_sets, scenario)
        return JobReply(phases=tuple(phases), result=message.result, after=done.after, ran=ran)

    def give_piece(self, dialogue: Dialogue, needed: PieceNeeded) -> None:
        """Answer a request for a piece of a file."""
        data = self.files.get(needed.name)
        if data is None or needed.offset > len(data):
            raise FaultError("upload", f"it asked for {needed.name} from {needed.offset} on, which is none")
        self.needs.append((needed.name, needed.offset))
        piece = data[needed.offset : needed.offset + _PIECE_BYTES]
        dialogue.send(("model", needed.job, needed.name, needed.offset, piece))

    def _ran(self, result: RunResult, data_sets: int, scenario: str) -> Ran | None:
        asked = ExpectedResult(
            data_sets=data_sets, outputs=tuple(result.names or ()), plays=scenario == GENERATE
        )
        try:
            outcome = from_result(result, self.tensors, played_by(scenario), asked)
        except ProtocolError as error:
            raise FaultError("value" if "malformed" in str(error) else "form", str(error)) from error
        return outcome if isinstance(outcome, Ran) else None


def floats(*values: float) -> Tensor:
    """Return a vector of float32."""
    return tensor(np.array(values, np.float32))


def _count(budget: MessageBudget | None, count: Callable[[MessageBudget], None]) -> None:
    try:
        if budget is not None:
            count(budget)
    except ProtocolError as error:
        raise FaultError("budget", str(error)) from error


def _check_job(found: int, expected: int) -> None:
    if found != expected:
        raise FaultError("order", f"a message is about job {found}, not {expected}")


def _unusable(message: Any, expected: str) -> FaultError:
    if isinstance(message, TargetUnavailable):
        return FaultError("refused", f"the target is unavailable: {message.cause}: {message.reason}")
    if isinstance(message, OptionRefused):
        return FaultError("refused", f"option {message.option} is refused: {message.reason}")
    return FaultError("order", f"{_name(message)} came in place of {expected}")


def _name(message: Any) -> str:
    return str(message.__struct_config__.tag)
