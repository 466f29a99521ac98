"""`ep-harness advise FOLDER`: what to ship for each model, on which target, with which option, or why not."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cli.output import notify, print_result, wrapped
from harness.core.agreement import agreements_words, answers_ratio
from harness.core.cause import plain_cause
from harness.core.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, one_line
from harness.core.shipping import Answer, ShippedModel, Shipping
from harness.core.text import visible
from harness.core.verdict import Family
from harness.corpus.suite import open_folder
from harness.plan.matrix import Matrix
from harness.plan.surroundings import surroundings_of
from harness.report.figures import plural, ratio
from harness.run.summary import WIDTH
from harness.studies.advise_folder import FolderAdvice, advise_folder
from harness.studies.tried import Tried

LEAST_BUDGET_S = 120.0
BUDGET_OF_MODEL_S = 12.0
"""Without ``--budget`` a folder gets so many seconds for each model, and at least 120."""

_NAMED = 6
"""Number of models that are named for one reason; --json has all."""

_LONGEST_NAME = 24

_REASON_CHARS = 100
"""Largest length of a reason: about two lines. Reasons with the same beginning are merged; --json has all."""


def advise_on_folder(folder: Path, matrix: Matrix, *, budget_s: float | None, as_json: bool) -> int:
    """Print the answer for each model and target, and the reasons.

    Returns:
        0 if every model can be shipped on some target; 1 if one cannot; 130 if interrupted.
    """
    suite = open_folder(folder)
    count = len(suite.models())
    allowed_s = max(LEAST_BUDGET_S, BUDGET_OF_MODEL_S * count) if budget_s is None else budget_s
    names = ", ".join(target.name for target in matrix.targets)
    notify(
        f"trying       {plural(count, 'model')} on {one_line(visible(names), 200)}; at most {allowed_s:.0f} s"
    )
    until = time.monotonic() + allowed_s
    found = advise_folder(suite, matrix, until=until, notify=notify, show=_show_tried)
    print_result(_as_json(found), _page(found), as_json=as_json)
    if found.stopped_by == "interrupt":
        return EXIT_INTERRUPTED
    shipped = [model for model in found.models if any(row.ships for row in model.rows)]
    return EXIT_OK if len(shipped) == count else EXIT_UNEXPECTED


def _show_tried(model: str, one: Tried) -> None:
    right = "right" if one.record.family is Family.PASSED and not one.rounds else one.fell_out
    what = f"{one.p50_ms:.4g} ms" if one.p50_ms is not None else right
    notify("tried        " + one_line(visible(f"{model} on {one.candidate.name}: {what}"), WIDTH - 13))


def _page(found: FolderAdvice) -> Iterator[str]:
    """Yield lines of at most 80 columns."""
    yield (
        f"{plural(len(found.models), 'model')} on {plural(len(found.targets), 'target')}: "
        f"{found.tried} configurations tried in {found.elapsed_s:.0f} s"
    )
    yield ""
    yield from _table(found.models)
    for answer in (Answer.NOT, Answer.UNKNOWN):
        yield from _reasons(answer, found.models)
    yield from _environments(found)
    if found.not_tried:
        why = "interrupted" if found.stopped_by == "interrupt" else "the time is used up; raise --budget"
        yield from wrapped(f"not tried: {plural(found.not_tried, 'further configuration')} ({why})")


def _table(models: Sequence[ShippedModel]) -> Iterator[str]:
    names = {
        model.model: one_line(visible(model.model.removesuffix(".onnx")), _LONGEST_NAME) for model in models
    }
    targets = [one_line(visible(row.target), 16) for model in models for row in model.rows]
    wide, narrow = max(map(len, ["model", *names.values()])), max(map(len, ["ship", *targets]))
    yield f"{'model':<{wide}}   {'ship':<{narrow}}  bits answers  p50 ms  times   MiB"
    for model in models:
        name = names[model.model]
        for row in model.rows:
            if row.ships:
                yield from _line(f"{name:<{wide}} {'*' if row.is_fastest else ' '} ", row, narrow)
                name = ""
        if name:
            yield f"{name:<{wide}}   nothing, see below"
    yield ""
    yield from wrapped(
        "* the fastest. bits: precision of the worst output; float32 work has 20 and more, exact means equal "
        "to the CPU provider's result. answers: those of the model's task that are the CPU provider's. "
        "p50: median time of a run. times: p50 / that of the CPU provider. MiB: most memory of the process."
    )
    for why, concerned in _by_reason((model.speed, model) for model in models):
        yield from wrapped(f"no fastest of {_named(concerned, models)}: {why}")
    yield ""


def _line(beginning: str, row: Shipping, narrow: int) -> Iterator[str]:
    bits = "exact" if row.bits is None else f"{row.bits:.1f}"
    answers = answers_ratio(row.choice.record.agreement) or "-"
    p50_ms, times = (("-" if one is None else ratio(one)) for one in (row.p50_ms, row.times))
    memory = "-" if row.memory_mib is None else f"{row.memory_mib:,.0f}"
    target = one_line(visible(row.target), 16)
    yield f"{beginning}{target:<{narrow}} {bits:>5} {answers:>7} {p50_ms:>7} {times:>6} {memory:>5}"
    if row.option:
        why = f" ({one_line(visible(row.because), 120)})" if row.because else ""
        yield from wrapped(f"with {visible(row.option)}{why}", " " * len(beginning) + "  ")


def _reasons(answer: Answer, models: Sequence[ShippedModel]) -> Iterator[str]:
    """Yield the targets that are not shipped, each reason once."""
    groups: dict[str, list[tuple[ShippedModel, Shipping]]] = {}
    for model in models:
        for row in model.rows:
            if row.answer is answer:
                groups.setdefault(plain_cause(row.because)[:_REASON_CHARS], []).append((model, row))
    if groups:
        yield f"{answer}, because"
    for its in sorted(groups.values(), key=len, reverse=True):
        targets = ", ".join(dict.fromkeys(one_line(visible(row.target), 16) for _, row in its))
        concerned = {model.model: model for model, _ in its}
        why = one_line(visible(its[0][1].because), _REASON_CHARS)
        varies = " (details vary)" if len({row.because for _, row in its}) > 1 else ""
        yield from wrapped(f"{targets}: {_named([*concerned.values()], models)}: {why}{varies}", "  ", "    ")
    if groups:
        yield ""


def _by_reason(
    pairs: Iterator[tuple[str, ShippedModel]],
) -> Iterator[tuple[str, list[ShippedModel]]]:
    groups: dict[str, list[ShippedModel]] = {}
    for why, model in pairs:
        if why:
            groups.setdefault(why, []).append(model)
    yield from groups.items()


def _named(concerned: Sequence[ShippedModel], all_of: Sequence[ShippedModel]) -> str:
    """Return the names of models, or that all are concerned."""
    if len(concerned) == len(all_of) > 1:
        return "all models"
    names = [
        one_line(visible(model.model.removesuffix(".onnx")), _LONGEST_NAME) for model in concerned[:_NAMED]
    ]
    more = len(concerned) - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _environments(found: FolderAdvice) -> Iterator[str]:
    """Yield the environment of each target."""
    for name, fingerprint in found.fingerprints.items():
        target = found.targets[name]
        seen = surroundings_of(fingerprint, target.provider, target.device)
        of_plugin = f", provider {seen.ep_version}" if target.plugin and seen.ep_version else ""
        what = f"onnxruntime {seen.onnxruntime}{of_plugin}, {seen.device or 'unknown device'}"
        yield from wrapped(f"{visible(name)}: {one_line(visible(what), 200)}", "on  ")


def _as_json(found: FolderAdvice) -> dict[str, Any]:
    return {
        "models": [
            {
                "model": f"{model.suite}/{model.model}",
                "fastest": next((row.target for row in model.rows if row.is_fastest), None),
                "no_fastest": model.speed,
                "targets": [_row_as_json(row) for row in model.rows],
            }
            for model in found.models
        ],
        "simulated": found.simulated,
        "environments": found.fingerprints,
        "tried": found.tried,
        "not_tried": found.not_tried,
        "stopped_by": found.stopped_by,
        "elapsed_s": round(found.elapsed_s, 1),
    }


def _row_as_json(row: Shipping) -> Mapping[str, Any]:
    record = row.choice.record
    return {
        "target": row.target,
        "answer": row.answer,
        "option": row.option,
        "because": row.because,
        "delivered_bits": row.bits,
        "answers": agreements_words(record.agreement),
        "p50_ms": row.p50_ms,
        "times": row.times,
        "memory_mib": row.memory_mib,
        "record": record,
    }
