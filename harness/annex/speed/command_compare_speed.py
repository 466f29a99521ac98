"""`ep-harness compare-speed`: print which cells are slower with the new build, and write it for a gate."""

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from harness.annex.speed.build_plans import plan_of_build
from harness.annex.speed.compare_builds import BuildComparison
from harness.annex.speed.in_turns import SIDES, SideName
from harness.cli.output import notify, print_result, wrapped
from harness.core.files.writing import write_aside
from harness.core.text.counted import plural
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, UsageError
from harness.core.text.visible_text import visible
from harness.core.timing.speed_change import SpeedChange, SpeedComparison, SpeedVerdict
from harness.engine.prepare import RunnablePlan

_SEEDS = 1 << 31


class SpeedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which builds are compared on which cells; ``seed`` is None to draw one."""

    matrix: Path
    base: str
    new: str
    targets: Sequence[str] = ()
    models: Sequence[str] = ()
    limit_s: float
    seed: int | None = None

    def plan(self, side: SideName) -> RunnablePlan:
        """Return the cells of one build.

        Raises:
            UsageError: The matrix or the build is wrong.
        """
        build = self.base if side == "base" else self.new
        return plan_of_build(self.matrix, f"--{side}", build, targets=self.targets, models=self.models)


def compare_speed(request: SpeedRequest, *, out: Path | None, as_json: bool) -> int:
    """Compare two builds, and print the result.

    Returns:
        0 if no cell is slower, 1 if one is, 3 if a cell has no verdict; 130 if interrupted.
    """
    plans: dict[SideName, RunnablePlan] = {side: request.plan(side) for side in SIDES}
    seed = secrets.randbelow(_SEEDS) if request.seed is None else request.seed
    minutes = request.limit_s / 60
    count = plural(len(plans["base"].cells), "cell")
    notify(f"comparing    {count} on both builds in turns, {minutes:g} minutes at most; seed {seed}")
    found = BuildComparison(plans, (request.base, request.new), seed, minutes, notify).run()
    if out is not None:
        try:
            write_aside(out, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
        except OSError as error:
            raise UsageError.at(out, f"cannot be written: {error.strerror}") from error
    print_result(found, _lines(found), as_json=as_json)
    return _exit_code(found)


def _exit_code(found: SpeedComparison) -> int:
    verdicts = {one.verdict for one in found.cells}
    if "slower" in verdicts:
        return EXIT_UNEXPECTED
    if not found.complete:
        return EXIT_INTERRUPTED
    return EXIT_INCOMPLETE if verdicts & {"too_noisy", "not_measured"} else EXIT_OK


def _lines(found: SpeedComparison) -> Iterator[str]:
    counts = Counter(one.verdict for one in found.cells)
    words = [f"{counts[each]} {each.replace('_', ' ')}" for each in get_args(SpeedVerdict) if counts[each]]
    yield f"{plural(len(found.cells), 'cell')}: {', '.join(words)}"
    for one in found.cells:
        yield f"{one.verdict.replace('_', ' ')}  {visible(one.cell)}"
        yield from wrapped(visible(one.reason), "    ")
        yield from (f"    {line}" for line in _machine(one))
    yield from wrapped(
        f"Any alarm among equal builds has a probability of at most {found.false_alarms:.0%}; a slowdown of "
        f"{found.found_from:.0%} is called not slower with at most {found.missed:.0%}. Seed {found.seed}, "
        f"{found.minutes:g} minutes."
    )
    if not found.complete:
        yield "INCOMPLETE: interrupted"


def _machine(one: SpeedChange) -> Iterator[str]:
    """Yield how noisy the machine was, and what would help."""
    wall = one.changes.get("wall")
    if wall is not None:
        waiting = "" if one.waiting_threads is None else f", {one.waiting_threads:.2g} threads waited"
        yield f"machine: from the first half to the second {wall.drift - 1:+.1%}{waiting}"
    if one.more_minutes is not None:
        yield f"no verdict: about {one.more_minutes:.2g} minutes more (--for), or a quieter machine"
