"""The results of recording and verifying goldens as lines of at most 80 columns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

from harness.cli.output import wrapped
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import WIDTH
from harness.golden.movement import Movement
from harness.golden.provenance import provenance
from harness.golden.recording import CrossCheck, RecordingResult
from harness.studies.ask import ModelNote
from harness.studies.record_goldens import Recorded
from harness.studies.verify_goldens import GoldenOutcome, GoldenVerification, Verified

_LISTED = 10
"""Lines of a list at most; `--json` has all."""

_OUTCOMES: dict[GoldenOutcome, str] = {
    "moved": "moved",
    "unrepeatable": "moved, not repeatable",
    "refused": "now refused",
    "lost": "now lost",
    "computes": "refused before, computed now",
    "refused_before_too": "refused as before",
}
"""All outcomes but ``same``, in words."""

_NAME, _FIGURE = 40, 9


def recorded_lines(found: Recorded) -> Iterator[str]:
    """Yield the result of recording goldens."""
    release = provenance()["onnxruntime"] or "?"
    total = found.computed + found.known
    goldens = f"{plural(total, 'golden')} of onnxruntime {release}"
    yield f"{goldens}: {found.computed:,} computed now, {found.known:,} known before"
    yield from _list("refused by the CPU EP; the refusal is the golden", found.refused)
    yield from _list("disputed, so not used for judging", found.disputed)
    yield from _list("without a golden", found.lost)
    yield from _list("not computed", found.unasked)
    yield from _cross_checks(found.cross_checks)
    if not found.complete:
        yield "interrupted: the rest is not computed yet"


def verified_lines(found: Verified) -> Iterator[str]:
    """Yield the result of verifying goldens: a group for each provenance, then the exceptions."""
    groups: dict[tuple[tuple[str, str], ...], list[GoldenVerification]] = {}
    for check in found.checks:
        groups.setdefault(tuple(sorted(check.since.items())), []).append(check)
    for since, checks in groups.items():
        yield from _group(dict(since), found.onnxruntime, checks)
    yield from _list("altered since recording", [ModelNote(model=one, message="") for one in found.altered])
    yield from _list("not computed", found.unasked)
    yield from _list("not recorded", [ModelNote(model=one, message="") for one in found.unrecorded])
    yield from _cross_checks(found.cross_checks)
    if not found.complete:
        yield "interrupted: the rest was not verified"


def _group(since: Mapping[str, str], now: str, checks: Sequence[GoldenVerification]) -> Iterator[str]:
    counts = Counter(check.outcome for check in checks)
    counted = [f"{counts['same']:,} the same"]
    counted += [f"{counts[outcome]:,} {words}" for outcome, words in _OUTCOMES.items() if counts[outcome]]
    release = since.get("onnxruntime", "?")
    yield from wrapped(f"onnxruntime {release} -> {now or '?'}: {', '.join(counted)}", indent="")
    elsewhere = [
        f"{key} {value}"
        for key, value in since.items()
        if key != "onnxruntime" and provenance().get(key) != value
    ]
    if elsewhere:
        yield from wrapped(f"recorded with {', '.join(elsewhere)}", "  ")
    moved = [check for check in checks if check.outcome == "moved"]
    if moved:
        yield from _moved(moved)
    for outcome, words in _OUTCOMES.items():
        if outcome not in {"moved", "refused_before_too"}:
            some = [
                ModelNote(model=one.model, message=one.message) for one in checks if one.outcome == outcome
            ]
            yield from _list(words, some)


def _moved(checks: Sequence[GoldenVerification]) -> Iterator[str]:
    yield _row("  moved", ("max_abs", "max_rel", "bits", "headroom"))
    for check in checks:
        yield f"  {one_line(check.model, WIDTH - 2)}"
        for movement in check.movements:
            yield from _movement(movement)
    outside = sum(bool(movement.message) for check in checks for movement in check.movements)
    if outside:
        yield f"  headroom: error / default tolerance; {outside:,} beyond 1, where an EP would fail"


def _movement(movement: Movement) -> Iterator[str]:
    metrics = movement.metrics
    first = movement.data_set in {"generated", "test_data_set_0"}
    label = f"    {one_line(metrics.name if first else f'{movement.data_set}: {metrics.name}', _NAME - 5)}"
    if metrics.max_abs is None or metrics.headroom is None:
        yield label
        yield from wrapped(one_line(movement.message), " " * 6)
        return
    bits = "-" if metrics.delivered_bits is None else f"{round(metrics.delivered_bits, 1) + 0.0}"
    relative = "-" if metrics.max_rel is None else f"{metrics.max_rel:.2g}"
    yield _row(label, (f"{metrics.max_abs:.2g}", relative, bits, f"{metrics.headroom:.2g}"))


def _cross_checks(checks: Mapping[str, Sequence[CrossCheck]]) -> Iterator[str]:
    """Yield how many goldens each reference confirms, then the models for which a reference differs."""
    counts: dict[str, Counter[RecordingResult]] = {}
    differing: dict[str, list[tuple[str, str]]] = {}
    for model, of_model in checks.items():
        for check in of_model:
            counts.setdefault(check.by, Counter())[check.result] += 1
            if check.result == "differs":
                differing.setdefault(check.by, []).append((model, check.message))
    results: tuple[RecordingResult, ...] = get_args(RecordingResult)
    if counts:
        yield _row("  cross-checked with", results)
    for by, found in counts.items():
        yield _row(f"    {one_line(by, _NAME - 5)}", (f"{found[result]:,}" for result in results))
    for by, models in differing.items():
        yield f"  {by} differs: {len(models):,}"
        for model, message in models[:_LISTED]:
            yield f"      {one_line(model, WIDTH - 6)}"
            yield from wrapped(message, " " * 8)
        if len(models) > _LISTED:
            yield f"      and {len(models) - _LISTED:,} more; --json lists all"


def _list(heading: str, notes: Sequence[ModelNote]) -> Iterator[str]:
    """Yield models below a heading, grouped by message."""
    if not notes:
        return
    yield f"  {heading}: {len(notes):,}"
    groups: dict[str, list[str]] = {}
    for one in notes:
        groups.setdefault(one.message, []).append(one.model)
    for message, models in list(groups.items())[:_LISTED]:
        yield from wrapped(one_line(message, 3 * WIDTH), " " * 4)
        shown = models[: _LISTED if not message else 1]
        for model in shown:
            yield f"      {one_line(model, WIDTH - 6)}"
        if len(models) > len(shown):
            yield f"      and {len(models) - len(shown):,} more"
    if len(groups) > _LISTED:
        yield f"    and {len(groups) - _LISTED:,} other reasons; --json lists all"


def _row(label: str, figures: Iterable[str]) -> str:
    return f"{label:<{_NAME}}" + "".join(f" {one:>{_FIGURE}}" for one in figures)
