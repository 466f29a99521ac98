"""The plans of a session's matrices. Reading them needs no engine, no runtime and no numpy."""

from pathlib import Path

import pytest

from harness.engine.prepare import RunnablePlan, make_plan
from harness.plan.matrix import read_matrix


class Plans:
    """The plans of a session, each by the absolute path of its matrix file."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._here = config.invocation_params.dir
        self._plans: dict[Path, RunnablePlan] = {}

    def plan(self, path: Path) -> RunnablePlan:
        """Return the plan of a matrix; it is read once.

        Raises:
            UsageError: The matrix is wrong.
        """
        if path not in self._plans:
            compared = map(self._named, map(Path, self._config.getoption("ep_baseline")))
            self._plans[path] = make_plan(read_matrix(self._named(path)), baselines=[*compared])
        return self._plans[path]

    def _named(self, path: Path) -> Path:
        """Return the relative path, which keeps messages short, and home folders out of run.json."""
        return path.relative_to(self._here) if path.is_relative_to(self._here) else path


_PLANS = pytest.StashKey[Plans]()


def plans_of(config: pytest.Config) -> Plans:
    """Return the session's plans; the first call creates them."""
    if _PLANS not in config.stash:
        config.stash[_PLANS] = Plans(config)
    return config.stash[_PLANS]
