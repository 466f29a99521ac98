"""``--shard auto``: which share a machine has, from the variables of whatever started several of them."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.core.text.errors import UsageError

WHERE = "--shard auto"

COMPLETIONS = "JOB_COMPLETIONS"
"""Kubernetes gives a pod its index but not the number of pods: the manifest has to set this variable."""


class Counter(msgspec.Struct, frozen=True, kw_only=True):
    """Two variables that number the machines of one job.

    Attributes:
        first: The lowest number; or the variable that has it.
        step: The variable with the difference between two numbers; empty for 1.
        last: The variable with the highest number; empty if it follows from the others.
    """

    system: str
    index: str
    count: str
    first: int | str
    step: str = ""
    last: str = ""


COUNTERS = (
    Counter(
        system="Slurm",
        index="SLURM_ARRAY_TASK_ID",
        count="SLURM_ARRAY_TASK_COUNT",
        first="SLURM_ARRAY_TASK_MIN",
        step="SLURM_ARRAY_TASK_STEP",
        last="SLURM_ARRAY_TASK_MAX",
    ),
    Counter(system="Kubernetes", index="JOB_COMPLETION_INDEX", count=COMPLETIONS, first=0),
    Counter(system="GitLab", index="CI_NODE_INDEX", count="CI_NODE_TOTAL", first=1),
    Counter(
        system="Buildkite",
        index="BUILDKITE_PARALLEL_JOB",
        count="BUILDKITE_PARALLEL_JOB_COUNT",
        first=0,
    ),
    Counter(system="CircleCI", index="CIRCLE_NODE_INDEX", count="CIRCLE_NODE_TOTAL", first=0),
    Counter(
        system="Azure Pipelines",
        index="SYSTEM_JOBPOSITIONINPHASE",
        count="SYSTEM_TOTALJOBSINPHASE",
        first=1,
    ),
)
"""Systems that start several machines for one job.

Sources, in this order: sbatch(1), "output environment variables";
https://kubernetes.io/docs/tasks/job/indexed-parallel-processing-static/;
https://docs.gitlab.com/ci/variables/predefined_variables/;
https://buildkite.com/docs/pipelines/configure/environment-variables;
https://circleci.com/docs/reference/variables/;
https://learn.microsoft.com/azure/devops/pipelines/build/variables.
"""


def auto_shard(environment: Mapping[str, str], counters: Sequence[Counter] = COUNTERS) -> tuple[int, int]:
    """Return the number of this machine's share, from 1, and the number of shares.

    A job inside another one, such as a Slurm array that GitLab starts, has the variables of both; a counter
    of a single machine divides nothing.

    Raises:
        UsageError: No variables are set, some are missing or have invalid values, or two systems disagree.
    """
    found = {counter.system: _share(counter, environment) for counter in _present(environment, counters)}
    if not found:
        names = ", ".join(f"{counter.index} ({counter.system})" for counter in counters)
        raise UsageError.at(WHERE, f"none of these variables is set: {names}", "give --shard I/N")
    divided = {system: share for system, share in found.items() if share[1] > 1}
    if len(set(divided.values())) > 1:
        told = ", ".join(f"{system} {index}/{count}" for system, (index, count) in divided.items())
        raise UsageError.at(WHERE, f"the variables disagree: {told}", "give --shard I/N, or unset some")
    return next(iter(divided.values()), (1, 1))


def _present(environment: Mapping[str, str], counters: Sequence[Counter]) -> Iterator[Counter]:
    for counter in counters:
        # GitLab always sets the count, but the index only for several machines.
        if counter.index in environment or environment.get(counter.count, "1") != "1":
            yield counter


def _share(counter: Counter, environment: Mapping[str, str]) -> tuple[int, int]:
    count = _number(counter, counter.count, environment)
    if count == 1 and counter.index not in environment:
        return 1, 1
    number = _number(counter, counter.index, environment)
    first = counter.first
    lowest = first if isinstance(first, int) else _number(counter, first, environment)
    step = _number(counter, counter.step, environment) if counter.step else 1
    last = _number(counter, counter.last, environment) if counter.last else lowest + (count - 1) * step
    steps, rest = divmod(number - lowest, step) if step else (0, 1)
    if last != lowest + (count - 1) * step or rest or not 0 <= steps < count:
        names = (counter.index, counter.count, *filter(None, (str(first), counter.step, counter.last)))
        values = ", ".join(f"{name}={environment[name]}" for name in names if name in environment)
        raise UsageError.at(
            WHERE,
            f"{counter.system} does not number machines one after the other: {values}",
            "use numbers in a row, such as --array=1-8 for Slurm, or give --shard I/N",
        )
    return steps + 1, count


def _number(counter: Counter, name: str, environment: Mapping[str, str]) -> int:
    text = environment.get(name)
    if text is None:
        advice = {COMPLETIONS: "set it in the manifest to the Job's spec.completions"}
        raise UsageError.at(
            WHERE,
            f"{counter.system} has set {counter.index}, but {name} is not set",
            advice.get(name, "give --shard I/N"),
        )
    if not re.fullmatch(r"\d{1,6}", text, re.ASCII):
        raise UsageError.at(WHERE, f"{name} is {text[:40]!r}, no number", "give --shard I/N")
    return int(text)
