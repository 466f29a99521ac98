"""The policy of a cell as a record keeps it: shows whether two records were judged by one measure."""

import functools
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.core.comparison.policy import Policy

PolicyTerm = bool | float | str
"""The value of one setting of a policy."""

_UNSET: tuple[object, ...] = (None, "", False, (), [], {})
"""Values of settings that have no effect; they are left out, so that a policy without a later setting
stays the same."""


def policy_terms(policy: Policy) -> dict[str, PolicyTerm]:
    """Return every setting of a policy that has an effect, by its dotted name.

    The names are those of ``Policy``, whatever fields it has: ``limits.rms``. A list becomes one text.
    """
    # The remedy is for people, and known only where something was wrong.
    return dict(_terms(msgspec.msgpack.encode(msgspec.structs.replace(policy, remedy=""))))


def changed_terms(old: dict[str, PolicyTerm], new: dict[str, PolicyTerm]) -> tuple[str, ...]:
    """Return ``name old -> new`` for each setting that differs; ``none`` stands for a missing one."""
    names = [*old, *(name for name in new if name not in old)]
    return tuple(
        f"{name} {_text(old.get(name))} -> {_text(new.get(name))}"
        for name in names
        if old.get(name) != new.get(name)
    )


def policy_text(terms: dict[str, PolicyTerm]) -> str:
    """Return the settings in one line; empty without any."""
    return ", ".join(f"{name} {_text(value)}" for name, value in terms.items())


@functools.lru_cache(maxsize=1024)
def _terms(policy: bytes) -> tuple[tuple[str, PolicyTerm], ...]:
    """Return the settings of an encoded policy, cached: a run has thousands of cells and a few policies."""
    return tuple(_flat("", msgspec.msgpack.decode(policy)))


def _flat(name: str, value: Any) -> Iterator[tuple[str, PolicyTerm]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), one)
    elif not any(value is unset or value == unset for unset in _UNSET) or _is_number(value):
        yield name, value if isinstance(value, bool | int | float | str) else ", ".join(map(str, value))


def _is_number(value: object) -> bool:
    """Return whether a value is a number: 0 has an effect, although it equals False."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: PolicyTerm | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else value
