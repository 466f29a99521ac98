"""How fast a session generates text: time to the first token, tokens each second, size of the cache.

Tokens each second are told for each size of the batch, and for each length of the context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.decoding.arrays import OnnxArray
from harness.agent.decoding.steps import SessionSteps, StepResults
from harness.agent.decoding.text_columns import Cache, ColumnTexts
from harness.agent.job_run import JobRun
from harness.agent.latency_runs import time_runs
from harness.agent.safe_text import clean

BATCHES = (1, 2, 4)
"""Batch sizes for which decode is timed, if the model's batch is free."""

_FACTOR = 4  # between two lengths of prompts
_MIB = float(1 << 20)


def speed_of(job_run: JobRun) -> dict[str, Any]:
    """Time prompts of several lengths, and single steps of several batches at the end of the text.

    The stopwatch's settings apply to each of these; its result, the latency of the cell, is that of one step
    with a batch of 1.
    """
    generate = job_run.job["generate"]
    inputs = job_run.job["data_sets"][0]
    found: dict[str, Any] = {
        "first_token_ms": [],
        "tokens_per_s": [],
        "tokens_per_s_at": [],
        "cache_mib": None,
    }
    length = _text(generate, inputs, 1).length
    for prompt in _prompts(length):
        text = _text(generate, inputs, 1)
        step = _step(job_run, text, 0, prompt, text.empty)
        found["first_token_ms"].append((prompt, _median_ms(job_run, step)))
    for rows in BATCHES if _is_free(generate) else BATCHES[:1]:
        text = _text(generate, inputs, rows)
        steps = SessionSteps(job_run, text)
        try:
            step = _last_step(steps, length)
        except Exception as error:
            if rows == 1:
                raise
            job_run.facts["speed_reason"] = "a batch of %d: %s" % (rows, clean(error, 200))
            break
        if rows == 1:
            outputs = job_run.stopwatch.time(job_run, step, "copied")
            found["cache_mib"] = _mib(steps, outputs) if text.pasts else None
        found["tokens_per_s"].append((rows, rows * _rate(job_run, step)))
    text = _text(generate, inputs, 1)
    if text.pasts:  # without a cache, a token costs what its prompt costs
        steps = SessionSteps(job_run, text)
        for context in _prompts(length - 1):
            step = _last_step(steps, context + 1)
            found["tokens_per_s_at"].append((context, _rate(job_run, step)))
    return found


def _last_step(steps: SessionSteps, length: int) -> Callable[[], list[Any]]:
    """Return the step to the last position of so many, after it and the previous steps have run."""
    text = steps.text
    cache = steps.cache_of(steps.run(text.feeds(0, length - 1, text.empty)))
    start = length - 1 if text.pasts else 0
    steps.run(text.feeds(start, length, cache))
    return _step(steps.job_run, text, start, length, cache)


def _prompts(length: int) -> list[int]:
    """Return lengths of prompts: 1, 4, 16 and so on, and the whole text."""
    prompts = []
    one = 1
    while one < length:
        prompts.append(one)
        one *= _FACTOR
    return [*prompts, length]


def _is_free(generate: dict[str, Any]) -> bool:
    """Return whether the batch may have any size."""
    return generate["decoder"]["tokens"] in generate["batch_axes"]


def _text(generate: dict[str, Any], inputs: list[Any], rows: int) -> ColumnTexts:
    """Return the first play's text, repeated for a batch of so many rows; a fixed batch stays."""
    text = ColumnTexts(generate, generate["plays"][0], inputs)
    if _is_free(generate):
        text.given = {
            name: array.take(text.axes[name], np.arange(rows) % array.shape[text.axes[name]])
            if name in text.axes
            else array
            for name, array in text.given.items()
        }
        text.rows = rows
    text.layout = np.broadcast_to(np.arange(text.length), (text.rows, text.length))
    return text


def _step(job_run: JobRun, text: ColumnTexts, start: int, end: int, cache: Cache) -> Callable[[], list[Any]]:
    step: Callable[[], list[Any]] = job_run.runner.step(text.feeds(start, end, cache))
    return step


def _median_ms(job_run: JobRun, step: Callable[[], list[Any]]) -> float:
    facts, _ = time_runs(step, job_run.stopwatch.settings, job_run.enter)
    return float(np.median(facts["samples_ns"]) / 1e6)


def _rate(job_run: JobRun, step: Callable[[], list[Any]]) -> float:
    """Return how often a step runs in a second."""
    return 1000 / max(_median_ms(job_run, step), 1e-6)


def _mib(steps: SessionSteps, outputs: list[Any]) -> float:
    """Return the size of the cache in the outputs of a step."""
    wires = steps.job_run.runner.in_wire_form(outputs)
    named: StepResults = steps.judged_of(wires)
    caches: list[OnnxArray] = list(steps.cache_of(named).values())
    nbytes: int = sum(array.values.nbytes for array in caches)
    return round(nbytes / _MIB, 6)
