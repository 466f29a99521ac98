"""The matrix that `ep-harness conform` runs: one profile on one target, with nothing to choose."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.annex.conformance.profile_matrix import profile_table
from harness.annex.conformance.profiles.profile import Profile
from harness.catalog.catalog import find_provider
from harness.cli.matrix_text import toml, write_new_matrix
from harness.cli.output import notify
from harness.cli.targets import ProviderRequest, in_its_place, naming_arguments
from harness.core.text.errors import UsageError, valid_names
from harness.plan.matrix import matrix_from, read_matrix
from harness.plan.target import Target

if TYPE_CHECKING:
    from harness.studies.usable_providers import DoctorRow

_WRITTEN = ("name", "provider", "axes", "required")
"""Keys of a target that are not copied: a profile has its own axes."""


class ConformOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a conformance run.

    Attributes:
        lines: Its table in a matrix file.
    """

    name: str
    provider: str
    lines: tuple[str, ...]


def wanted_of_request(request: ProviderRequest) -> ConformOptions:
    """Return the target of a provider named on the command line."""
    request = in_its_place(request)
    text = request.matrix_text()
    return ConformOptions(
        name=request.name,
        provider=request.provider,
        lines=tuple(text[text.index("[[target]]") :].rstrip().splitlines()),
    )


def wanted_of_matrix(name: str, file: Path) -> ConformOptions:
    """Return a target of a matrix file, without its axes: a profile has its own."""
    targets = {target.name: target for target in read_matrix(file).targets}
    if name not in targets:
        raise UsageError.at("--target", f"{file} has no target {name!r}", valid_names(name, targets))
    target = targets[name]
    if target.places is not None:
        hint = "name a target with one runtime: all cases of a submission are of one device"
        raise UsageError.at("--target", f"{name!r} has several places", hint)
    return ConformOptions(name=name, provider=target.provider[0], lines=tuple(_target_lines(target)))


def wanted_here(request: ProviderRequest) -> ConformOptions:
    """Return a provider with the settings with which it computes something here, as `doctor` finds them.

    If it computes nothing, return it unchanged: the run then reports why.
    """
    known = find_provider(request.provider)
    if known is None or known.name != request.provider or not (known.probes or known.plugin_packages):
        return wanted_of_request(request)
    from harness.studies.usable_providers import examine_provider  # an engine takes 0.2 s to import

    row = examine_provider(request.provider, notify)
    return wanted_of_request(request) if row is None or not row.computes else wanted_of_row(request, row)


def wanted_of_row(request: ProviderRequest, row: "DoctorRow") -> ConformOptions:
    """Return a provider with the settings with which `doctor` found that it computes."""
    options = [f"{key}={value}" for key, value in row.options.items()]
    wanted = wanted_of_request(msgspec.structs.replace(request, plugin=row.plugin, options=options))
    lines = (*wanted.lines, f"env      = {toml(row.env)}") if row.env else wanted.lines
    return msgspec.structs.replace(wanted, lines=lines)


def _target_lines(target: Target) -> Iterator[str]:
    """Yield the table of a target: its values other than defaults, with absolute paths."""
    yield "[[target]]"
    yield f"name = {toml(target.name)}"
    yield f"provider = {toml(target.provider)}"
    for key, value in _changed(target).items():
        if key not in _WRITTEN:
            yield f"{key} = {toml(value)}"
    yield "required = true"


def _changed(struct: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a struct that differ from their defaults, nested ones likewise."""
    plain: dict[str, Any] = {}
    for field in msgspec.structs.fields(type(struct)):
        value = getattr(struct, field.name)
        default = field.default if field.default is not msgspec.NODEFAULT else None
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if value is not None and value != default:
            plain[field.name] = _changed(value) if isinstance(value, msgspec.Struct) else value
    return plain


def matrix_text(profile: Profile, wanted: ConformOptions, without: Sequence[str] = ()) -> str:
    """Return the matrix for exactly the cases of a profile, or some of them, on a target.

    ``without`` are models of the archive that none of these cases uses.
    """
    table = profile_table(profile, without)
    lines = ["# Written by `ep-harness conform`. Every key: docs/reference/matrix.md.", "schema = 1", ""]
    for name in ("models", "axes"):
        if name in table:
            lines += [f"[{name}]", *(f"{key} = {toml(value)}" for key, value in table[name].items()), ""]
    for entry in table.get("exclude", ()):
        lines += ["[[exclude]]", *(f"{key:<8} = {toml(value)}" for key, value in entry.items()), ""]
    return "\n".join([*lines, *wanted.lines, ""])


def write_matrix(profile: Profile, wanted: ConformOptions, folder: Path, without: Sequence[str] = ()) -> Path:
    """Write the matrix of a run, after a check of it; arguments as for ``matrix_text``."""
    content, file = matrix_text(profile, wanted, without), folder / "matrix.toml"
    with naming_arguments(file):
        matrix_from(tomllib.loads(content), file)
    write_new_matrix(file, content)
    return file
