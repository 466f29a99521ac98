"""Memory that sessions share: part of the scenario ``buffers``.

Sessions may use the allocators of the process in place of their own: one of the CPU's memory that the
application registers, and of devices that of the plugin. What a session does with it is no matter of another.
"""

from __future__ import annotations

import functools
from typing import Any

from harness.agent.company import companions_of, opened
from harness.agent.furthest import Furthest
from harness.agent.job_run import JobRun
from harness.agent.safe_text import clean
from harness.agent.session_run import Runner

_KEY = "session.use_env_allocators"
_ALONE = "with allocators that sessions share"


class SharedAllocatorError(Exception):
    """A session cannot be made or run with the allocators of the process."""


def share_allocators(job_run: JobRun, furthest: Furthest) -> None:
    """Run the model with shared allocators: alone, beside each companion, and after that is closed.

    Raises:
        SharedAllocatorError: A session is not made, or does not run.
    """
    _register(job_run.target.ort)
    job = {**job_run.job, "entries": {**(job_run.job.get("entries") or {}), _KEY: "1"}}
    job_run.facts["shared_with"] = kinds = []
    try:
        job_run.enter("create")
        own = Runner(job_run.target.session(job_run.model, job, job_run.options, adjust=job_run.adjust))
        _compare(job_run, furthest, own, _ALONE)
        feeds = furthest.pairs[0][0]
        for companion in companions_of(job_run, feeds):
            other = opened(job_run, companion.model, job)
            job_run.begin_run()
            other(feeds)
            _compare(job_run, furthest, own, "with allocators shared with a model %s" % companion.what)
            del other
            closed = "after a session %s that shared its allocators was closed"
            _compare(job_run, furthest, own, closed % companion.what)
            kinds.append(companion.what)
    except Exception as error:
        raise SharedAllocatorError("%s: %s" % (_ALONE, clean(error))) from error


def _compare(job_run: JobRun, furthest: Furthest, own: Runner, where: str) -> None:
    for index, (feeds, _) in enumerate(furthest.pairs):
        job_run.begin_run()
        furthest.compare(index, own(feeds), where)


@functools.cache
def _register(ort: Any) -> None:
    """Register an allocator of the CPU's memory, once in this process: sessions use it only if told to."""
    native = ort.capi._pybind_state  # noqa: SLF001 - the only place of these types
    arena = native.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    memory = native.OrtMemoryInfo("Cpu", arena, 0, native.OrtMemType.DEFAULT)
    native.create_and_register_allocator(memory, native.OrtArenaCfg(0, -1, -1, -1))
