"""`ep-harness runtime`: environments made of packages."""

import datetime as dt
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cli.output import DAY_S, MIB, print_lines, print_result
from harness.core.text.counted import plural
from harness.core.text.errors import EXIT_OK, EXIT_USAGE
from harness.plan.matrix import read_matrix
from harness.plan.target import Runtime, is_path
from harness.runtimes.environments import KeptEnvironment, build, is_built, kept, prune_environments
from harness.runtimes.installer import InstallError


def list_runtimes(*, as_json: bool) -> int:
    """Print the runtimes in the cache, the last used ones first."""
    found = kept()
    print_result(found, [*map(_row, found), _total(found)], as_json=as_json)
    return EXIT_OK


def build_runtimes(what: Sequence[str], *, python: str | None) -> int:
    """Build the runtimes of all targets of matrices, and one runtime of the requirements.

    Returns:
        0, or 2 if a runtime cannot be built; the others are still built.
    """
    code = EXIT_OK
    for runtime in dict.fromkeys(_runtimes(what, python)):
        name = ", ".join(runtime.packages)
        started = time.monotonic()
        try:
            if is_built(runtime):
                line = f"cached   {name}"
            else:
                build(runtime)
                line = f"built    {name} in {time.monotonic() - started:.0f} s"
        except InstallError as error:
            code, line = EXIT_USAGE, f"failed   {name}: {error}"
        print_lines([line])
    return code


def prune_runtimes(*, older_than_days: float) -> int:
    """Remove the runtimes that have not been used for this many days."""
    gone = []
    for one in prune_environments(older_than_s=older_than_days * DAY_S):
        gone.append(one)
        print_lines([f"removed  {_row(one)}"])
    print_lines([f"removed  {_total(gone)}" if gone else "nothing to remove"])
    return EXIT_OK


def _runtimes(what: Sequence[str], python: str | None) -> Iterator[Runtime]:
    matrices = [one for one in what if one.endswith(".toml")]
    for matrix in matrices:
        targets = read_matrix(Path(matrix)).targets
        yield from (target.runtime for target in targets if target.runtime.packages)
    named = [str(Path(one).absolute()) if is_path(one) else one for one in what if one not in matrices]
    if named:
        yield Runtime(packages=tuple(named), python_version=python)


def _row(one: KeptEnvironment) -> str:
    if one.manifest is None:
        return f"{one.key}  (its manifest cannot be read)"
    used = dt.datetime.fromtimestamp(one.used_at, dt.UTC).strftime("%Y-%m-%d %H:%M")
    python = f"Python {one.manifest.python}" if one.manifest.python else "npm"
    size = f"{one.manifest.nbytes / MIB:.0f} MiB"
    return f"{one.key}  {python:<14} {size:>8}  used {used}  {', '.join(one.manifest.requirements)}"


def _total(found: Sequence[KeptEnvironment]) -> str:
    nbytes = sum(one.manifest.nbytes for one in found if one.manifest)
    return f"{plural(len(found), 'runtime')}, {nbytes / MIB:,.0f} MiB"
