"""What the catalogue, and the environment that a target pins, say about its provider."""

import re
from collections.abc import Sequence

from harness.catalog.catalog import find_provider
from harness.catalog.provider import Provider

_PINNED = re.compile(r"\s*([\w.-]+)\s*(?:\[[^\]]*\])?\s*==\s*([0-9][\w.]*)\s*(?:;.*)?")


def known_provider(written: object) -> Provider | None:
    """The catalogue's entry for the first provider of a chain, as a file has it: a text or a list of them."""
    first = written[0] if isinstance(written, list | tuple) and written else written
    return find_provider(first) if isinstance(first, str) else None


def release_of(provider: Provider, packages: Sequence[object]) -> str:
    """The release of onnxruntime that an environment of packages pins; empty where it pins none.

    The interpreter that runs the harness is not asked: what a matrix may say must not depend on where it is
    read.
    """
    wheels = {"onnxruntime", *(_normal(wheel) for wheel in provider.wheels)}
    for requirement in packages:
        pinned = _PINNED.fullmatch(requirement) if isinstance(requirement, str) else None
        if pinned and _normal(pinned[1]) in wheels:
            return pinned[2]
    return ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
