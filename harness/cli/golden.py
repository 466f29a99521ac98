"""`ep-harness golden`: what the CPU provider computed, recorded, computed anew, and removed."""

import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.cli.cross_checks import Checks, differing, table
from harness.cli.doctor import tell
from harness.cli.selection import Selection
from harness.core.errors import Problem, UsageError, one_line, valid_names
from harness.core.exit_code import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED
from harness.core.text import visible
from harness.corpus.derived import prune_derived
from harness.engine.prepare import prepare
from harness.golden.kept import Removed, prune_goldens
from harness.golden.movement import Movement
from harness.golden.provenance import provenance
from harness.golden.recording import Recorder, read_recording
from harness.plan.selector import model_matcher
from harness.plan.target import Runtime
from harness.run.summary import WIDTH
from harness.studies.ask import Told
from harness.studies.record_goldens import Recorded, record
from harness.studies.verify_goldens import Check, Outcome, Verified, verify_kept, verify_recording

DAY_S = 86400.0
MIB = 1 << 20
LISTED = 10
"""Lines of a list for people; `--json` has all of it."""

OUTCOMES: dict[Outcome, str] = {
    "moved": "moved",
    "unrepeatable": "moved, as each time",
    "refused": "now refused",
    "lost": "now lost",
    "computes": "refused before, computed now",
    "refused_before_too": "refused as before",
}
"""In words, all but ``same``."""

