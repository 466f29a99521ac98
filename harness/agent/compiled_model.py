"""A compiled model: a file with ``EPContext`` nodes, as onnxruntime's EP context design describes it."""

from __future__ import annotations

import mmap

from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.target_errors import UnsupportedError

_NODE = b"\x22\x09EPContext"  # the field op_type of a NodeProto, 9 bytes


def contexts_in(path: str) -> int:
    """Return the number of EPContext nodes in a model; 0 if there is no such file."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            count, at = 0, content.find(_NODE)
            while at >= 0:
                count, at = count + 1, content.find(_NODE, at + len(_NODE))
            return count
    except (OSError, ValueError):  # ValueError: it is empty
        return 0


def nothing_compiled(job_run: JobRun) -> UnsupportedError:
    """Return the error for a provider that has compiled nothing, with its part of the judged session."""
    conclude(job_run)
    placed = job_run.result["placement"]
    return UnsupportedError(
        "no EPContext node was written: the provider runs %d of %d nodes, and compiles none"
        % (placed["ep_nodes"], placed["ep_nodes"] + placed["cpu_nodes"])
    )
