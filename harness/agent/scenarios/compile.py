"""Scenario ``compile``: onnxruntime's ``ModelCompiler`` from and to everything, and where the result loads.

An installer compiles a model once, moves the result into a program's folder, and deletes the source. Each
compiled model is loaded by a fresh process, from another folder, with the source gone. Then: without the
provider, with compiling forbidden, damaged, and beside another compiled model with which it shares contexts.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import Any

from harness.agent.company import companions_of
from harness.agent.compatibility import STALE, USABLE, CompiledModelError, ask_compatibility
from harness.agent.compiled_model import contexts_in, nothing_compiled
from harness.agent.difference import difference
from harness.agent.fresh_process import FreshProcessError, serve_afresh
from harness.agent.furthest import TOLD, Furthest
from harness.agent.job_run import JobRun
from harness.agent.latency_runs import HostPeak
from harness.agent.onnx_bytes import stored_weights
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.session_run import Runner
from harness.agent.session_target import CPU
from harness.agent.system import elapsed_ms, scratch_folder
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

_SAME = "it loads, and computes the same"

_COMPATIBILITY_OF, _ASKED = "compatibility_of", "asked"
"""Settings of the scenario in a fresh process: the compiled model that it asks about, and when."""

_BESIDE_SESSION, _AFTER_SESSIONS = "beside a session", "after the last session is closed"

_DAMAGE = 64  # bytes
_MODEL, _COMPILED = "model.onnx", "compiled.onnx"


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
            figures = _compile(
                job_run, installed, source, sink, embedded=embedded, words=words, first=not told
            )
            path = os.path.join(installed, _COMPILED)
            if not contexts_in(path):
                raise nothing_compiled(job_run)
            figures["load_ms"] = _load(job_run, furthest, path, words)
            for name, figure in figures.items():
                told.setdefault(name, []).append(figure)
            if len(told["ways"]) == 1:
                job_run.facts["contexts"] = contexts_in(path)
        job_run.facts.update(told)
        _load_with_entries(job_run, furthest, path)
        job_run.facts["without_ep"] = _without_ep(job_run, path)
        job_run.facts["damaged"] = _damaged(job_run, furthest, path)
        _forbid(job_run)
        _share(job_run, furthest, scratch)
        _check_stale(job_run, furthest, path, _check_compatibility(job_run, path))
    furthest.conclude(job_run, "equal_to_plain")
    conclude(job_run)


def _compile(
    job_run: JobRun, folder: str, source: str, sink: str, *, embedded: bool, words: str, first: bool
) -> dict[str, Any]:
    """Compile a copy of the model beside ``folder``, move the result into it, and delete the copy.

    Returns:
        How long it took, and its size, by the name of the fact.
    """
    work = os.path.join(os.path.dirname(folder), "build")
    os.makedirs(work)
    model = _copy(job_run, work)
    path = os.path.join(work, "out", _COMPILED)
    os.makedirs(os.path.dirname(path))
    if source == "bytes" and _has_files(model):
        source = "file"  # such a model has to know its folder
    given = _content(model) if source == "bytes" else model
    job_run.enter("create")
    peak, began, processor_s = HostPeak(), time.perf_counter(), time.process_time()
    try:
        settings = job_run.target.compiling(job_run.job)
        compiler = job_run.target.ort.ModelCompiler(settings, given, embed_compiled_data_into_model=embedded)
        _write(compiler, sink, path)
    except Exception as error:
        if first:
            raise UnsupportedError("the provider compiles no model: %s" % clean(error)) from error
        raise CompiledModelError("compiling %s: %s" % (words, clean(error))) from error
    figures = {
        "ways": words,
        "compile_ms": elapsed_ms(began),
        "processor_ms": round((time.process_time() - processor_s) * 1000, 2),
        "peak_mib": peak.mib() or 0.0,
    }
    shutil.move(os.path.dirname(path), folder)
    shutil.rmtree(work)
    files = (os.path.join(folder, name) for name in os.listdir(folder))
    return {**figures, "compiled_bytes": sum(map(os.path.getsize, files))}


def _write(compiler: Any, sink: str, path: str) -> None:
    """Compile into a file, whatever the result goes to first."""
    if sink == "file":
        compiler.compile_to_file(path)
        return
    parts: list[bytes] = []
    if sink == "bytes" or not hasattr(compiler, "compile_to_stream"):
        parts.append(compiler.compile_to_bytes())
    else:
        compiler.compile_to_stream(lambda part: parts.append(bytes(part)))
    with open(path, "wb") as file:
        file.write(b"".join(parts))


def _load(job_run: JobRun, furthest: Furthest, path: str, words: str, **fields: Any) -> float:
    """Load and run a compiled model in a fresh process; return the milliseconds that its session took.

    Raises:
        CompiledModelError: It does not load, or does not run.
    """
    result = serve_afresh(job_run.target, _job(job_run, path, **fields), job_run.enter)
    if result["status"] != "ok":
        job_run.enter(result["phase"])  # where it failed, and not where its process ended
        message = clean(result["message"])
        raise CompiledModelError("compiled %s, moved, loaded by a fresh process: %s" % (words, message))
    for index, outputs in enumerate(result["outputs"]):
        furthest.compare(index, outputs, "in a model compiled %s" % words)
    return float(result["timings_ms"]["create"])


def _load_with_entries(job_run: JobRun, furthest: Furthest, path: str) -> None:
    """Load a fresh compiled model where compiling is forbidden, and where only the best is taken."""
    entries = {**(job_run.job.get("entries") or {}), **dict.fromkeys(_ENTRIES, "1")}
    _load(job_run, furthest, path, "before, with " + " and ".join(_ENTRIES), entries=entries)


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
        job = {**_job(job_run, path, data_sets=[]), "scenario": "compile", "scenario_settings": settings}
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
    content = bytearray(_content(path))
    middle = (max(content.find(b"ep_cache_context"), 0) + len(content)) // 2
    content[middle : middle + _DAMAGE] = bytes(byte ^ 0xFF for byte in content[middle : middle + _DAMAGE])
    return _loaded(job_run, furthest, path, content)


def _check_stale(job_run: JobRun, furthest: Furthest, path: str, described: list[str]) -> None:
    """Load a compiled model whose description names another version, and hold that against what it is called.

    Raises:
        CompiledModelError: It is called usable, and does not load, or computes something else.
    """
    content = _content(path)
    if not described or described[0].encode() not in content:
        return
    own, stale, called = described
    loaded = _loaded(job_run, furthest, path, content.replace(own.encode(), stale.encode()))
    job_run.facts[STALE] = "%s; %s" % (called, loaded)
    if called.startswith(USABLE) and loaded != _SAME:
        told = "a compiled model that names another version is called %s, and then: %s"
        raise CompiledModelError(told % (called, loaded))


def _loaded(job_run: JobRun, furthest: Furthest, path: str, content: bytes | bytearray) -> str:
    """Return what a fresh process makes of a compiled model with other contents."""
    changed = os.path.join(os.path.dirname(path), "changed.onnx")
    with open(changed, "wb") as file:
        file.write(content)
    try:
        result = serve_afresh(job_run.target, _job(job_run, changed), job_run.enter, dies_with_it=False)
    except FreshProcessError as error:
        return clean(error)
    if result["status"] != "ok":
        return "refused: " + clean(result["message"], 200)
    plain = [outputs for _, outputs in furthest.pairs]
    same = max(map(difference, plain, result["outputs"])) <= TOLD
    return _SAME if same else "it loads, and computes something else"


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
    if companion is None or _has_files(job_run.model):
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


def _job(job_run: JobRun, path: str, **fields: Any) -> dict[str, Any]:
    job = {key: value for key, value in job_run.job.items() if not key.startswith("scenario")}
    job_run.enter("create")
    return {**job, "model": path, **fields}


def _copy(job_run: JobRun, folder: str) -> str:
    """Return the path of a copy of the model, with its external data."""
    path = os.path.join(folder, _MODEL)
    given = job_run.model
    if isinstance(given, bytes):
        with open(path, "wb") as file:
            file.write(given)
        return path
    shutil.copyfile(given, path)
    home = os.path.dirname(os.path.abspath(given))
    for name in {weight.file for weight in stored_weights(_content(given))}:
        target = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.join(home, *name.split("/")), target)
    return path


def _has_files(model: str | bytes) -> bool:
    return bool(stored_weights(_content(model) if isinstance(model, str) else model))


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
