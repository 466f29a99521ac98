"""`ep-harness golden`: record, verify or prune goldens, the results of the CPU provider."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness.cli.golden_text import recorded_lines, verified_lines
from harness.cli.output import DAY_S, MIB, notify, print_result
from harness.cli.selection import Selection
from harness.core.text.errors import (
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_UNEXPECTED,
    UsageError,
    valid_names,
)
from harness.corpus.derived.derived_models import prune_derived
from harness.data_files import data_root
from harness.golden.golden_list import prune_goldens
from harness.golden.provenance import provenance
from harness.golden.recording import Recorder
from harness.plan.target import Runtime
from harness.studies.record_goldens import record_goldens
from harness.studies.verify_goldens import GoldenOutcome, verify_kept, verify_recording

_UNCHANGED: frozenset[GoldenOutcome] = frozenset({"same", "unrepeatable", "refused_before_too"})


def record(matrix: Path, *, model: list[str], out: Path | None, as_json: bool) -> int:
    """Compute and keep the goldens of a matrix's models.

    Returns:
        0; 3 if a model could not be read or computed; 130 if interrupted.
    """
    plan = Selection(model=model).plan(matrix)
    found = record_goldens(plan, plan.suites, Recorder(out) if out else None, notify, _show)
    wrote = [f"wrote        {out}"] if out and found.complete else []
    told = {"provenance": provenance(), **msgspec.to_builtins(found)}
    print_result(told, [*recorded_lines(found), *wrote], as_json=as_json)
    if not found.complete:
        return EXIT_INTERRUPTED
    return EXIT_INCOMPLETE if found.unasked else EXIT_OK


def verify(
    what: Path | None,
    *,
    model: list[str],
    packages: Sequence[str],
    python: str | None,
    target: str | None,
    as_json: bool,
) -> int:
    """Compute goldens again, and print which outputs changed.

    Returns:
        0 if no output changed; 1 if one changed, a model is newly refused or newly computed, or a recording
        was altered; 3 if a model could not be read or computed; 130 if interrupted.
    """
    what = what or data_root() / "golden"
    if what.is_dir():
        if target is not None:
            raise UsageError.at("--target", "a recording has no targets", "name --packages")
        found = verify_recording(what, model, _runtime(packages, python, None, {}), notify, _show)
    else:
        plan = Selection(model=model).plan(what)
        targets = {one.name: one.runtime for one in plan.matrix.targets}
        runtime = _runtime(packages, python, target, targets)
        found = verify_kept(plan, plan.suites, runtime, notify, _show)
        if found.unrecorded and not (found.checks or found.unasked or found.altered) and found.complete:
            text = f"the cache has no golden of its {len(found.unrecorded)} models"
            raise UsageError.at(what, text, f"ep-harness golden record {what}")
    print_result(found, verified_lines(found), as_json=as_json)
    if not found.complete:
        return EXIT_INTERRUPTED
    if found.altered or any(check.outcome not in _UNCHANGED for check in found.checks):
        return EXIT_UNEXPECTED
    return EXIT_INCOMPLETE if found.unasked else EXIT_OK


def prune(*, older_than_days: float, as_json: bool) -> int:
    """Remove the goldens and derived models that have not been used for this many days."""
    older_than_s = older_than_days * DAY_S
    gone = list(prune_goldens(older_than_s=older_than_s))
    models = list(prune_derived(older_than_s=older_than_s))
    removed, nbytes = len(gone) + len(models), sum(one.nbytes for one in gone) + sum(models)
    by = Counter(one.by for one in gone)
    rows = [(count, maker or "unreadable entries") for maker, count in by.items()]
    rows += [(len(models), "derived models")] if models else []
    rows.append((removed, f"in all, {nbytes / MIB:,.1f} MiB"))
    lines = [f"removed  {count:>7,}  {name}" for count, name in rows] if removed else ["nothing to remove"]
    told = {"removed": removed, "nbytes": nbytes, "by": dict(by), "models": len(models)}
    print_result(told, lines, as_json=as_json)
    return EXIT_OK


def _runtime(
    packages: Sequence[str], python: str | None, target: str | None, targets: Mapping[str, Runtime]
) -> Runtime:
    if target is not None:
        if packages:
            what = "both choose the onnxruntime that computes; give one of them"
            raise UsageError.at("--target, --packages", what)
        if target not in targets:
            what = f"the matrix has no target {target!r}"
            raise UsageError.at("--target", what, valid_names(target, targets))
        return targets[target]
    if python and not packages:
        what = "chooses the Python for --packages, and no package is named"
        raise UsageError.at("--python", what, "name --packages")
    return Runtime(packages=tuple(packages), python_version=python)


def _show(done: int, total: int) -> None:
    """Show the progress, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done:,} of {total:,} results" + ("\n" if done == total else ""))
