"""The catalogue: all provider files, found by name or alias; reading them may raise ``UsageError``."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from harness.catalog.checks import provider_contradictions
from harness.catalog.provider import Provider
from harness.core.text.errors import Problem, UsageError, one_line
from harness.data_files import data_root


class Catalog(msgspec.Struct, frozen=True):
    """All known execution providers, sorted by name."""

    providers: tuple[Provider, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The exact names, sorted."""
        return tuple(provider.name for provider in self.providers)

    def find(self, name_or_alias: str) -> Provider | None:
        """Return the provider of that name or alias, or None.

        Case is ignored: Windows ML has ``NvTensorRtRtxExecutionProvider`` for ``NvTensorRTRTX...``.
        """
        wanted = name_or_alias.casefold()
        return next((provider for provider in self.providers if wanted in _spellings(provider)), None)


@cache
def load_catalog() -> Catalog:
    """Return the shipped catalogue; read once per process."""
    return read_catalog(_folder())


@cache
def find_provider(name_or_alias: str) -> Provider | None:
    """Return the provider of the shipped catalogue with that name or alias, or None.

    It parses only files that contain the name: parsing all of them takes as long as importing numpy.
    """
    return read_catalog(_folder(), mentioning=name_or_alias).find(name_or_alias)


def read_catalog(folder: Path, mentioning: str = "") -> Catalog:
    """Read every ``*.toml`` of a folder, or those that contain a text, in any case.

    Raises:
        UsageError: A provider file cannot be read, is invalid, or has the name of another one; the error has
            every problem of every file.
    """
    providers: list[Provider] = []
    problems: list[Problem] = []
    files = sorted(folder.glob("*.toml"))
    for file in files:
        try:
            content = file.read_bytes()
            if mentioning.casefold() not in content.decode(errors="replace").casefold():
                continue
            provider = msgspec.toml.decode(content, type=Provider)
        except (OSError, ValueError) as error:  # msgspec's and tomllib's errors are ValueErrors
            problems.append(Problem(where=str(file), what=one_line(error)))
        except RecursionError:
            problems.append(Problem(where=str(file), what="nested too deeply"))
        else:
            providers.append(provider)
            problems += provider_contradictions(provider, str(file))
    problems += _clashes(providers, folder)
    if not files:
        what = "no provider files in this folder"
        problems.append(Problem(where=str(folder), what=what, hint="reinstall ort-ep-harness"))
    if problems:
        raise UsageError(*problems)
    return Catalog(tuple(sorted(providers, key=lambda provider: provider.name)))


def _folder() -> Path:
    return data_root() / "matrices" / "providers"


def _spellings(provider: Provider) -> set[str]:
    return {name.casefold() for name in (provider.name, *provider.aliases)}


def _clashes(providers: Iterable[Provider], folder: Path) -> list[Problem]:
    owners: dict[str, Provider] = {}
    problems: list[Problem] = []
    for provider in providers:
        for spelling in sorted(_spellings(provider)):
            owner = owners.setdefault(spelling, provider)
            if owner is not provider:
                what = f"{provider.name} and {owner.name} both have the name {spelling!r}"
                problems.append(Problem(where=str(folder), what=what))
    return problems
