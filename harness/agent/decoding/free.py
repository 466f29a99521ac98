"""The text that an EP chooses by itself after the prompt: for people, never judged."""

from __future__ import annotations

import numpy as np

from harness.agent.decoding.steps import OtherShapeError, SessionSteps
from harness.agent.decoding.text_columns import ColumnTexts
from harness.agent.job_run import JobRun


def chosen_tokens(job_run: JobRun) -> list[int]:
    """Return the tokens with the largest logit, each fed after the previous one.

    The prompt is the beginning of the first play's first text. The list ends if a step gives outputs of other
    shapes, or NaN.
    """
    generate = job_run.job["generate"]
    play = generate["plays"][0]
    text = ColumnTexts(generate, play, job_run.job["data_sets"][0])
    rows = text.rows
    count = min(generate["new_tokens"], text.length - 1)
    layout = np.arange(text.length, dtype=np.int64)
    text.layout = np.broadcast_to(layout, (rows, text.length))
    tokens = text.given[text.decoder["tokens"]]
    steps = SessionSteps(job_run, text)
    cache, start, end = text.empty, 0, text.length - count
    found: list[int] = []
    for _ in range(count):
        try:
            results = steps.run(text.feeds(start, end, cache))
            steps.check(results, start, end, start)
        except OtherShapeError:
            break
        last = results[text.decoder["logits"]].floats()[:, -1]
        if np.isnan(last[0]).any():
            break
        chosen = last.argmax(-1)
        found.append(int(chosen[0]))
        tokens.values[:, end] = np.minimum(chosen, text.decoder["vocabulary"] - 1)
        if text.pasts:
            cache, start = steps.cache_of(results), end
        end += 1
    return found
