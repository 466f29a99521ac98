"""Numbers of things, in words."""


def plural(count: int, noun: str) -> str:
    """Return ``1 cell``, ``1,893 cells``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
