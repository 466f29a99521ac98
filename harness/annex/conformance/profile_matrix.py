"""The matrix of a profile except for its target, the same for a vendor's run and for its verification."""

import glob
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.profiles.profile_suite import PROFILE, suite_name
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.scenario import PLAIN
from harness.plan.matrix import Matrix, matrix_from


def profile_table(profile: Profile, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the tables of a matrix file that give exactly the cases of a profile, on any target.

    ``without`` are models of the archive that none of these cases uses.
    """
    models: dict[str, Any] = {"suites": [PROFILE + profile.label]}
    if without:
        models["exclude"] = _globs(profile, without)
    keys = {case.key for case in profile.cases}
    scenarios = sorted({scenario for _, scenario in keys}, key=lambda each: (each != PLAIN, each))
    if scenarios == [PLAIN]:
        return {"schema": 1, "models": models}
    excluded = [*_excluded(profile, keys, scenarios)]
    more = {"exclude": excluded} if excluded else {}
    return {"schema": 1, "models": models, "axes": {"scenario": scenarios}, **more}


def profile_matrix(profile: Profile, target: str = "cpu", provider: str = CPU_PROVIDER) -> Matrix:
    """Return the matrix of a profile on a target without its own settings; by default on the CPU EP.

    Raises:
        UsageError: A matrix can have no such target or provider.
    """
    table = {"name": target, "provider": provider, "required": True}
    return matrix_from({**profile_table(profile), "target": [table]}, Path("matrix.toml"))


def _excluded(
    profile: Profile, keys: Collection[tuple[str, str]], scenarios: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield the pairs of model and scenario that are not cases."""
    models = sorted({model for model, _ in keys})
    for scenario in scenarios:
        left_out = [model for model in models if (model, scenario) not in keys]
        if left_out:
            yield {"scenario": scenario, "model": _globs(profile, left_out)}


def _globs(profile: Profile, names: Collection[str]) -> list[str]:
    return [glob.escape(f"{suite_name(profile)}/{name}") for name in names]
