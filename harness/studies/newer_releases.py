"""Releases that are newer than those that the catalogue lists as tried."""

import re
from collections.abc import Iterator, Mapping

from harness.catalog.catalog import find_provider
from harness.catalog.provider import Provider
from harness.core.records.facts import CPU_PROVIDER as CPU

_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")


def newer_than_tried(
    provider: Provider | None, versions: Mapping[str, str], *, plugin: bool
) -> Iterator[str]:
    """Yield one sentence for the runtime, and one for the provider, if it is newer than all that were tried.

    A provider of the build has the runtime's release, so there is one sentence at most. Where nothing was
    tried, or a version is unknown, there is nothing to compare with, and no sentence.

    Args:
        provider: The catalogue's entry; None for a provider that it lacks.
        versions: ``onnxruntime`` and ``plugin`` -> the version that is installed.
        plugin: Whether the provider comes from a plugin library; otherwise it is part of the build.
    """
    release = versions.get("onnxruntime", "")
    runtime = find_provider(CPU)
    about_runtime = _sentence("onnxruntime", release, runtime.tried.in_build if runtime else ())
    if about_runtime:
        yield about_runtime
    if provider is None:
        return
    about_provider = ""
    if plugin:
        about_provider = _sentence(provider.name, versions.get("plugin", ""), provider.tried.plugin)
    elif not about_runtime:
        about_provider = _sentence(f"{provider.name} of onnxruntime", release, provider.tried.in_build)
    if about_provider:
        yield about_provider


def _sentence(what: str, version: str, tried: tuple[str, ...]) -> str:
    newest = max(tried, key=_numbers, default="")
    if not newest or _numbers(version) <= _numbers(newest):
        return ""
    return f"{what} {version} is newer than any that was tried ({newest}): verdicts may need new expectations"


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version without zeros at their end: ``1.32.0+cu130`` is 1.32."""
    found = _NUMBERS.match(version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
