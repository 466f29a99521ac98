"""Operators as formulas in float64, to say which of two answers is right."""

from typing import Any

from benchmarks.reference_trust.subject import Subject


def formula(one: Subject) -> list[Any] | None:
    """The outputs by the formula of the operator's text; None where there is none here."""
    del one
    return None
