"""`ep-harness init`: a commented matrix for what doctor finds here."""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cli.doctor import ABSENT, tell
from harness.cli.toml_text import inline_table, text
from harness.core.errors import Problem, UsageError
from harness.core.text import visible
from harness.engine.job import CPU
from harness.studies.doctor import Row, examine

HEAD = """\
# Written by `ep-harness init` for what can be used on this machine. Every key: docs/reference/matrix.md.
schema = 1

[models]
suites  = ["onnx-node"]      # ONNX's operator tests; `ep-harness list --suites` names the others
# folders = ["models"]       # every *.onnx below; test_data_set_N beside a model where present

# [axes]                     # the product is taken, for every target
# graph_optimization = ["all", "disabled"]
"""

TAIL = """
# What is known to be wrong, so that whatever changes is news: the run then fails on anything else.
# [[expect]]
# model   = "onnx-node/test_stft*"
# target  = "qnn"
# verdict = "crash"
# reason  = "https://..."
"""


def init(out: Path) -> int:
    """Write a matrix with a target for each provider that computes here.

    Raises:
        UsageError: The file exists already or cannot be written, or there is nothing to write.
    """
    if out.exists():
        raise _exists(out)
    rows = examine(None, tell)
    usable = [row for row in rows if row.usable and row.nodes]
    if not usable:
        broken = next(row for row in rows if row.provider == CPU)
        raise UsageError(
            Problem(where="init", what=f"no provider works here: {broken.reason}", hint=broken.advice)
        )
    try:
        with out.open("x", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(matrix_text(rows)))
    except FileExistsError:
        raise _exists(out) from None
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise UsageError(Problem(where=str(out), what=what)) from error
    names = ", ".join(target_names(usable))
    sys.stdout.write(f"wrote    {out}: {len(usable)} targets ({names})\nnext     ep-harness run {out}\n")
    return 0


def matrix_text(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the file.

    Args:
        rows: Those of the harness's own interpreter.
    """
    yield HEAD
    usable = [row for row in rows if row.usable and row.nodes]
    for name, row in zip(target_names(usable), usable, strict=True):
        yield from _target(name, row)
    for row in rows:
        if row.usable and not row.nodes:
            yield from _comment(f"{row.provider} works, and computes nothing itself.")
        elif not row.usable and row.cause not in ABSENT:
            yield from _comment(f"{row.provider} cannot be used yet ({row.cause}): {row.advice}")
    yield "# `ep-harness doctor` says what other providers there are, and what each takes."
    yield TAIL


def short_name(provider: str) -> str:
    """A name for a target of a provider: ``openvino`` for ``OpenVINOExecutionProvider``."""
    return provider.removesuffix("ExecutionProvider").lower() or "target"


def target_names(rows: Sequence[Row]) -> list[str]:
    """A short name for each row, unique."""
    names: list[str] = []
    for row in rows:
        short = short_name(row.provider)
        taken = short in names
        names.append(f"{short}-{len(names)}" if taken else short)
    return names


def _target(name: str, row: Row) -> Iterator[str]:
    for remark in row.remarks:
        yield from _comment(remark)
    yield "[[target]]"
    yield f"name     = {text(name)}"
    yield f"provider = {text(row.provider)}"
    if row.plugin:
        yield f"plugin   = {text(row.plugin)}"
    for key, table in (("options", row.options), ("env", row.env)):
        if table:
            yield f"{key:<8} = {inline_table(table)}"
    if len(row.devices) > 1:
        for each in row.devices:
            device = each["device"]
            yield from _comment(
                f"device = {{ type = {text(device.get('type', ''))} }}  # {device.get('vendor', '')}"
            )
    if row.provider == CPU:
        yield "required = true              # without it nothing here means anything"
    yield ""


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        visible(text), 108, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
    )


def _exists(out: Path) -> UsageError:
    return UsageError(Problem(where=str(out), what="exists already", hint="name another file: --out FILE"))
