"""`ep-harness init`: write a matrix file for the providers that work here."""

from pathlib import Path

from harness.cli.matrix_text import matrix_of, target_names
from harness.cli.output import notify, print_lines
from harness.core.errors import EXIT_OK, UsageError
from harness.core.facts import CPU_PROVIDER as CPU
from harness.core.writing import write_new, writing
from harness.studies.doctor import Row, examine


def init(out: Path) -> int:
    """Write a matrix file with a target for each provider that computes here."""
    hint = "name another file: --out FILE"
    if out.exists():
        raise UsageError.at(out, "exists already", hint)
    rows = examine_here("init")
    with writing(out, hint=hint):
        write_new(out, "\n".join(matrix_of(rows)).encode())
    names = target_names(row for row in rows if row.computes)
    print_lines(
        [f"wrote    {out}: {len(names)} targets ({', '.join(names)})", f"next     ep-harness run {out}"]
    )
    return EXIT_OK


def examine_here(where: str) -> tuple[Row, ...]:
    """Try the providers of this machine; ``where`` names the command in an error."""
    rows = examine(None, notify)
    if not any(row.computes for row in rows):
        broken = next(row for row in rows if row.provider == CPU)
        raise UsageError.at(where, f"no provider works here: {broken.reason}", broken.advice)
    return rows
