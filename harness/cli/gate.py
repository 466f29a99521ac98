"""`ep-harness gate`: whether a run may pass, compared with an older one."""

import os
import sys
from pathlib import Path

import msgspec

from harness.cli.diff import compared
from harness.cli.policy import Policy, flake_teller, load_policy
from harness.core.exit_code import EXIT_OK, EXIT_UNEXPECTED
from harness.report.diff import Diff
from harness.report.gate import Judgement, judge
from harness.report.gate_text import gate_github, gate_lines
from harness.report.json_text import inert_json


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    judgement: Judgement
    diff: Diff


def gate(old: Path, new: Path, *, policy: Path | None, github: bool, as_json: bool) -> int:
    """Print what the gate says; with ``github``, or on GitHub's runners, annotations as well.

    Returns:
        0 where the run may pass, 1 where it may not.

    Raises:
        UsageError: A run or the policy cannot be read, or a flaky entry matches no cell.
    """
    chosen = Policy() if policy is None else load_policy(policy)
    found, sides = compared(old, new)
    records = (record for side in sides for _, record in side.records)
    judgement = judge(found, chosen.limits, flake_teller(chosen, records))
    if as_json:
        answer = _Answer(judgement=judgement, diff=found)
        lines = [msgspec.json.format(inert_json(answer)).decode()]
    else:
        lines = [*gate_lines(found, judgement)]
        if github or os.environ.get("GITHUB_ACTIONS") == "true":
            lines += gate_github(judgement)
    sys.stdout.write("\n".join(lines) + "\n")
    return EXIT_OK if judgement.passed else EXIT_UNEXPECTED
