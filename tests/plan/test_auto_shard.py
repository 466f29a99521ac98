"""``--shard auto``: the variables of schedulers and CI systems."""

import pytest

from harness.core.text.errors import UsageError
from harness.plan.auto_shard import COUNTERS, auto_shard


def slurm(task: int, count: int, first: int = 0, step: int = 1, last: int | None = None) -> dict[str, str]:
    return {
        "SLURM_ARRAY_TASK_ID": str(task),
        "SLURM_ARRAY_TASK_COUNT": str(count),
        "SLURM_ARRAY_TASK_MIN": str(first),
        "SLURM_ARRAY_TASK_MAX": str(first + (count - 1) * step if last is None else last),
        "SLURM_ARRAY_TASK_STEP": str(step),
    }


KUBERNETES = {"JOB_COMPLETION_INDEX": "2", "JOB_COMPLETIONS": "8"}
GITLAB = {"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "8"}
BUILDKITE = {"BUILDKITE_PARALLEL_JOB": "2", "BUILDKITE_PARALLEL_JOB_COUNT": "8"}
CIRCLE = {"CIRCLE_NODE_INDEX": "2", "CIRCLE_NODE_TOTAL": "8"}
AZURE = {"SYSTEM_JOBPOSITIONINPHASE": "3", "SYSTEM_TOTALJOBSINPHASE": "8"}


@pytest.mark.parametrize(
    "variables",
    [
        slurm(2, 8),
        slurm(3, 8, first=1),
        slurm(14, 8, first=10, step=2),
        KUBERNETES,
        GITLAB,
        BUILDKITE,
        CIRCLE,
        AZURE,
        KUBERNETES | GITLAB,
        # The pipeline has one job, and that starts an array.
        slurm(2, 8) | {"CI_NODE_TOTAL": "1"},
        slurm(2, 8) | {"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "1"},
    ],
)
def test_the_third_of_eight(variables: dict[str, str]) -> None:
    assert auto_shard({"PATH": "/bin", **variables}) == (3, 8)


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.system)
def test_every_system_numbers_all_of_its_machines(counter: object) -> None:
    known = {"Slurm": lambda at: slurm(at, 4)}
    for number in range(4):
        system, first = counter.system, counter.first  # type: ignore[attr-defined]
        variables = {
            counter.index: str(number + (first if isinstance(first, int) else 0)),  # type: ignore[attr-defined]
            counter.count: "4",  # type: ignore[attr-defined]
        }
        assert auto_shard(known[system](number) if system in known else variables) == (number + 1, 4)


@pytest.mark.parametrize(
    "variables", [{"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "1"}, slurm(7, 1, first=7)]
)
def test_one_machine_has_all(variables: dict[str, str]) -> None:
    assert auto_shard(variables) == (1, 1)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {},
            "none of these variables is set: SLURM_ARRAY_TASK_ID (Slurm), JOB_COMPLETION_INDEX (Kubernetes)",
        ),
        # GitLab's count without several machines is no sign of several.
        ({"CI_NODE_TOTAL": "1"}, "none of these variables is set"),
        ({"JOB_COMPLETION_INDEX": "2"}, "set it in the manifest to the Job's spec.completions"),
        ({"CI_NODE_INDEX": "1"}, "GitLab has set CI_NODE_INDEX, but CI_NODE_TOTAL is not set"),
        (GITLAB | {"CI_NODE_INDEX": "9"}, "CI_NODE_INDEX=9, CI_NODE_TOTAL=8"),
        (GITLAB | {"CI_NODE_INDEX": "0"}, "CI_NODE_INDEX=0, CI_NODE_TOTAL=8"),
        (GITLAB | {"CI_NODE_INDEX": "-1"}, "CI_NODE_INDEX is '-1', no number"),
        (GITLAB | {"CI_NODE_TOTAL": "٣"}, "CI_NODE_TOTAL is '٣', no number"),
        (GITLAB | {"CI_NODE_TOTAL": "0"}, "CI_NODE_TOTAL=0"),
        (slurm(3, 3, first=1, last=7), "use numbers in a row, such as --array=1-8"),
        (slurm(3, 4, first=0, step=2), "SLURM_ARRAY_TASK_ID=3"),
        (slurm(3, 4, step=0), "SLURM_ARRAY_TASK_STEP=0"),
        (slurm(2, 8) | {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4"}, "disagree: Slurm 3/8, GitLab 1/4"),
        (GITLAB | CIRCLE | {"CIRCLE_NODE_INDEX": "7"}, "disagree: GitLab 3/8, CircleCI 8/8"),
    ],
)
def test_what_makes_no_sense_is_refused_in_two_lines(variables: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        auto_shard(variables)
    text = str(refused.value)
    assert words in text
    assert text.startswith("--shard auto: ")
    assert len(text.splitlines()) <= 2
