"""A job: one model in the agent's format, its files piece by piece, and the parts that an agent declines.

An agent on another machine keeps models by their content, and requests what it lacks; see
``harness.agent.agent``.
"""

import functools
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness import agent
from harness.core.records.cell import AXIS_DEFAULTS, SESSION_ENTRY
from harness.core.records.scenario import agent_module
from harness.corpus.case import Case
from harness.corpus.decoders.generation_case import GenerationSupport
from harness.corpus.derived.upcast import FLOAT64_BYTES
from harness.engine.answers.further import has_other_inputs
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.message_budget import MessageBudget, budget_of
from harness.engine.tasks.task import Question, QuestionKind
from harness.golden.trust import trusted_in_float64
from harness.plan.runs_entry import LatencySettings, RepeatSettings

FORM = "form"
"""An axis that no matrix has: the requested form of the graph; see ``harness.agent.level_graph``."""

THREADS = "intra_op_threads"
"""An axis that no matrix has: threads within an operator, 0 for onnxruntime's choice; 1 by default."""

CHUNK_BYTES = 8 << 20
"""Bytes of a file in one message, so that it does not occupy connection and memory for long."""

PATHS, TENSOR_FOLDERS = "paths", "tensor_folders"
"""Ways of sending models and tensors that an agent may decline; there is another way for both."""

OTHER, REPEAT_FEATURE = "other", "repeat"
"""Fields of a job that the harness leaves out if they are declined.

The record says that the check was not made.
"""


class JobDemands(msgspec.Struct, frozen=True, kw_only=True):
    """What a matrix demands of a job beyond one run.

    Attributes:
        scenario: Settings of the scenario among its axes.
        latency: How the time of its runs is measured; None if it is not.
        repeat: How often it is run; None for once.
        other: Whether it also runs with other inputs, where it can have some.
        generation: What the scenario ``generate`` plays; None in any other scenario.
        fixed: Symbolic dimension -> the size that the session fixes it to.
    """

    scenario: Mapping[str, Any] = {}
    latency: LatencySettings | None = None
    repeat: RepeatSettings | None = None
    other: bool = True
    generation: GenerationSupport | None = None
    fixed: Mapping[str, int] = {}


NO_DEMANDS = JobDemands()


def job(
    case: Case,
    asked: Question | Mapping[str, str],
    tensors: Tensors,
    demands: JobDemands = NO_DEMANDS,
    *,
    local: bool,
) -> dict[str, Any]:
    """Return one model in the agent's format.

    Args:
        case: The model and its inputs.
        asked: A question, or the axes of a cell that do not have their default values.
        tensors: Carries the inputs.
        demands: What the matrix demands.
        local: Whether the agent can read the model's path; an agent elsewhere requests what it lacks.

    Raises:
        NoRoomError: There is no room for the inputs.
        OSError: The model's file can no longer be read.
    """
    question = asked if isinstance(asked, Question) else None
    axes = asked.axes() if isinstance(asked, Question) else asked
    settings = AXIS_DEFAULTS | dict(axes)
    module = agent_module(settings["scenario"])
    entries = {
        axis.removeprefix(SESSION_ENTRY): value
        for axis, value in axes.items()
        if axis.startswith(SESSION_ENTRY)
    }
    latency, repeat, generation = demands.latency, demands.repeat, demands.generation
    played = {"scenario": module, "scenario_settings": dict(demands.scenario)}
    tensors.begin()
    try:
        return {
            "model": str(case.model_path) if local else _manifest(case),
            "data_sets": [
                [(name, tensors.put(value)) for name, value in data_set.inputs] for data_set in case.data_sets
            ],
            "graph_optimization": settings["graph_optimization"],
            "execution_mode": settings["execution_mode"],
            **(played if module else {}),
            **({} if generation is None else {"generate": _played(generation, demands.scenario)}),
            **({"stages": _stages(case, local=local)} if generation is not None and case.chain else {}),
            **({} if latency is None else {"latency": msgspec.to_builtins(latency)}),
            **({} if repeat is None else {"repeat": msgspec.to_builtins(repeat)}),
            **({} if question is None else question.job_fields()),
            **(
                _in_float64(case)
                if question is not None and question.kind is QuestionKind.FLOAT64_EVALUATED
                else {}
            ),
            **({"other": True} if demands.other and _has_other_inputs(case, settings, question) else {}),
            **({"form": axes[FORM]} if FORM in axes else {}),
            **({THREADS: int(axes[THREADS])} if THREADS in axes else {}),
            **({"entries": entries} if entries else {}),
            **({"fixed": dict(demands.fixed)} if demands.fixed else {}),
            **({"package": case.package.job()} if case.package is not None and local else {}),
        }
    except BaseException:
        tensors.discard()
        raise