UNHARMED: frozenset[Outcome] = frozenset({"same", "unrepeatable", "refused_before_too"})
"""What changes nothing for anybody."""


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Which onnxruntime computes; the harness's own where nothing is said.

    Attributes:
        packages: Requirements of an environment to build.
        python_version: Which Python they are for; None for the harness's own.
        target: A target of the matrix, whose runtime is meant.
    """

    packages: Sequence[str] = ()
    python_version: str | None = None
    target: str | None = None


def record_goldens(matrix: Path, *, model: str | None, out: Path | None, as_json: bool) -> int:
    """Compute and keep the goldens of a matrix's models.

    Args:
        matrix: The matrix file.
        model: Glob on ``suite/model``; None for all.
        out: Folder that they are written into as well; None for the cache alone.
        as_json: Print one JSON object in place of the lines.

    Returns:
        0; 3 where a model could not be read, or there was nobody to ask; 130 where it was interrupted.

    Raises:
        UsageError: The matrix or the glob is wrong, or the folder cannot be written.
    """
    plan, suites = prepare(matrix)
    plan = Selection(model=model).of(plan)
    recorder = Recorder(out) if out else None
    found = record(plan, suites, recorder, tell, _show)
    if as_json:
        _json({"provenance": provenance(), **msgspec.to_builtins(found)})
    else:
        _say(_recorded(found))
        if out and found.complete:
            _say([f"wrote        {out}"])
    if not found.complete:
        return EXIT_INTERRUPTED
    return EXIT_INCOMPLETE if found.unasked else EXIT_OK


def verify_goldens(what: Path, where: Where, *, model: str | None, as_json: bool) -> int:
    """Compute goldens anew, and say which outputs moved.

    Args:
        what: A matrix file, for what the cache keeps of its models; or the folder of a recording.
        where: Whose CPU provider computes.
        model: Glob on ``suite/model``; None for all.
        as_json: Print one JSON object in place of the tables.

    Returns:
        0 where nothing moved; 1 where an output moved, a model is computed no longer or only now, or what was
        recorded has been altered; 3 where a model could not be read, or there was nobody to ask; 130 where it
        was interrupted.

    Raises:
        UsageError: An argument is wrong, or nothing is recorded.
    """
    if what.is_dir():
        if where.target is not None:
            text = "means nothing for a recording, which has no targets"
            raise UsageError(Problem(where="--target", what=text, hint="name --packages"))
        found = _verify_recording(what, _runtime(where, {}), model)
    else:
        plan, suites = prepare(what)
        runtime = _runtime(where, {target.name: target.runtime for target in plan.matrix.targets})
        found = verify_kept(Selection(model=model).of(plan), suites, runtime, tell, _show)
        if found.unrecorded and not (found.checks or found.unasked or found.altered) and found.complete:
            text = f"the cache has no golden of its {len(found.unrecorded)} models"
            hint = f"ep-harness golden record {what}"
            raise UsageError(Problem(where=str(what), what=text, hint=hint))
    if as_json:
        _json(msgspec.to_builtins(found))
    else:
        _say(_verified(found))
    if not found.complete:
        return EXIT_INTERRUPTED
    if found.altered or any(check.outcome not in UNHARMED for check in found.checks):
        return EXIT_UNEXPECTED
    return EXIT_INCOMPLETE if found.unasked else EXIT_OK


def prune(*, older_than_days: float, as_json: bool) -> int:
    """Remove the goldens, and models made from others, that have not been used for so many days."""
    older_than_s = older_than_days * DAY_S
    gone = list(prune_goldens(older_than_s=older_than_s))
    models = list(prune_derived(older_than_s=older_than_s))
    removed, nbytes = len(gone) + len(models), sum(one.nbytes for one in gone) + sum(models)
    if as_json:
        by = dict(_by_maker(gone))
        _json({"removed": removed, "nbytes": nbytes, "by": by, "models": len(models)})
    elif removed:
        _say(
            f"removed  {count:>7,}  {maker or 'what cannot be read'}"
            for maker, count in _by_maker(gone).items()
        )
        if models:
            _say([f"removed  {len(models):>7,}  models made from others"])
        _say([f"removed  {removed:>7,}  in all, {nbytes / MIB:,.1f} MiB"])
    else:
        _say(["nothing to remove"])
    return EXIT_OK


def _by_maker(gone: Sequence[Removed]) -> Counter[str]:
    return Counter(one.by for one in gone)


def _runtime(where: Where, targets: Mapping[str, Runtime]) -> Runtime:
    if where.target is not None:
        if where.packages:
            what = "both say which onnxruntime computes; name one of the two"
            raise UsageError(Problem(where="--target, --packages", what=what))
        if where.target not in targets:
            what = f"the matrix has no target {where.target!r}"
            raise UsageError(Problem(where="--target", what=what, hint=valid_names(where.target, targets)))
        return targets[where.target]
    if where.python_version and not where.packages:
        what = "says which Python the packages are for, and none is named"
        raise UsageError(Problem(where="--python", what=what, hint="name --packages"))
    return Runtime(packages=tuple(where.packages), python_version=where.python_version)


def _verify_recording(folder: Path, runtime: Runtime, model: str | None) -> Verified:
    chosen = model_matcher(() if model is None else (model,))
    if model is not None and not any(chosen(one.suite, one.model) for one in read_recording(folder).models):
        what = f"no model of the recording matches {model!r}"
        raise UsageError(Problem(where="--model", what=what))
    return verify_recording(folder, chosen, runtime, tell, _show)


# --- what people read ---


def _recorded(found: Recorded) -> Iterator[str]:
    release = provenance()["onnxruntime"] or "?"
    total = found.computed + found.known
    goldens = f"{total:,} golden{'' if total == 1 else 's'} of onnxruntime {release}"
    yield f"{goldens}: {found.computed:,} computed now, {found.known:,} known before"
    yield from _list("refused by the CPU EP, which is kept as its answer", found.refused)
    yield from _list("disputed, and so no measure for anybody", found.disputed)
    yield from _list("without a golden", found.lost)
    yield from _list("not asked", found.unasked)
    yield from _cross_checks(found.cross_checks)
    if not found.complete:
        yield "interrupted: the rest is still to be computed"


def _verified(found: Verified) -> Iterator[str]:
    groups: dict[tuple[tuple[str, str], ...], list[Check]] = {}
    for check in found.checks:
        groups.setdefault(tuple(sorted(check.since.items())), []).append(check)
    for since, checks in groups.items():
        yield from _group(dict(since), found.onnxruntime, checks)
    yield from _list("not as it was recorded", [Told(model=one, message="") for one in found.altered])
    yield from _list("not asked", found.unasked)
    yield from _list("not recorded", [Told(model=one, message="") for one in found.unrecorded])
    yield from _cross_checks(found.cross_checks)
    if not found.complete:
        yield "interrupted: the rest was not looked at"


def _group(since: Mapping[str, str], now: str, checks: Sequence[Check]) -> Iterator[str]:
    counts = Counter(check.outcome for check in checks)
    told = [f"{counts['same']:,} the same"]
    told += [f"{counts[outcome]:,} {words}" for outcome, words in OUTCOMES.items() if counts[outcome]]
    release = since.get("onnxruntime", "?")
    yield from textwrap.wrap(f"onnxruntime {release} -> {now or '?'}: {', '.join(told)}", WIDTH)
    elsewhere = [
        f"{key} {value}"
        for key, value in since.items()
        if key != "onnxruntime" and provenance().get(key) != value
    ]
    if elsewhere:
        yield from _wrapped(f"recorded with {', '.join(elsewhere)}", 2)
    moved = [check for check in checks if check.outcome == "moved"]
    if moved:
        yield from _table(moved)
    for outcome, words in OUTCOMES.items():
        if outcome not in {"moved", "refused_before_too"}:
            some = [Told(model=one.model, message=one.message) for one in checks if one.outcome == outcome]
            yield from _list(words, some)


_NAME, _FIGURE = 40, 9


def _table(checks: Sequence[Check]) -> Iterator[str]:
    yield f"{'  moved':<{_NAME}}" + "".join(
        f" {one:>{_FIGURE}}" for one in ("max_abs", "max_rel", "bits", "headroom")
    )
    for check in checks:
        yield f"  {one_line(check.model, WIDTH - 2)}"
        for movement in check.movements:
            yield from _row(movement)
    outside = sum(bool(movement.message) for check in checks for movement in check.movements)
    if outside:
        yield f"  headroom: error / default tolerance; {outside:,} beyond 1, where an EP would fail"


def _row(movement: Movement) -> Iterator[str]:
    metrics = movement.metrics
    first = movement.data_set in {"generated", "test_data_set_0"}
    name = metrics.name if first else f"{movement.data_set}: {metrics.name}"
    label = f"{'    ' + one_line(name, _NAME - 5):<{_NAME}}"
    if metrics.max_abs is None or metrics.headroom is None:
        yield label.rstrip()
        yield from _wrapped(one_line(movement.message), 6)
        return
    bits = "-" if metrics.delivered_bits is None else f"{round(metrics.delivered_bits, 1) + 0.0}"
    relative = "-" if metrics.max_rel is None else f"{metrics.max_rel:.2g}"
    figures = f"{metrics.max_abs:.2g}", relative, bits, f"{metrics.headroom:.2g}"
    yield label + "".join(f" {one:>{_FIGURE}}" for one in figures)


def _cross_checks(checks: Checks) -> Iterator[str]:
    yield from table(checks)
    for by, models in differing(checks).items():
        yield f"  {by} differs: {len(models):,}"
        for model, message in models[:LISTED]:
            yield f"      {one_line(model, WIDTH - 6)}"
            yield from _wrapped(message, 8)
        if len(models) > LISTED:
            yield f"      and {len(models) - LISTED:,} more; --json has them all"


def _list(heading: str, told: Sequence[Told]) -> Iterator[str]:
    """A list for people: what is the same of many models stands there once."""
    if not told:
        return
    yield f"  {heading}: {len(told):,}"
    groups: dict[str, list[str]] = {}
    for one in told:
        groups.setdefault(one.message, []).append(one.model)
    for message, models in list(groups.items())[:LISTED]:
        yield from _wrapped(one_line(message, 3 * WIDTH), 4)
        shown = models[: LISTED if not message else 1]
        for model in shown:
            yield f"      {one_line(model, WIDTH - 6)}"
        if len(models) > len(shown):
            yield f"      and {len(models) - len(shown):,} more"
    if len(groups) > LISTED:
        yield f"    and {len(groups) - LISTED:,} other reasons; --json has them all"


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent)


def _show(done: int, total: int) -> None:
    """How far it is, where a person looks on."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done:,} of {total:,} answers" + ("\n" if done == total else ""))


def _json(what: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(what)).decode() + "\n")


def _say(lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        sys.stdout.write(visible(line) + "\n")
