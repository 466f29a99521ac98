"""Whether two records of a cell were judged by one measure: the same golden, model and tolerance."""

from collections.abc import Iterator

from harness.core.output_metrics import OutputMetrics
from harness.core.record import Record
from harness.report.figures import brief


def other_measure(old: Record, new: Record) -> Iterator[str]:
    """How the two were judged differently; where either has no such fact, nothing is said."""
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
        # What is exact has no noise to be judged by, and says nothing about its limits.
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
