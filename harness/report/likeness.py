"""Whether two results are comparable: environment and settings of the target, and how they were judged."""

from collections.abc import Iterator

import msgspec

from harness.core.errors import one_line
from harness.core.output_metrics import OutputMetrics
from harness.core.record import Record
from harness.report.environment import environment_table
from harness.report.figures import brief, first_of
from harness.report.latency_change import unlike
from harness.report.merge import Environment, MergedRun, target_settings

_SHOWN_DIFFERENCES = 8
"""How many differences of one kind are named."""


class Unlike(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between the two runs of a target.

    Attributes:
        target: Its name.
        environment: ``key: old -> new`` of its environment.
        settings: The same of its settings in the matrix.
    """

    target: str
    environment: tuple[str, ...]
    settings: tuple[str, ...]


class Likeness:
    """Compares environments and settings of the targets of two runs."""

    def __init__(self, old: MergedRun, new: MergedRun) -> None:
        self._comparable: dict[str, bool] = {}
        self._environments = tuple({e.target: e.fingerprint for e in run.environments} for run in (old, new))
        self._settings = tuple(target_settings(run.matrix) for run in (old, new))

    def comparable(self, target: str) -> bool:
        """Return whether latencies of a target can be compared: like machines, devices and threads."""
        if target not in self._comparable:
            old, new = (sides.get(target) for sides in self._environments)
            self._comparable[target] = old is not None and new is not None and not unlike(old, new)
        return self._comparable[target]

    def unlike_targets(self) -> tuple[Unlike, ...]:
        """Return the targets of both runs in which something differs."""
        found = []
        for target in self._environments[0].keys() & self._environments[1].keys():
            environment = differences(*(sides[target] for sides in self._environments))
            settings = differences(*(sides.get(target, {}) for sides in self._settings))
            if environment or settings:
                found.append(Unlike(target=target, environment=environment, settings=settings))
        return tuple(sorted(found, key=lambda each: each.target))


def differences(old: dict[str, object], new: dict[str, object]) -> tuple[str, ...]:
    """Return ``key: old -> new`` for each difference of two trees of facts; one line each, bounded."""
    if old == new:
        return ()
    sides = [Environment(target="", run="", fingerprint=side) for side in (old, new)]
    rows = [row for row in environment_table(sides).rows if not row.same]
    told = [
        one_line(f"{row.key}: {row.values[0] or '(absent)'} -> {row.values[1] or '(absent)'}", 160)
        for row in rows
    ]
    return tuple(first_of(told, _SHOWN_DIFFERENCES))


def other_measure(old: Record, new: Record) -> Iterator[str]:
    """Yield how two records of a cell were judged differently: by another golden, model or tolerance.

    A fact that either record lacks is left out.
    """
    if old.golden and new.golden and old.golden != new.golden:
        yield f"judged by {old.golden} -> {new.golden}"
    if old.content and new.content and old.content != new.content:
        yield "the model is another one"
    before = {output.name: output for output in old.outputs}
    for now in new.outputs:
        then = before.get(now.name, now)
        if not _alike(then, now):
            yield f"tolerance {_tolerance(then)} -> {_tolerance(now)}"
            return


def _alike(then: OutputMetrics, now: OutputMetrics) -> bool:
    if _by_noise(then) is not _by_noise(now) and 0.0 in (then.max_abs, now.max_abs):
        # An exact output has no noise, so its limits are unknown.
        return True
    return _tolerance(then) == _tolerance(now)


def _by_noise(output: OutputMetrics) -> bool:
    return output.noise is not None and output.noise.rms_limit is not None


def _tolerance(output: OutputMetrics) -> str:
    noise = output.noise
    if noise is not None and noise.rms_limit is not None and noise.max_limit is not None:
        limits = f"rms {brief(noise.rms_limit)}, max {brief(noise.max_limit)}"
        return f"{limits} of {noise.precision} noise"
    return f"rtol {brief(output.rtol)}, atol {brief(output.atol)}"
