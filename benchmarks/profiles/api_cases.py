"""The cases of the profile ``api@1``: few models, each in the scenarios that apply to it.

No fault that is planted in operators chooses them: what matters is how a session is used.
"""

from collections.abc import Iterator

from harness.annex.conformance.freeze import CaseCandidate
from harness.annex.conformance.profiles.profile import CORE
from harness.core.records.scenario import GENERATE, PACKAGE_SCENARIO, PLAIN, SCENARIOS
from harness.corpus.derived.scenario_case import Inapplicable, scenario_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suites import open_suite

FIXED, OPEN = ("zoo", "mnist-small-op12"), ("zoo", "efficientnet-small-op17")
"""The core, which most providers take as a whole; and a network whose batch is symbolic."""

SPLIT = ("onnx-node", "test_split_equal_parts_2d")
"""The networks have a single output each."""

NOT_FROZEN = frozenset({PLAIN, GENERATE, PACKAGE_SCENARIO, "adapters"})
"""Scenarios that are no feature.

A case has neither a text to generate nor the folder of a package, and the smallest model that takes adapters
fills half of an archive.
"""


def api_cases() -> list[CaseCandidate]:
    """Return the candidates, sorted by suite, model and scenario.

    Raises:
        ModelError: A suite lacks a model.
    """
    return sorted(_candidates(), key=lambda one: (one.suite, one.model, one.scenario))


def _candidates() -> Iterator[CaseCandidate]:
    yield CaseCandidate(suite=FIXED[0], model=FIXED[1], feature=CORE)
    yield CaseCandidate(suite=OPEN[0], model=OPEN[1], feature="symbolic_shapes")
    for scenario in SCENARIOS.keys() - NOT_FROZEN:
        for suite, model in (SPLIT,) if scenario == "separate_outputs" else (FIXED, OPEN):
            if not isinstance(scenario_case(load_case(open_suite(suite), model, {}), scenario), Inapplicable):
                yield CaseCandidate(suite=suite, model=model, scenario=scenario, feature=scenario)
