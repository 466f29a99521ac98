"""The agent: runs models inside a target's own process and reports what happened.

It is sent as source to the target's interpreter. So it depends only on the standard library, numpy and the
target's ``onnxruntime`` (>= 1.16), and runs on Python >= 3.9.

``docs/reference/agent-protocol.md`` specifies how it talks to the harness. A job begins in phase ``create``,
and its result begins ``teardown``, without a message, which would cost time. Scenarios that close a session
before their result do send such a message.

The process serves one set of provider options, because some providers keep numeric state from session to
session (QNN keeps the first ``soc_model``, CANN the first ``precision_mode``).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import platform
import signal
import time
from typing import Any

from harness.agent.capture import Capture
from harness.agent.declared_kernels import declared_kernels
from harness.agent.identity import FileDigests, describe_build, drivers, mapped
from harness.agent.inbox import Inbox
from harness.agent.installed_packages import describe_packages
from harness.agent.job_run import JobRun
from harness.agent.manners import Manners
from harness.agent.native_stack.start import start_if_asked
from harness.agent.ort_runtime import describe_runtime, diagnose, import_onnxruntime
from harness.agent.plain import run_plain
from harness.agent.safe_text import clean, finite, sendable
from harness.agent.session_target import CPU, SessionTarget
from harness.agent.sources import add_later
from harness.agent.system import PARENT, die_with, elapsed_ms, limit_memory, resident_mib
from harness.agent.target_errors import (
    ApiMissingError,
    OptionRejectedError,
    UnavailableError,
    UnfeedableError,
    UnsupportedError,
)
from harness.agent.tensor_files import TensorFiles

FIELDS = {
    *("model", "data_sets", "graph_optimization", "execution_mode", "scenario", "scenario_settings", "other"),
    "generate",
    *("repeat", "latency", "intra_op_threads", "entries", "make", "evaluate", "form", "fixed", "package"),
    "stages",
    *("folder", "trouble"),  # the inbox adds these
}
"""The fields that a job may have."""


def main(channel: Any) -> None:
    """Serve one harness over ``channel``, a ``Stream``, until it sends ``stop`` or the stream ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the harness stops its agents
    die_with(os.environ.pop(PARENT, ""))
    capture = Capture()
    # Without this, platform() starts ``uname -p`` for a word that it leaves out.
    vars(platform.uname()).setdefault("processor", "")
    fingerprint: dict[str, Any] = {"python": platform.python_version(), "platform": platform.platform()}
    native_stack = start_if_asked()
    if native_stack:
        fingerprint["native_stack"] = native_stack
    manners = Manners()
    if manners.not_watched:
        fingerprint["not_watched"] = manners.not_watched
    try:
        fingerprint.update(describe_packages())
        ort = import_onnxruntime()
        fingerprint.update(describe_runtime(ort))
        channel.send(("imported",))
        try:
            _, config = channel.receive()  # a spare process waits here until it is needed
        except EOFError:
            return
        limit_memory(config.get("memory_limit_mb"))
        target = _open_target(channel, ort, config, fingerprint, manners)
    except UnavailableError as error:
        printed = capture.take()
        owners = fingerprint.get("owners", [])
        cause, reason = diagnose(error.args[0], error.args[1], printed, owners)
        channel.send(sendable(("unavailable", cause, reason, printed, fingerprint)))
        return
    except OptionRejectedError as error:
        key, reason = error.args
        channel.send(sendable(("rejected", key, reason, capture.take(), fingerprint)))
        return
    manners.settle()
    capture.take()
    channel.send(sendable(("ready", fingerprint)))
    gc.freeze()  # modules stay until the end; visiting them again and again is a twentieth of the work
    inbox = Inbox(channel)
    try:
        while True:
            try:
                message = inbox.next()
            except EOFError:
                return
            if message[0] == "stop":
                channel.finish()  # the harness monitors this end
                _leave(channel, target)
                return
            if not _serve(channel, target, capture, manners, message[1], message[2]):
                return
            del message  # frees the inputs before the next job needs memory
    finally:
        manners.end_children()


def _open_target(
    channel: Any, ort: Any, config: dict[str, Any], fingerprint: dict[str, Any], manners: Manners
) -> SessionTarget:
    """Return the target of a configuration, after its first session; errors are those of ``SessionTarget``.

    Drivers are part of the fingerprint if it may use one; so are the loaded files, if they are requested.
    """
    before = mapped() if "digests" in config else None
    target = SessionTarget(ort, config, fingerprint)
    manners.allow(target.entries)
    if target.chain != [CPU] and (found := drivers()):
        fingerprint["drivers"] = found
    target.check_options()
    if target.registered:
        kernels = declared_kernels(target.registered)
        if kernels:
            fingerprint["kernels"] = kernels
    if "digests" in config:
        digests = FileDigests(config["digests"])
        describe_build(ort, fingerprint, before, digests)
        config["digests"] = digests.used  # for a process that this one starts
        channel.send(("digests", digests.used))
    return target


