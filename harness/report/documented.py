"""What documents say about the operators of each provider."""

from harness.catalog.catalog import load_catalog
from harness.report.operators import Documented


def documented_operators() -> Documented:
    """Provider -> operator -> what restricts it, of the providers for which the catalogue has a list.

    Raises:
        UsageError: The shipped catalogue cannot be read.
    """
    return {
        provider.name: dict(provider.operators.operators)
        for provider in load_catalog().providers
        if provider.operators is not None and provider.operators.operators
    }
