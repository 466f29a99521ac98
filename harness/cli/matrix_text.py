"""Matrix files that commands write."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.core.files.writing import write_new
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.text.errors import UsageError
from harness.core.text.visible_text import visible
from harness.studies.usable_providers import ABSENT, DoctorRow

HEAD = """\
# Written by `ep-harness init` for what can be used on this machine. Every key: docs/reference/matrix.md.
schema = 1

[models]
suites  = ["onnx-node"]      # ONNX's operator tests; `ep-harness list --suites` names the others
# folders = ["models"]       # every *.onnx below; test_data_set_N beside a model where present

# [axes]                     # the product is taken, for every target
# graph_optimization = ["all", "disabled"]
"""

HEAD_OF_FOLDERS = """\
# Written by `ep-harness init` for the models here, on what can be used on this machine.
# Every key: docs/reference/matrix.md.
schema = 1

[models]
folders = {folders}          # every *.onnx below; test_data_set_N beside a model where present
# suites = ["onnx-node"]     # ONNX's operator tests; `ep-harness list --suites` names the others

[[latency]]                  # speed and memory for the table *What to ship* of the report
repeats  = 100
budget_s = 1                 # seconds for each cell at most

# [axes]                     # the product is taken, for every target
# graph_optimization = ["all", "disabled"]
"""
"""The beginning of a matrix for a folder with models; ``{folders}`` is a list."""

_TAIL = """
# Known faults of a provider. The run fails on every other verdict, a pass included.
# [[expect]]
# model   = "onnx-node/test_stft*"
# target  = "qnn"
# verdict = "crash"
# reason  = "https://..."
"""


_NO_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that a target's name must not have; a plugin may call its provider anything."""

_LONGEST = 100
"""Length of a short name; a target's name leaves room for a place and a number."""


def matrix_of(rows: Sequence[DoctorRow], head: str = HEAD) -> Iterator[str]:
    """Yield the lines of a matrix file with a target for each usable provider; ``head`` names its models."""
    yield head
    usable = [row for row in rows if row.computes]
    for name, row in zip(target_names(usable), usable, strict=True):
        yield from _target(name, row)
    for row in rows:
        if row.usable and not row.nodes:
            yield from _comment(f"{row.provider} works, and computes nothing itself.")
        elif not row.usable and row.cause not in ABSENT:
            yield from _comment(f"{row.provider} cannot be used yet ({row.cause}): {row.advice}")
    yield "# `ep-harness doctor` lists the other providers, and what each needs."
    yield _TAIL


def target_lines(name: str, provider: str, **values: str | Mapping[str, str] | None) -> Iterator[str]:
    """Yield the lines of a target: its name, its provider, and further keys that have a value."""
    yield "[[target]]"
    for key, value in {"name": name, "provider": provider, **values}.items():
        if value is not None and value != {}:
            yield f"{key:<8} = {toml(value)}"


def toml(value: object) -> str:
    """Return a value in one line of TOML: a text, an inline table, a list, a number or a boolean."""
    if isinstance(value, str):
        # JSON's escapes are valid in TOML, which must also escape U+007F.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(name)} = {toml(below)}' for name, below in value.items())} }}"
    if isinstance(value, Iterable):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def short_name(provider: str) -> str:
    """Return a target name for a provider: ``openvino`` for ``OpenVINOExecutionProvider``."""
    name = _NO_TEXT.sub("_", provider.removesuffix("ExecutionProvider").lower())
    return name[:_LONGEST] or "target"


def target_names(rows: Iterable[DoctorRow]) -> list[str]:
    """Return a short name for each row; all are different."""
    names: list[str] = []
    for row in rows:
        short = short_name(row.provider)
        names.append(f"{short}-{len(names)}" if short in names else short)
    return names


def _key(name: str) -> str:
    is_bare = name.replace("_", "").replace("-", "").isalnum() and name.isascii()
    return name if is_bare else toml(name)


def _target(name: str, row: DoctorRow) -> Iterator[str]:
    for remark in row.remarks:
        yield from _comment(remark)
    yield from target_lines(name, row.provider, plugin=row.plugin, options=row.options, env=row.env)
    if len(row.devices) > 1:
        for each in row.devices:
            device = each["device"]
            kind = toml(str(device.get("type", "")))
            yield from _comment(f"device = {{ type = {kind} }}  # {device.get('vendor', '')}")
    if row.provider == CPU:
        yield "required = true              # the reference for all other targets"
    yield ""


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        visible(text), 108, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
    )


def write_new_matrix(file: Path, content: str) -> None:
    """Write the matrix file of a run folder, which is created if necessary."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_new(file, content.encode())
    except OSError as error:
        taken = isinstance(error, FileExistsError)
        what = "a run or another file is there already" if taken else f"cannot be written: {error.strerror}"
        raise UsageError.at(file, what, "choose another folder: --out") from error
