"""The agent: runs models inside a target's own process and reports what happened.

It is sent as source to the target's interpreter, so it depends on nothing of this package, only on the
standard library, numpy and whatever ``onnxruntime`` (>= 1.16) the target has; Python >= 3.9.

Messages are plain tuples over one line; see ``harness.agent.message``. From the harness: one configuration
dict, then jobs ``("job", id, job)`` until ``("stop",)``. To the harness:

* ``("imported",)`` once onnxruntime is there: what follows depends on the configuration;
* ``("phase", id, phase)`` before a phase, so that a death or a hang is placed; a job begins in
  ``create`` and its result ends in ``teardown`` without saying so, for each message has its price; scenarios
  that close a session before their result say so;
* ``("ready", fingerprint)``, or ``("unavailable", cause, reason, output, fingerprint)``, or
  ``("rejected", key, reason, output, fingerprint)`` where one provider option is refused;
* ``("need", id, name, offset)`` for a piece of a file of a job's model, where that travels; the answer is
  ``("model", id, name, offset, bytes)``, with None for bytes that are not to be had;
* ``("result", id, result)`` once outputs are known, then ``("done", id, after)`` once the session is gone:
  ``took_ms`` of all of the job and its ``teardown_ms`` on the clock, ``processor_ms`` of all threads,
  ``rss_mib`` where the system tells, and ``sick`` where it had better end.

The process serves one set of provider options: numeric state of some providers leaks from session to
session (QNN keeps the first ``soc_model``, CANN the first ``precision_mode``).
"""

from __future__ import annotations

import importlib
import os
import platform
import signal
import time
from typing import Any

from harness.agent.capture import Capture
from harness.agent.errors import OptionRejectedError, UnavailableError, UnfeedableError, UnsupportedError
from harness.agent.inbox import Inbox
from harness.agent.job_run import JobRun
from harness.agent.plain import plain
from harness.agent.runtime import describe_packages, describe_runtime, diagnose, import_onnxruntime
from harness.agent.system import PARENT, die_with, elapsed_ms, limit_memory, resident_mib
from harness.agent.target import Target
from harness.agent.tensor_files import TensorFiles
from harness.agent.text import clean, sendable


def main(channel: Any) -> None:
    """Serve one harness over ``channel`` until it says stop or goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness's to handle; it stops its agents
    die_with(os.environ.pop(PARENT, ""))
    capture = Capture()
    fingerprint: dict[str, Any] = {"python": platform.python_version(), "platform": platform.platform()}
    try:
        fingerprint.update(describe_packages())
        ort = import_onnxruntime()
        fingerprint.update(describe_runtime(ort))
        channel.send(("imported",))
        config = channel.receive()  # a spare process waits here until it is needed
        limit_memory(config.get("memory_limit_mb"))
        target = Target(ort, config, fingerprint)
        target.prove()
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
    capture.take()
    channel.send(sendable(("ready", fingerprint)))
    inbox = Inbox(channel)
    while True:
        try:
            message = inbox.next()
        except EOFError:
            return
        if message[0] == "stop":
            return
        if not serve(channel, target, capture, message[1], message[2]):
            return
        del message  # and with it the inputs, before the next job makes room for its own


def serve(channel: Any, target: Target, capture: Capture, job_id: int, job: dict[str, Any]) -> bool:
    """Serve one job: play it, send the result, then tear the session down.

    Returns:
        Whether this process is fit for another job. Some errors stay: after CUDA's error 700 every later
        call fails, and the models to come would be blamed for it.
    """
    began, processor_s = time.perf_counter(), time.process_time()
    result: dict[str, Any] = {"status": "ok", "phase": "create", "timings_ms": {}}

    def enter(phase: str) -> None:
        result["phase"] = phase
        channel.send(("phase", job_id, phase))

    job_run = JobRun(target, job, result, enter)
    target.files.begin()
    try:
        take_in(job, target.files)
        if "form" in job:
            from harness.agent.levels import graph_of

            result["graph"] = graph_of(target, job)
        play(job_run)
    except UnfeedableError as error:
        result.update(status="unfeedable", message=clean(error))
    except UnsupportedError as error:
        result.update(status="unsupported", message=clean(error))
    except MemoryError as error:
        result.update(status="error", kind="MemoryError", message=clean(error) or "out of memory")
    except Exception as error:  # noqa: BLE001 - whatever the provider raises is this cell's result
        # Where a model lies that came from elsewhere is nothing that anybody there knows.
        message = clean(error).replace(job.get("folder") or "\0", "")
        result.update(status="error", kind=clean(type(error).__name__), message=message)
    if result["status"] != "ok":
        target.files.discard()
    result["output"] = capture.take(keep=True)
    channel.send(("result", job_id, result))
    started = time.perf_counter()
    job_run.close()
    after: dict[str, Any] = {
        "teardown_ms": elapsed_ms(started),
        "took_ms": elapsed_ms(began),
        "processor_ms": round((time.process_time() - processor_s) * 1000, 4),
        "rss_mib": resident_mib(),
    }
    sick = target.sickness() if result["status"] == "error" else ""
    if sick:
        after["sick"] = sick
    capture.take()  # what a teardown prints must not pass for the next cell's words
    channel.send(("done", job_id, after))
    return not sick


def play(job_run: JobRun) -> None:
    """Run the model of a job as the job asks.

    Scenarios are found by their names: each is a module of ``harness.agent.scenarios``.

    Raises:
        LookupError: There is no such module.
    """
    job = job_run.job
    if job.get("evaluate"):
        module = "harness.agent.evaluate"
    elif "make" in job:
        module = "harness.agent.precision.make"
    else:
        if "latency" in job:
            from harness.agent.latency import Stopwatch

            job_run.stopwatch = Stopwatch(job["latency"])
        if "scenario" not in job:
            plain(job_run)
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


def take_in(job: dict[str, Any], files: TensorFiles) -> None:
    """Complete a job with what came beside its message.

    Raises:
        UnfeedableError: Something did not come.
    """
    if "trouble" in job:
        raise UnfeedableError(job["trouble"])
    for inputs in job["data_sets"]:
        for _, wire in inputs:
            files.receive(wire)
