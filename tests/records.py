"""Records that tests of several floors make, with no more in them than a test is about."""

from typing import Any

from harness.core.record import SCHEMA, Record
from harness.core.verdict import Verdict


def bare_record(
    model: str,
    verdict: Verdict = Verdict.PASS,
    *,
    suite: str = "s",
    target: str = "ep",
    provider: str = "AcmeExecutionProvider",
    **fields: Any,
) -> Record:
    """Return the record of a cell; its family and id are those of the other fields.

    Args:
        model: Name of the model in the suite.
        verdict: Its verdict.
        suite: Its suite.
        target: Its target.
        provider: The target's provider.
        fields: Other fields of ``Record``.
    """
    usual: dict[str, Any] = {"cell": f"{suite}/{model}[{target}]", "expected": True}
    return Record(
        schema=SCHEMA,
        suite=suite,
        model=model,
        target=target,
        provider=provider,
        verdict=verdict,
        family=verdict.family,
        **(usual | fields),
    )
