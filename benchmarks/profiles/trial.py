"""A frozen profile on the CPU EP, judged as every provider is: nobody is held to what that one fails."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.profiles.profile_suite import profile_suite
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.records.scenario import PLAIN
from harness.core.records.verdict import Family, Verdict
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished
from harness.plan.expand import expand
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.plan import Plan
from harness.plan.target import Target

Keys = Mapping[tuple[str, str], str]
"""Name of a case and its scenario -> a text."""


def failed_by_cpu(profile: Profile, archive: Path) -> Keys:
    """Return the cases that the CPU EP does not pass, and how each ended.

    A scenario that is none for the CPU EP, such as the compiled model that it never writes, counts as
    passed: that it runs at all is shown by a real EP.

    Raises:
        UsageError: The archive is not that of the profile.
    """
    suite = profile_suite(profile, archive)
    wanted = {case.key for case in profile.cases}
    axes = {"scenario": tuple(sorted({scenario for _, scenario in wanted}))}
    target = Target(name="cpu", provider=(CPU,))
    matrix = Matrix(path="trial", schema=1, models=ModelSelection(), axes=axes, targets=(target,))
    cells = [
        one
        for one in expand(matrix, {suite.name: suite.models()}).cells
        if (one.model, dict(one.axes)["scenario"]) in wanted
    ]
    ended = dict.fromkeys(wanted, "not run")
    plan = Plan(matrix=matrix, cells=tuple(cells))
    with closing(Engine(plan, {suite.name: suite})) as engine:
        engine.submit(plan.cells)
        engine.drain()
        for event in engine.events():
            if isinstance(event, Finished):
                record = event.record
                key = record.model, record.axes["scenario"]
                ended[key] = _why(record.verdict, key[1], record.cause or record.reason)
    return {key: why for key, why in ended.items() if why}


def _why(verdict: Verdict, scenario: str, message: str) -> str:
    """Return why a case is none; empty if it is one."""
    if verdict is Verdict.PASS or (scenario != PLAIN and verdict.family is Family.UNSUPPORTED):
        return ""
    return f"the CPU EP does not pass it: {verdict.value}: {message}".removesuffix(": ")
