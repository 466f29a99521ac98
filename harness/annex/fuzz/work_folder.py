"""Models and goldens of a campaign on disk: made when needed, and removed once judged."""

import contextlib
import shutil
import time
from pathlib import Path

from harness.annex.made.fuzz_suite import fuzz_maker, fuzz_suite_name
from harness.corpus.suites.suite import Suite
from harness.corpus.suites.suites import operator_tests


def suite_in(root: Path, seed: int) -> Suite:
    """Return the suite of a seed whose models are made in a new folder, and kept nowhere else."""
    root.mkdir(parents=True, exist_ok=True)
    return Suite(
        name=fuzz_suite_name(seed),
        root=root,
        kind="built_in",
        names=(),
        cache=None,
        make=fuzz_maker(seed, operator_tests),
    )


def remove_model(root: Path, model: str) -> None:
    """Remove a model that was judged, with its lock."""
    shutil.rmtree(root / model, ignore_errors=True)
    with contextlib.suppress(OSError):
        (root / f"{model}.lock").unlink()


def prune_old_goldens(root: Path, older_than_s: float) -> None:
    """Remove goldens that were written so many seconds ago: no open model needs them any more."""
    limit = time.time() - older_than_s
    for entry in root.glob("??/*"):
        with contextlib.suppress(OSError):
            if entry.stat().st_mtime < limit:
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink()
