"""The sessions of a folder, run one after the other as if they were one: what one gives, a later one takes.

The harness says how they are chained; see ``harness.corpus.beside.session_chain``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.decoding.arrays import OnnxArray, array_of
from harness.agent.job_run import JobRun
from harness.agent.placement import placement
from harness.agent.safe_text import sendable
from harness.agent.session_target import CPU
from harness.agent.target_errors import UnsupportedError

_COUNTED = ("ep_nodes", "cpu_nodes", "partitions")
_BY_OPERATOR = ("ep_ops", "cpu_ops")
_BY_NAME = ("ep_named", "cpu_named")


class _Session:
    """One session of the folder, with its use and its first inputs.

    ``asked`` says whether it is the provider's; else the folder has it on the CPU.
    """

    def __init__(self, job_run: JobRun, stage: dict[str, Any], *, asked: bool) -> None:
        self.name = stage["name"]
        self.calls = {True: stage["prompt"], False: stage["step"]}
        self.emptied = stage["emptied"]
        self.asked = asked
        self.first: dict[str, Any] | None = None
        job = {**job_run.job, "model": stage["file"], "data_sets": []}
        self.run = JobRun(job_run.target, job, {"timings_ms": {}}, job_run.enter, job_run.manners)
        self.run.adjust = lambda settings: _with_memory(settings, stage["memory"])
        if asked:
            self.run.options = {**job_run.target.options, **_options(job_run, stage)}
            self.run.create()
        else:
            settings = job_run.target.settings(job)
            self.run.adjust(settings)
            made = job_run.target.ort.InferenceSession(stage["file"], settings, providers=[CPU])
            self.run.judge(made)

    def placed(self) -> dict[str, Any]:
        """Return which provider ran each of its nodes; none is counted where the folder wants the CPU."""
        if not self.asked:
            return {"ep_nodes": 0, "cpu_nodes": 0, "cpu_ops": {}}
        self.run.job["data_sets"] = [[(name, _wire(feed)) for name, feed in (self.first or {}).items()]]
        return placement(self.run, all_named=True)


class StagedRunner:
    """Runs the sessions of a folder; it is used as a ``Runner`` of the whole folder as one model.

    Raises:
        UnsupportedError: The folder lies on another machine.
    """

    def __init__(self, job_run: JobRun) -> None:
        stages = job_run.job["stages"]
        if not stages:
            raise UnsupportedError("the folder lies on the harness's machine, and this place cannot read it")
        generate = job_run.job["generate"]
        decoder = generate["decoder"]
        self.names = [decoder["logits"], *(pair["present"] for pair in decoder["cache"]), *generate["passed"]]
        self.pasts = [(pair["past"], pair["axis"]) for pair in decoder["cache"]]
        self.fixed = decoder["fixed"]
        chosen = any(_accelerators(stage) for stage in stages)
        self.sessions = []
        for stage in stages:
            job_run.enter("create")
            asked = bool(_accelerators(stage)) or not chosen or job_run.target.chain == [CPU]
            self.sessions.append(_Session(job_run, stage, asked=asked))
        self.once = _once(self.sessions)
        self.kept: dict[bytes, dict[str, Any]] = {}
        """Digest of what the prompt alone takes -> the values that it alone gives."""

    def judge_in(self, job_run: JobRun) -> None:
        """Make the last session that is the provider's the judged one, and this its runner."""
        asked = [one for one in self.sessions if one.asked] or self.sessions
        job_run.session, job_run.runner = asked[-1].run.session, self
        created = sum(one.run.result["timings_ms"].get("create", 0.0) for one in self.sessions)
        job_run.result["timings_ms"]["create"] = created
        job_run.result["providers"] = sendable(job_run.session.get_providers())

    def forget(self) -> None:
        """Drop the values of earlier prompts."""
        self.kept = {}

    def __call__(self, feeds: dict[str, Any]) -> list[Any]:
        """Run the folder once, and return its outputs in wire form."""
        return self.step(feeds)()

    def step(self, feeds: dict[str, Any], _options: Any = None) -> Callable[[], list[Any]]:
        """Return a function that runs the folder once; it returns the outputs in wire form."""
        return lambda: self._run(feeds)

    @staticmethod
    def in_wire_form(values: list[Any]) -> list[Any]:
        """Return the values that a step returned."""
        return values

    def _run(self, feeds: dict[str, Any]) -> list[Any]:
        is_prompt = all(_shape(feeds[name])[axis] == 0 for name, axis in self.pasts)
        key = _digest([feeds[name] for name in self.fixed])
        values = dict(feeds)
        wires: dict[str, Any] = {}
        if not is_prompt:
            for name, wire in self.kept[key].items():
                wires[name], values[name] = wire, array_of(wire).feed()
        for session in self.sessions:
            call = session.calls[is_prompt]
            if call is None:
                continue
            inputs = {own: values[value] for own, value in call["inputs"].items()}
            for own in () if is_prompt else session.emptied:
                inputs[own] = array_of(wires[call["inputs"][own]]).cut(0, 0, 0).feed()
            if session.first is None:
                session.first = inputs
            found = dict(zip(session.run.runner.names, session.run.runner(inputs)))
            for own, value in call["outputs"].items():
                wires[value], values[value] = found[own], array_of(found[own]).feed()
        if is_prompt:
            self.kept[key] = {name: wires[name] for name in self.once}
        return [wires[name] for name in self.names]

    def placed(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return which provider ran each node of the sessions that are the provider's, and of each session.

        Nodes have the names of the folder as one model.
        """
        whole: dict[str, Any] = {}
        each = []
        for session in self.sessions:
            if session.first is None:
                continue  # no prompt was long enough, or no later token came
            found = session.placed()
            named = {"name": session.name, "asked": session.asked}
            each.append({**named, **{key: found[key] for key in ("ep_nodes", "cpu_nodes", "cpu_ops")}})
            if session.asked and (session.calls[True] or not session.calls[False]):
                whole = _merged(whole, found, session.name)
            elif session.asked:
                whole = _merged(whole, {**found, **{key: [] for key in _BY_NAME}}, session.name)
        return whole, each


def _accelerators(stage: dict[str, Any]) -> list[str]:
    """Return the providers that a stage names, without the CPU."""
    return [name for name in stage["providers"] if name.lower() != "cpu"]


def _options(job_run: JobRun, stage: dict[str, Any]) -> dict[str, str]:
    """Return a stage's options for this target's provider, as the folder gives them."""
    own = job_run.target.chain[0].lower()
    return next((its for name, its in stage["providers"].items() if name.lower() + _SUFFIX == own), {})


_SUFFIX = "executionprovider"


def _with_memory(settings: Any, memory: dict[str, bool]) -> None:
    for name, value in memory.items():
        setattr(settings, name, value)


def _once(sessions: list[_Session]) -> list[str]:
    """Return the values that only the prompt gives, and that later tokens use."""
    later = [call for one in sessions for call in [one.calls[False]] if call]
    given = {value for call in later for value in call["outputs"].values()}
    first = [call for one in sessions for call in [one.calls[True]] if call]
    return [value for call in first for value in call["outputs"].values() if value not in given]


def _shape(feed: Any) -> Any:
    return feed.shape if isinstance(feed, np.ndarray) else feed.shape()


def _digest(feeds: list[Any]) -> bytes:
    digest = hashlib.sha256()
    for feed in feeds:
        array = array_of(_wire(feed))
        digest.update(repr((array.dtype, array.shape)).encode())
        digest.update(array.values.tobytes())
    return digest.digest()


def _wire(feed: Any) -> dict[str, Any]:
    """Return an input of a session in wire form."""
    if isinstance(feed, np.ndarray):
        return OnnxArray(str(feed.dtype), feed).wire()
    from harness.agent.wire import narrow_type, value_to_wire

    wire: dict[str, Any] = value_to_wire(feed, narrow_type(feed.data_type()))
    return wire


def _merged(whole: dict[str, Any], found: dict[str, Any], stage: str) -> dict[str, Any]:
    """Return the placement of several sessions; those before are ``whole``, which may be empty."""
    merged = dict(found)
    for key in _BY_NAME:
        named = [("%s/%s" % (stage, name), op_type) for name, op_type in found.get(key, [])]
        merged[key] = [*whole.get(key, []), *named]
    if not whole:
        return merged
    for key in _COUNTED:
        merged[key] = whole[key] + found[key]
    for key in _BY_OPERATOR:
        merged[key] = _sums(whole[key], found[key])
    merged["source"] = found["source"] if found["source"] == whole["source"] else "profile"
    if "providers" in found:
        merged["providers"] = _sums(whole["providers"], found["providers"])
        merged["chain_ops"] = {
            name: _sums(ops, found["chain_ops"][name]) for name, ops in whole["chain_ops"].items()
        }
    return merged


def _sums(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in [*one, *(set(other) - set(one))]}