def _in_float64(case: Case) -> dict[str, Any]:
    """Return the field of a job that requests float64, node by node."""
    asked = {"trusted": trusted_in_float64(case.facts.operators), "bytes": FLOAT64_BYTES}
    # Only the harness's own interpreter gets this: it reads its modules here, and no other agent carries
    # them.
    return {"evaluate": {**asked, "agent": str(Path(agent.__file__).parent)}}


def _played(generation: GenerationSupport, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {**msgspec.to_builtins(generation), "new_tokens": settings.get("new_tokens", 0)}


def _stages(case: Case, *, local: bool) -> list[dict[str, Any]]:
    """Return the sessions of a folder; none if the agent cannot read its path."""
    assert case.chain is not None  # noqa: S101 - the caller has seen it
    return [msgspec.to_builtins(one, enc_hook=str) for one in (case.chain.stages if local else ())]


def piece(case: Case, name: str, offset: int) -> bytes | None:
    """Return the bytes of one of a model's files from ``offset`` on, at most ``CHUNK_BYTES``.

    Returns:
        None if the file can no longer be read, or is not one of the model's.
    """
    path = _files(case).get(name)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)
    except OSError:
        return None


def budget(message: Mapping[str, Any]) -> MessageBudget:
    """Return how many messages about a job may come; ``message`` is the job in the agent's format."""
    return budget_of(message, CHUNK_BYTES)


def declined(declines: Mapping[str, str], job: Mapping[str, Any]) -> str:
    """Return why an agent does not do a job; empty if it does.

    ``declines`` maps what it declines to the reason; see ``docs/reference/agent-protocol.md``.
    """
    if not declines:  # nearly always
        return ""
    return next((f"the agent declines {one}: {declines[one]}" for one in _asked(job) if one in declines), "")


def _has_other_inputs(case: Case, axes: Mapping[str, str], question: Question | None) -> bool:
    """Return whether a job can run other inputs between two runs of its only data set."""
    plainly = question is None or (question.kind is QuestionKind.ANSWER and not question.others)
    return plainly and has_other_inputs(case, axes["scenario"])


def _manifest(case: Case) -> dict[str, Any]:
    """Return the digest (hex) of a model, and ``[name, bytes, SHA-256 in hex]`` of each of its files.

    The model's own file is first. Names are relative to its folder, with forward slashes.
    """
    files = []
    for name, path in _files(case).items():
        state = path.stat()
        files.append([name, *_content(path, state.st_size, state.st_mtime_ns)])
    return {"digest": hashlib.sha256(repr(files).encode()).hexdigest(), "files": files}


def _files(case: Case) -> dict[str, Path]:
    home = case.model_path.parent
    return {path.relative_to(home).as_posix(): path for path in (case.model_path, *case.external)}


@functools.lru_cache(maxsize=4096)
def _content(path: Path, nbytes: int, _mtime_ns: int) -> tuple[int, str]:
    """Return size and digest of a file; cached, because one model goes to the same machine many times."""
    with path.open("rb") as file:
        return nbytes, hashlib.file_digest(file, "sha256").hexdigest()


def _asked(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a job asks for, in the words in which an agent declines it."""
    yield from job
    yield from (f"{key}:{value}" for key, value in job.items() if isinstance(value, str))
    for data_set in job["data_sets"]:
        for _, wire in data_set:
            yield from _needed(wire)


def _needed(wire: Any) -> Iterator[str]:
    """Yield what a value in wire form needs."""
    if wire is None:
        yield "value:optional"
    elif "sequence" in wire:
        yield "value:sequence"
        for item in wire["sequence"]:
            yield from _needed(item)
    elif "keys" in wire:
        yield "value:map"
        for part in (wire["keys"], wire["values"]):
            yield from _needed(part)
    else:
        yield f"dtype:{wire['dtype']}"
