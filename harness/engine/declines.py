"""What an agent declines: whether a job asks for it, and what a job can do without."""

from collections.abc import Iterator, Mapping
from typing import Any

PATHS, TENSOR_FOLDERS = "paths", "tensor_folders"
"""Declined ways of sending models and tensors; both have another one."""

OTHER = "other"
"""Declined field of a job that the harness leaves out; nothing is judged by its absence."""


def declined(declines: Mapping[str, str], job: Mapping[str, Any]) -> str:
    """Return why an agent does not do a job; empty if it does.

    Args:
        declines: What it declines -> why; see ``docs/reference/agent-protocol.md``.
        job: The job, as the agent takes it.
    """
    if not declines:  # nearly always
        return ""
    return next((f"the agent declines {one}: {declines[one]}" for one in _asked(job) if one in declines), "")


def _asked(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a job asks for, as it is called if it is declined."""
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
