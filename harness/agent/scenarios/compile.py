"""Scenario ``compile``: onnxruntime's ``ModelCompiler`` from and to everything, and where the result loads.

An installer compiles a model once, moves the result into a program's folder, and deletes the source. Each
compiled model is loaded by a fresh process, from another folder, with the source gone. Then: without the
provider, with compiling forbidden, damaged, and beside another compiled model with which it shares contexts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from harness.agent.company import companions_of
from harness.agent.compatibility import STALE, USABLE, ask_compatibility
from harness.agent.compiled_model import (
    COMPILED_NAME,
    LOADS_SAME,
    CompiledModelError,
    became,
    compile_copy,
    compiled_job,
    contexts_in,
    has_files,
    load_compiled,
    nothing_compiled,
    whole_file,
)
from harness.agent.context_callbacks import CONTEXT_DATA, play_callbacks, run_from_callback
from harness.agent.fresh_process import FreshProcessError, serve_afresh
from harness.agent.furthest import Furthest
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.session_run import Runner
from harness.agent.session_target import CPU
from harness.agent.system import scratch_folder
from harness.agent.target_errors import ApiMissingError, UnsupportedError

_WAYS = (
    ("file", "file", False),
    ("file", "file", True),
    ("bytes", "file", True),
    ("file", "bytes", True),
    ("file", "callback", True),
)
"""What is compiled, where the result goes, and whether it has the compiled parts in itself.

