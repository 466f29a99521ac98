"""What a fault of a decoder is, and how the kinds are listed."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from benchmarks.detection.net import Net

Plant = Callable[[Net], bool]
"""Spoils a decoder; False, with the net in any state, where it has nothing for the fault to befall."""

Use = Callable[[], Any]
"""Makes what spoils a session's runs: see ``benchmarks.generation.faults.use``."""

AFTER = -1
"""The place behind the cache of the last layer: logits are wrong, and no cache is."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of fault.

    Attributes:
        name: Such as ``rotary-base``.
        what: One line.
        models: Models of the suite ``generate`` in which it is planted.
        layer: The first layer whose cache is wrong; ``AFTER`` if none is, None if it is not foretold.
        since: Way -> the first position that is wrong in it; those that are foretold.
        plant: Spoils the model; None for a fault of use.
        use: Spoils how a session runs; None for a fault of the model.
        upstream: The failure in a shipped product that it repeats, if it does.
    """

    name: str
    what: str
    models: tuple[str, ...]
    layer: int | None = None
    since: Mapping[str, int] = {}
    plant: Plant | None = None
    use: Use | None = None
    upstream: str = ""


_BETWEEN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-z])(?=\d)")
"""The places between the words of a class's name."""

FAULTS: dict[str, Fault] = {}
"""All kinds by their names, in the order in which they are written down."""


def fault(
    *models: str, layer: int | None = None, since: Mapping[str, int] | None = None, upstream: str = ""
) -> Callable[[Plant], Plant]:
    """List a function as a kind of fault: named like the function, described by its docstring."""

    def enter(plant: Plant) -> Plant:
        _enter(plant, Fault(
            name="", what="", models=models, layer=layer, since=since or {}, plant=plant, upstream=upstream
        ))  # fmt: skip
        return plant

    return enter


def use(
    *models: str, layer: int | None = None, since: Mapping[str, int] | None = None, upstream: str = ""
) -> Callable[[type], type]:
    """List a class as a kind of fault of use; each session has an object of its own."""

    def enter(kind: type) -> type:
        _enter(kind, Fault(
            name="", what="", models=models, layer=layer, since=since or {}, use=kind, upstream=upstream
        ))  # fmt: skip
        return kind

    return enter


def _enter(made: Any, kind: Fault) -> None:
    name = _BETWEEN.sub("-", made.__name__).replace("_", "-").lower()
    what = (made.__doc__ or "").strip().rstrip(".")
    FAULTS[name] = msgspec.structs.replace(kind, name=name, what=what)
