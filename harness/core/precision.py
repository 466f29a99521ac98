"""Precisions that a model is converted to before any provider sees it."""

AS_IS = "fp32"
"""The value of the axis that leaves models as they come, whatever precision that is."""

IN_MODEL: dict[str, str] = {}
"""Precision of the axis -> what a model converted to it computes in: a key of ``FLOORS`` in ``tolerance``."""


def made_for(precision: str) -> str:
    """What a model is converted to for a value of the axis; ``AS_IS`` where that is the provider's affair."""
    return precision if precision in IN_MODEL else AS_IS