A result without a path has no place for a file beside it.
"""

_ENTRIES = ("session.disable_model_compile", "session.fail_on_suboptimal_compiled_model")
"""Session entries with which a fresh compiled model has to load, and run."""

_COMPATIBILITY_OF, _ASKED = "compatibility_of", "asked"
"""Settings of the scenario in a fresh process: the compiled model that it asks about, and when."""

_BESIDE_SESSION, _AFTER_SESSIONS = "beside a session", "after the last session is closed"

_DAMAGE = 64  # bytes


def play(job_run: JobRun) -> None:
    """Compile in each way, and load each result in a fresh process; judge the furthest results.

    Raises:
        UnsupportedError: This onnxruntime has no ``ModelCompiler``, or the provider compiles nothing.
        CompiledModelError: A result does not load, or is described wrongly.
    """
    ort = job_run.target.ort
    settings = job_run.job.get("scenario_settings", {})
    if _COMPATIBILITY_OF in settings:  # in a fresh process
        if settings[_ASKED] == _AFTER_SESSIONS:
            job_run.target.release()
        ask_compatibility(job_run, settings[_COMPATIBILITY_OF])
        job_run.result["outputs"] = []
        return
    if CONTEXT_DATA in settings:  # in another one
        run_from_callback(job_run, settings)
        return
    if not hasattr(ort, "ModelCompiler"):
        reason = "onnxruntime %s has no ModelCompiler in Python"
        raise ApiMissingError(reason % clean(ort.__version__))
    job_run.create()
    furthest = Furthest(job_run, [job_run.run(inputs) for inputs in job_run.job["data_sets"]])
    told: dict[str, list[Any]] = {}
    with scratch_folder() as scratch:
        for source, sink, embedded in _WAYS:
            words = "from %s to %s, embed_mode %d" % (source, sink, embedded)
            installed = os.path.join(scratch, "%d" % len(told.get("ways", ())), "installed")
            try:
                figures = compile_copy(job_run, installed, source, sink, embedded=embedded, words=words)
            except CompiledModelError as error:
                if told:
                    raise
                reason = "the provider compiles no model: %s" % clean(error.__cause__)
                raise UnsupportedError(reason) from error
            path = os.path.join(installed, COMPILED_NAME)
            if not contexts_in(path):
                raise nothing_compiled(job_run)
            figures["load_ms"] = float(load_compiled(job_run, furthest, path, words)["timings_ms"]["create"])
            _tell(told, figures)
            if len(told["ways"]) == 1:
                job_run.facts["contexts"] = contexts_in(path)
        job_run.facts.update(told)  # the same lists: what is added to them is told, too
        _tell(told, play_callbacks(job_run, furthest, os.path.join(scratch, "callbacks")))
        _load_with_entries(job_run, furthest, path)
        job_run.facts["without_ep"] = _without_ep(job_run, path)
        job_run.facts["damaged"] = _damaged(job_run, furthest, path)
        _forbid(job_run)
        _share(job_run, furthest, scratch)
        _check_stale(job_run, furthest, path, _check_compatibility(job_run, path))
    furthest.conclude(job_run, "equal_to_plain")
    conclude(job_run)


def _tell(told: dict[str, list[Any]], figures: dict[str, Any]) -> None:
    """Add the figures of a way to those of the ways before."""
    for name, figure in figures.items():
        told.setdefault(name, []).append(figure)


def _load_with_entries(job_run: JobRun, furthest: Furthest, path: str) -> None:
    """Load a fresh compiled model where compiling is forbidden, and where only the best is taken."""
    entries = {**(job_run.job.get("entries") or {}), **dict.fromkeys(_ENTRIES, "1")}
    load_compiled(job_run, furthest, path, "before, with " + " and ".join(_ENTRIES), entries=entries)


def _without_ep(job_run: JobRun, path: str) -> str:
    """Return what onnxruntime says of a compiled model if its provider is not there."""
    try:
        settings = job_run.target.settings(job_run.job)
        job_run.target.ort.InferenceSession(path, settings, providers=[CPU])
    except Exception as error:  # noqa: BLE001 - the text is a fact
        return clean(error, 300)
    return "it loads"


def _check_compatibility(job_run: JobRun, path: str) -> list[str]:
    """Let a fresh process ask what is said of a compiled model: some providers crash there.

    Returns:
        The description of the model, that of another version, and what this one is called; or nothing.

    Raises:
        CompiledModelError: It dies, this model is called unusable, or a foreign one is called optimal.
    """
    stale: list[str] = []
    for circumstances in (_BESIDE_SESSION, _AFTER_SESSIONS):
        settings = {_COMPATIBILITY_OF: path, _ASKED: circumstances}
        job = compiled_job(job_run, path, data_sets=[], scenario="compile", scenario_settings=settings)
        question = "asking whether a compiled model fits the device, %s" % circumstances
        try:
            result = serve_afresh(job_run.target, job, job_run.enter, dies_with_it=False)
        except FreshProcessError as error:
            raise CompiledModelError("%s: %s" % (question, clean(error))) from error
        facts = result.get("scenario", {})
        stale = facts.pop(STALE, [])
        job_run.facts.update(facts)
        if result["status"] != "ok":
            raise CompiledModelError("%s: %s" % (question, clean(result["message"])))
    return stale


def _damaged(job_run: JobRun, furthest: Furthest, path: str) -> str:
    """Return what a fresh process makes of a compiled model with 64 changed bytes amid its compiled part."""
    content = bytearray(whole_file(path))
    middle = (max(content.find(b"ep_cache_context"), 0) + len(content)) // 2
    content[middle : middle + _DAMAGE] = bytes(byte ^ 0xFF for byte in content[middle : middle + _DAMAGE])
    return _loaded(job_run, furthest, path, content)


def _check_stale(job_run: JobRun, furthest: Furthest, path: str, described: list[str]) -> None:
    """Load a compiled model whose description names another version, and hold that against what it is called.

    Raises:
        CompiledModelError: It is called usable, and does not load, or computes something else.
    """
    content = whole_file(path)
    if not described or described[0].encode() not in content:
        return
    own, stale, called = described
    loaded = _loaded(job_run, furthest, path, content.replace(own.encode(), stale.encode()))
    job_run.facts[STALE] = "%s; %s" % (called, loaded)
    if called.startswith(USABLE) and loaded != LOADS_SAME:
        told = "a compiled model that names another version is called %s, and then: %s"
        raise CompiledModelError(told % (called, loaded))


def _loaded(job_run: JobRun, furthest: Furthest, path: str, content: bytes | bytearray) -> str:
    """Return what a fresh process makes of a compiled model with other contents."""
    changed = os.path.join(os.path.dirname(path), "changed.onnx")
    with open(changed, "wb") as file:
        file.write(content)
    return became(job_run, furthest, changed)


def _forbid(job_run: JobRun) -> None:
    """Note what becomes of the model itself where compiling is forbidden."""
    try:
        job_run.target.session(
            job_run.model, job_run.job, adjust=lambda it: it.add_session_config_entry(_ENTRIES[0], "1")
        )
    except Exception as error:  # noqa: BLE001 - the text is a fact
        job_run.facts["compiling_forbidden"] = "refused: " + clean(error, 200)
    else:
        job_run.facts["compiling_forbidden"] = "the provider takes nodes anyway"


def _share(job_run: JobRun, furthest: Furthest, scratch: str) -> None:
    """Compile the model and a companion with shared contexts, and load the two in both orders."""
    companion = next(iter(companions_of(job_run, furthest.pairs[0][0])), None)
    if companion is None or has_files(job_run.model):
        return
    folder = os.path.join(scratch, "shared")
    os.makedirs(folder)
    own, other = (os.path.join(folder, name + "_ctx.onnx") for name in ("own", "other"))
    models = ((own, job_run.model, False), (other, companion.model, True))
    try:
        for path, model, last in models:
            job_run.enter("create")
            job_run.target.session(model, job_run.job, adjust=_sharing(path, last=last))
    except Exception as error:  # noqa: BLE001 - the text is a fact
        job_run.facts["shared"] = "refused: " + clean(error, 200)
        return
    if not (contexts_in(own) and contexts_in(other)):
        job_run.facts["shared"] = "nothing was compiled"
        return
    failures = {}
    for place, order in (("first", (own, other)), ("second", (other, own))):
        words = "with contexts shared with another model, loaded %s" % place
        try:
            runners = {}
            for path in order:
                job_run.enter("create")
                session = job_run.target.session(path, job_run.job, adjust=_sharing("", last=False))
                runners[path] = Runner(session)
            for index, (feeds, _) in enumerate(furthest.pairs):
                job_run.begin_run()
                furthest.compare(index, runners[own](feeds), words)
        except Exception as error:  # noqa: BLE001 - the text is a fact, or the cell's result
            failures[words] = clean(error, 200)
    if len(failures) == 1:
        raise CompiledModelError("%s, and not in the other order: %s" % next(iter(failures.items())))
    loaded = "loaded in both orders"
    job_run.facts["shared"] = "refused: %s" % next(iter(failures.values())) if failures else loaded


def _sharing(path: str, *, last: bool) -> Callable[[Any], None]:
    """Return what makes a session share contexts, and write them to a path if there is one."""

    def adjust(settings: Any) -> None:
        settings.add_session_config_entry("ep.share_ep_contexts", "1")
        if path:
            for key, value in (("enable", "1"), ("embed_mode", "0"), ("file_path", path)):
                settings.add_session_config_entry("ep.context_" + key, value)
        if last:
            settings.add_session_config_entry("ep.stop_share_ep_contexts", "1")

    return adjust
