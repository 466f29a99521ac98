"""`ep-harness advise FOLDER`: what to ship of each model, on which target, with which option, or why not.

The best of each model and the reasons are one screen; ``--details`` has every target that may be shipped.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.annex.advise.folder_search import FolderAdvice, advise_folder
from harness.annex.advise.search_result import TriedCandidate
from harness.cli.output import notify, print_result, wrapped
from harness.core.agreement.agreement import agreements_words, answers_ratio, least_share
from harness.core.findings.cause import plain_cause
from harness.core.findings.shipping import ShippedModel, Shipping, ShippingAnswer
from harness.core.records.verdict import Family
from harness.core.text.counted import plural
from harness.core.text.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, one_line
from harness.core.text.visible_text import WIDTH, visible
from harness.core.timing.pace import NEAR_FASTEST
from harness.corpus.suites.suite import open_folder
from harness.plan.matrix import Matrix
from harness.plan.surroundings import surroundings_of
from harness.report.words.figures import ratio

LEAST_BUDGET_S = 120.0
BUDGET_OF_MODEL_S = 12.0
"""Without ``--budget`` a folder gets so many seconds for each model, and at least 120."""

_NAMED, _FEW = 6, 2
"""Models that are named behind one reason, in details and on the screen; --json has all."""

_LONGEST_NAME, _SHORT_NAME = 24, 16
_FIGURES = "  bits answers  p50 ms  times   MiB"

_ANSWERS = len("answers")
_SCREEN = 40
"""Lines of a screen."""

_SPEEDS, _PLACES = 2, 6
"""Lines on the screen at most: why none is the fastest, and where it ran."""

_REASON_CHARS = 100
"""Largest length of a reason: about two lines. Reasons with the same beginning are merged; --json has all."""


def advise_on_folder(
    folder: Path, matrix: Matrix, *, budget_s: float | None, details: bool, as_json: bool
) -> int:
    """Print the best choice for each model, or with ``details`` the answers for all targets, and the reasons.

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
    print_result(_as_json(found), details_of(found) if details else screen(found), as_json=as_json)
    if found.stopped_by == "interrupt":
        return EXIT_INTERRUPTED
    shipped = [model for model in found.models if any(row.ships for row in model.rows)]
    return EXIT_OK if len(shipped) == count else EXIT_UNEXPECTED


def _show_tried(model: str, one: TriedCandidate) -> None:
    right = "right" if one.record.family is Family.PASSED and not one.rounds else one.fell_out
    what = f"{one.p50_ms:.4g} ms" if one.p50_ms is not None else right
    notify("tried        " + one_line(visible(f"{model} on {one.candidate.name}: {what}"), WIDTH - 13))


def screen(found: FolderAdvice) -> Iterator[str]:
    """Yield lines of at most 80 columns: ten models on four targets are at most 40 of them."""
    above = [_head(found), "", *_best_of_each(found.models)]
    for why, concerned in [*_by_reason((model.speed, model) for model in found.models)][:_SPEEDS]:
        above.append(_cut(f"no fastest of {_named(concerned, found.models, _FEW)}: {why}"))
    above += _also(found.models)
    below = ["", *map(_cut, [*_environments(found)][:_PLACES]), *_not_tried(found)]
    yield from above
    yield from _reasons_within(_SCREEN - len(above) - len(below), found.models)
    yield from below


