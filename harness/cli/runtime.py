"""`ep-harness runtime`: the environments that are built from package names."""

import datetime as dt
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.core.exit_code import EXIT_USAGE
from harness.core.text import visible
from harness.engine.environments import Kept, build, is_built, kept, prune
from harness.engine.uv import InstallError
from harness.plan.matrix import load_matrix
from harness.plan.target import Runtime, is_path

DAY_S = 86400.0
MIB = 1 << 20


def list_runtimes(*, as_json: bool) -> int:
    """Print what the cache holds, the runtimes used last first."""
    found = kept()
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
        return 0
    for one in found:
        _say(_row(one))
    _say(_total(found))
    return 0


def build_runtimes(what: Sequence[str], *, python_version: str | None) -> int:
    """Build the runtimes of matrices, and one of the requirements that are named beside them.

    Args:
        what: Matrix files and requirements; what ends in ``.toml`` is a matrix.
        python_version: Which Python the requirements are for; None for the harness's own.

    Returns:
        0, or 2 where a runtime cannot be built; the others are built nevertheless.

    Raises:
        UsageError: A matrix is wrong.
    """
    failed = False
    for runtime in dict.fromkeys(_runtimes(what, python_version)):
        name = ", ".join(runtime.packages)
        started = time.monotonic()
        try:
            if is_built(runtime):
                _say(f"there    {name}")
                continue
            build(runtime)
            _say(f"built    {name} in {time.monotonic() - started:.0f} s")
        except InstallError as error:
            failed = True
            _say(f"failed   {name}: {error}")
    return EXIT_USAGE if failed else 0


def prune_runtimes(*, older_than_days: float) -> int:
    """Remove the runtimes that have not been used for so many days."""
    gone = []
    for one in prune(older_than_s=older_than_days * DAY_S):
        gone.append(one)
        _say(f"removed  {_row(one)}")
    _say(f"removed  {_total(gone)}" if gone else "nothing to remove")
    return 0


def _runtimes(what: Sequence[str], python_version: str | None) -> Iterator[Runtime]:
    matrices = [one for one in what if one.endswith(".toml")]
    for matrix in matrices:
        targets = load_matrix(Path(matrix)).targets
        yield from (target.runtime for target in targets if target.runtime.packages)
    named = [str(Path(one).absolute()) if is_path(one) else one for one in what if one not in matrices]
    if named:
        yield Runtime(packages=tuple(named), python_version=python_version)


def _row(one: Kept) -> str:
    if one.manifest is None:
        return f"{one.key}  (its manifest cannot be read)"
    used = dt.datetime.fromtimestamp(one.used_at, dt.UTC).strftime("%Y-%m-%d %H:%M")
    python, size = f"Python {one.manifest.python}", f"{one.manifest.nbytes / MIB:.0f} MiB"
    return f"{one.key}  {python:<14} {size:>8}  used {used}  {', '.join(one.manifest.requirements)}"


def _total(found: Sequence[Kept]) -> str:
    nbytes = sum(one.manifest.nbytes for one in found if one.manifest)
    return f"{len(found)} runtime{'' if len(found) == 1 else 's'}, {nbytes / MIB:,.0f} MiB"


def _say(line: str) -> None:
    sys.stdout.write(visible(line) + "\n")
    sys.stdout.flush()
