"""Limits of the whole process, which a provider may lower: later models would then fail.

Windows has none.
"""

from __future__ import annotations

import sys

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


class ProcessLimits:
    """The limits at creation."""

    def __init__(self) -> None:
        names = [name for name in dir(resource) if name.startswith("RLIMIT_")] if resource else []
        self.soft = {name: soft for name in names for soft in [_soft(name)] if soft is not None}

    def lowered(self) -> str:
        """Return which of them are lower now, in words; empty if none is."""
        for name, before in self.soft.items():
            now = _soft(name)
            if now is not None and now < before:
                return "it lowered the limit %s of its process from %s to %d" % (name, _told(before), now)
        return ""


def _soft(name: str) -> float | None:
    """Return a soft limit, infinite if there is none; None if the system does not report it."""
    if sys.platform == "win32":
        return None
    try:
        soft = resource.getrlimit(getattr(resource, name))[0]
    except (OSError, ValueError):
        return None
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def _told(limit: float) -> str:
    return "none" if limit == float("inf") else "%d" % limit