def _leave(channel: Any, target: SessionTarget) -> None:
    """Release the last session and unload the plugin library; announce each first: either may crash or hang.

    The rest is the exit of the interpreter.
    """
    with contextlib.suppress(OSError):  # the harness may be gone
        channel.send(("leaving", "teardown"))
    target.release()
    with contextlib.suppress(OSError):
        channel.send(("leaving", "unload"))
    target.unload()
    with contextlib.suppress(OSError):
        channel.send(("leaving", "exit"))


def _serve(
    channel: Any, target: SessionTarget, capture: Capture, manners: Manners, job_id: int, job: dict[str, Any]
) -> bool:
    """Run one job, send the result, and close the session.

    Returns:
        Return whether this process is fit for another job. Some errors persist: after CUDA's error 700 every
        later call fails, and the next models would be blamed for it. So do limits that a model's session
        lowers.
    """
    began, processor_s = time.perf_counter(), time.process_time()
    result: dict[str, Any] = {"status": "ok", "phase": "create", "timings_ms": {}}

    def enter(phase: str) -> None:
        result["phase"] = phase
        channel.send(("phase", job_id, phase))

    job_run = JobRun(target, job, result, enter, manners)
    target.files.begin()
    manners.allow(job.get("entries") or {})
    try:
        check_fields(job)
        _receive_inputs(job, target.files)
        if "form" in job:
            from harness.agent.level_graph import graph_of

            result["graph"] = graph_of(target, job)
        _play(job_run)
    except UnfeedableError as error:
        result.update(status="unfeedable", message=clean(error))
    except UnsupportedError as error:
        result.update(status="unsupported", message=clean(error))
        if isinstance(error, ApiMissingError):
            result["cause"] = "not_in_runtime"
    except MemoryError as error:
        result.update(status="error", kind="MemoryError", message=clean(error) or "out of memory")
    except Exception as error:  # noqa: BLE001 - any error of the provider is this cell's result
        # The agent's own folder of received models means nothing to a reader elsewhere.
        message = clean(error).replace(job.get("folder") or "\0", "")
        result.update(status="error", kind=clean(type(error).__name__), message=message)
    if result["status"] != "ok":
        target.files.discard()
    manners.look("run")
    result["output"] = capture.take(keep=True)
    manners.printed(capture.nbytes)
    result.update({key: finite(result[key]) for key in ("scenario", "generated") if key in result})
    channel.send(("result", job_id, result))
    started = time.perf_counter()
    job_run.close()
    after: dict[str, Any] = {
        "teardown_ms": elapsed_ms(started),
        "took_ms": elapsed_ms(began),
        "processor_ms": round((time.process_time() - processor_s) * 1000, 4),
        "rss_mib": resident_mib(),
    }
    found, stays = manners.close(job, result)
    after.update(found)
    failed = result["status"] == "error" or "other_error" in result
    sick = stays or (target.sickness() if failed else "")
    if sick:
        after["sick"] = sick
    capture.take()  # what a teardown prints does not belong to the next cell
    channel.send(("done", job_id, after))
    return not sick


def check_fields(job: dict[str, Any]) -> None:
    """Refuse a job that asks for something unknown to this agent, instead of ignoring it.

    Raises:
        UnsupportedError: It has an unknown field.
    """
    unknown = sorted(job.keys() - FIELDS)
    if unknown:
        raise UnsupportedError(
            "this agent does not know the field %r of a job" % clean(unknown[0], limit=100)
        )


def _receive_inputs(job: dict[str, Any], files: TensorFiles) -> None:
    """Add the data of large inputs to a job; UnfeedableError if one, or the model, did not arrive."""
    if "trouble" in job:
        raise UnfeedableError(job["trouble"])
    for inputs in job["data_sets"]:
        for _, wire in inputs:
            files.receive(wire)


def _play(job_run: JobRun) -> None:
    """Run the model as the job asks.

    The module with the scenario's name plays it, else this is a LookupError.
    """
    job = job_run.job
    if job.get("evaluate"):
        module = "harness.agent.evaluate"
        if isinstance(job["evaluate"], dict):
            add_later(job["evaluate"]["agent"])
            module = "harness.agent.float64.float64_job"
    elif "make" in job:
        module = "harness.agent.precision.model_conversion"
    else:
        if "latency" in job:
            from harness.agent.latency_runs import Stopwatch

            job_run.stopwatch = Stopwatch(job["latency"])
        if "scenario" not in job:
            run_plain(job_run)
            return
        module = "harness.agent.scenarios." + job["scenario"]
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise LookupError(
            "unknown scenario %r: the agent has no module %s" % (job["scenario"], module)
        ) from None
    found.play(job_run)
