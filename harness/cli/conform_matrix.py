"""The matrix that `ep-harness conform` runs: one profile on one target, with nothing to choose."""

import glob
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cli.conform_target import Wanted
from harness.cli.matrix_text import toml, write_new
from harness.cli.targets import naming_arguments
from harness.core.scenario import PLAIN
from harness.corpus.suites import PROFILE
from harness.plan.matrix import matrix_from
from harness.profiles.profile import Profile
from harness.profiles.suite import suite_name


def matrix_text(profile: Profile, wanted: Wanted, without: Sequence[str] = ()) -> str:
    """Return the matrix of a profile, or of some of its cases, on a target: these cases, and no others.

    ``without`` are models of the archive that none of these cases is about.
    """
    lines = [
        "# Written by `ep-harness conform`. Every key: docs/reference/matrix.md.",
        "schema = 1",
        "",
        "[models]",
        f"suites = {toml([PROFILE + profile.label])}",
        *([f"exclude = {_models(profile, without)}"] if without else []),
        "",
        *_scenarios(profile),
        *wanted.lines,
        "",
    ]
    return "\n".join(lines)


def write_matrix(profile: Profile, wanted: Wanted, folder: Path, without: Sequence[str] = ()) -> Path:
    """Write the matrix of a run, after a check of it; arguments as for ``matrix_text``."""
    content, file = matrix_text(profile, wanted, without), folder / "matrix.toml"
    with naming_arguments(file):
        matrix_from(tomllib.loads(content), file)
    write_new(file, content)
    return file


def _models(profile: Profile, names: Sequence[str]) -> str:
    return toml(glob.escape(f"{suite_name(profile)}/{name}") for name in names)


def _scenarios(profile: Profile) -> Iterator[str]:
    """Yield the axis of the scenarios, and the pairs of model and scenario that are no cases."""
    keys = {case.key for case in profile.cases}
    models = sorted({model for model, _ in keys})
    scenarios = sorted({scenario for _, scenario in keys}, key=lambda each: (each != PLAIN, each))
    if scenarios == [PLAIN]:
        return
    yield from ("[axes]", f"scenario = {toml(scenarios)}", "")
    for scenario in scenarios:
        left_out = [model for model in models if (model, scenario) not in keys]
        if left_out:
            yield "[[exclude]]"
            yield f"scenario = {toml(scenario)}"
            yield f"model    = {_models(profile, left_out)}"
            yield ""
