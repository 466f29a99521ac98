"""Scenario ``generate``: a decoder plays a text in several ways, with one session.

A data set is one way. Its outputs are the logits of all positions and the last cache. They do not depend on
steps and layout, so that they can be compared with one run over the whole text.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from harness.agent.decoding.arrays import joined
from harness.agent.decoding.free import chosen_tokens
from harness.agent.decoding.shared_buffer import SharedBuffer
from harness.agent.decoding.steps import OtherShapeError, SessionSteps, StepResults
from harness.agent.decoding.text_columns import ColumnTexts
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.repeat import RepeatTally
from harness.agent.system import elapsed_ms
from harness.agent.target_errors import UnsupportedError


def play(job_run: JobRun) -> None:
    """Play each data set; then the first one again if the job asks for it.

    The repeat shows what the others may have left behind.

    Raises:
        UnsupportedError: No way can be played.
    """
    job = job_run.job
    staged = None
    if "stages" in job:
        from harness.agent.decoding.stages import StagedRunner

        staged = StagedRunner(job_run)
        staged.judge_in(job_run)
    else:
        job_run.create()
    names = [name for name in job_run.runner.names if name in _judged(job)]
    result, facts = job_run.result, job_run.facts
    result.update(names=names, outputs=[], generated={"declined": []})
    declined: list[tuple[int, str]] = result["generated"]["declined"]
    facts.update(ways=[one["name"] for one in job["generate"]["plays"]], way_ms=[])
    for number in range(len(job["generate"]["plays"])):
        started = time.perf_counter()
        try:
            outputs = _played(job_run, number)
        except UnsupportedError as error:
            declined.append((number, str(error)))
            outputs = []
        facts["way_ms"].append(elapsed_ms(started))
        result["outputs"].append(job_run.send(outputs))
        if number == 0:
            first = outputs
    if len(declined) == len(job["generate"]["plays"]):
        raise UnsupportedError("; ".join(sorted({why for _, why in declined})))
    if first and job.get("repeat", {"runs": 1})["runs"] > 1:
        tally = RepeatTally(first)
        tally.add(_played(job_run, 0))
        tally.report(job_run)
    with contextlib.suppress(Exception):  # it is for people, and the ways above have shown any fault
        result["generated"]["text"] = chosen_tokens(job_run)
    if job_run.stopwatch is not None:
        from harness.agent.decoding.speed import speed_of

        result["generated"]["speed"] = speed_of(job_run)
    if staged is None:
        conclude(job_run)
        return
    placed, result["generated"]["stages"] = staged.placed()
    conclude(job_run, placed)


def _judged(job: dict[str, Any]) -> set[str]:
    decoder = job["generate"]["decoder"]
    passed = job["generate"]["passed"]
    return {decoder["logits"], *(pair["present"] for pair in decoder["cache"]), *passed}


def _played(job_run: JobRun, number: int) -> list[Any]:
    """Play one data set, and return its outputs in wire form.

    If a step gives outputs of other shapes, these replace those of the whole way: their shapes are wrong,
    too.
    """
    generate = job_run.job["generate"]
    one = generate["plays"][number]
    text = ColumnTexts(generate, one, job_run.job["data_sets"][number])
    if "stages" in job_run.job:
        job_run.runner.forget()
    try:
        results = _results(SessionSteps(job_run, text), one)
    except OtherShapeError as error:
        results = error.results
    return [results[name].wire() for name in job_run.result["names"]]


def _results(steps: SessionSteps, one: dict[str, Any]) -> StepResults:
    text = steps.text
    if one["by_turns"]:
        by_row = steps.carried(one, [slice(row, row + 1) for row in range(text.rows)])
        whole = {
            name: joined([results[name] for results in by_row], text.batch_axis(name)) for name in by_row[0]
        }
    elif one["buffers"] == "shared":
        whole = SharedBuffer(steps).play(one)
    elif one["buffers"] == "none":
        whole = steps.uncached(one)
    else:
        (whole,) = steps.carried(one)
    return text.in_order(whole)