def _reasons_within(room: int, models: Sequence[ShippedModel]) -> Iterator[str]:
    """Yield why targets are not shipped, each reason in a line, in about so many lines."""
    groups = {
        answer: [*_reasons(answer, models, _FEW)] for answer in (ShippingAnswer.NOT, ShippingAnswer.UNKNOWN)
    }
    groups = {answer: reasons for answer, reasons in groups.items() if reasons}
    for place, (answer, reasons) in enumerate(groups.items()):
        # An empty line, a heading and how many more there are; and two reasons at least.
        share = max(room // (len(groups) - place) - 3, 2)
        shown = [_cut(f"  {one}") for one in reasons[:share]]
        if len(reasons) > share:
            shown.append(f"  and {plural(len(reasons) - share, 'more reason')}, see --details")
        yield from ("", f"{answer}, because", *shown)
        room -= len(shown) + 2


def details_of(found: FolderAdvice) -> Iterator[str]:
    """Yield lines of at most 80 columns: every target that may be shipped, and every reason."""
    yield _head(found)
    yield ""
    yield from _table(found.models)
    for answer in (ShippingAnswer.NOT, ShippingAnswer.UNKNOWN):
        if reasons := [*_reasons(answer, found.models, _NAMED)]:
            yield f"{answer}, because"
            for one in reasons:
                yield from wrapped(one, "  ", "    ")
            yield ""
    for line in _environments(found):
        yield from wrapped(line, "", "    ")
    yield from _not_tried(found)


def _head(found: FolderAdvice) -> str:
    return (
        f"{plural(len(found.models), 'model')} on {plural(len(found.targets), 'target')}: "
        f"{found.tried} configurations tried in {found.elapsed_s:.0f} s"
    )


def _not_tried(found: FolderAdvice) -> Iterator[str]:
    if found.not_tried:
        why = "interrupted" if found.stopped_by == "interrupt" else "the time is used up; raise --budget"
        yield from wrapped(f"not tried: {plural(found.not_tried, 'further configuration')} ({why})")


def _cut(line: str) -> str:
    """Return a line of at most 80 columns; spaces at its beginning stay."""
    inner = line.lstrip(" ")
    return line[: len(line) - len(inner)] + one_line(inner, WIDTH - (len(line) - len(inner)))


def _best_of_each(models: Sequence[ShippedModel]) -> Iterator[str]:
    """Yield a line for each model: the best target that may be shipped, with its option."""
    best = [(model, _best(model)) for model in models]
    names = [one_line(visible(model.model.removesuffix(".onnx")), _SHORT_NAME) for model in models]
    wide = max(map(len, ["model", *names]))
    room = WIDTH - wide - 3 - len(_FIGURES)
    ships = ["nothing" if row is None else _with_option(row, room) for _, row in best]
    narrow = max(map(len, ["ship", *ships]))
    yield f"{'model':<{wide}}   {'ship':<{narrow}}{_FIGURES}"
    for name, ship, (_, row) in zip(names, ships, best, strict=True):
        star = "*" if row is not None and row.is_fastest else " "
        yield f"{name:<{wide}} {star} {ship:<{narrow}}{'' if row is None else _figures(row)}".rstrip()
        if row is not None and row.option and visible(row.option) not in ship:
            yield _cut(f"{'':<{wide + 5}}with {visible(row.option)}")
    yield ""
    yield "* the fastest of those that may be shipped. bits: precision of the worst output."
    yield "times: p50 / that of the CPU provider. More of each: --details, --json."


def _best(model: ShippedModel) -> Shipping | None:
    """Return the fastest; or of those that are near it the first, without an option if there is one."""
    shipped = [row for row in model.rows if row.ships]
    least_ms = min((row.p50_ms for row in shipped if row.p50_ms), default=0.0)
    return min(
        shipped,
        key=lambda row: (
            not row.is_fastest,
            (row.p50_ms or least_ms) > NEAR_FASTEST * least_ms,
            bool(row.option),
        ),
        default=None,
    )


def _with_option(row: Shipping, room: int) -> str:
    """Return target and option, or the target alone if both are longer than ``room``."""
    target = one_line(visible(row.target), 16)
    both = f"{target} {visible(row.option)}" if row.option else target
    return both if len(both) <= room else target


def _also(models: Sequence[ShippedModel]) -> Iterator[str]:
    """Yield which other targets may be shipped, and of how many models."""
    others = Counter(
        row.target for model in models for row in model.rows if row.ships and row is not _best(model)
    )
    if others:
        told = ", ".join(
            f"{one_line(visible(name), 16)} ({plural(count, 'model')})" for name, count in others.items()
        )
        yield _cut(f"may be shipped as well: {told}")


def _table(models: Sequence[ShippedModel]) -> Iterator[str]:
    names = {
        model.model: one_line(visible(model.model.removesuffix(".onnx")), _LONGEST_NAME) for model in models
    }
    targets = [one_line(visible(row.target), 16) for model in models for row in model.rows]
    wide, narrow = max(map(len, ["model", *names.values()])), max(map(len, ["ship", *targets]))
    yield f"{'model':<{wide}}   {'ship':<{narrow}}{_FIGURES}"
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
        yield from wrapped(f"no fastest of {_named(concerned, models, _NAMED)}: {why}")
    yield ""


def _line(beginning: str, row: Shipping, narrow: int) -> Iterator[str]:
    target = one_line(visible(row.target), 16)
    yield f"{beginning}{target:<{narrow}}{_figures(row)}"
    if row.option:
        why = f" ({one_line(visible(row.because), 120)})" if row.because else ""
        yield from wrapped(f"with {visible(row.option)}{why}", " " * len(beginning) + "  ")


def _figures(row: Shipping) -> str:
    """Return accuracy, agreement, speed and memory, as wide as ``_FIGURES``."""
    bits = "exact" if row.bits is None else f"{row.bits:.1f}"
    agreement = row.choice.record.agreement
    answers = answers_ratio(agreement) or "-"
    if len(answers) > _ANSWERS and (share := least_share(agreement)) is not None:
        answers = f"{share:.1%}"
    p50_ms, times = (("-" if one is None else ratio(one)) for one in (row.p50_ms, row.times))
    memory = "-" if row.memory_mib is None else f"{row.memory_mib:,.0f}"
    return f" {bits:>5} {answers:>7} {p50_ms:>7} {times:>6} {memory:>5}"


def _reasons(answer: ShippingAnswer, models: Sequence[ShippedModel], most: int) -> Iterator[str]:
    """Yield the targets that are not shipped, each reason once; ``most`` models are named."""
    groups: dict[str, list[tuple[ShippedModel, Shipping]]] = {}
    for model in models:
        for row in model.rows:
            if row.answer is answer:
                groups.setdefault(plain_cause(row.because)[:_REASON_CHARS], []).append((model, row))
    for its in sorted(groups.values(), key=len, reverse=True):
        targets = ", ".join(dict.fromkeys(one_line(visible(row.target), 16) for _, row in its))
        concerned = {model.model: model for model, _ in its}
        why = one_line(visible(its[0][1].because), _REASON_CHARS)
        varies = " (details vary)" if len({row.because for _, row in its}) > 1 else ""
        yield f"{targets}: {_named([*concerned.values()], models, most)}: {why}{varies}"


def _by_reason(
    pairs: Iterator[tuple[str, ShippedModel]],
) -> Iterator[tuple[str, list[ShippedModel]]]:
    groups: dict[str, list[ShippedModel]] = {}
    for why, model in pairs:
        if why:
            groups.setdefault(why, []).append(model)
    yield from groups.items()


def _named(concerned: Sequence[ShippedModel], all_of: Sequence[ShippedModel], most: int) -> str:
    """Return the names of models, or that it is all; ``most`` are named."""
    if len(concerned) == len(all_of) > 1:
        return "all models"
    names = [
        one_line(visible(model.model.removesuffix(".onnx")), _LONGEST_NAME) for model in concerned[:most]
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
        yield f"on  {visible(name)}: {one_line(visible(what), 200)}"


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
