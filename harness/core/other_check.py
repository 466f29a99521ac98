"""What is known about a result for other inputs besides its rows: a part of its record."""

import msgspec

from harness.core.reference import ReferenceCheck


class OtherCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts for judging a result for other inputs; fields as the record has them for the first inputs.

    Attributes:
        unchecked: Why outputs, or all of them, were not judged for other inputs; empty if all were.
        error: What the EP raised for other inputs, which the CPU EP computes; empty if nothing.
        dispute: Why the golden for other inputs is in doubt, whatever the EP returns.
        undefined: Output -> why ONNX leaves its values undefined for other inputs.
        no_spread: Why the noise for other inputs is unknown although it was needed.
        reference_check: Comparison with references for other inputs.
        answered: The questions that were asked about other inputs: see ``harness.core.missing.Need``.
    """

    unchecked: str = ""
    error: str = ""
    dispute: str = ""
    undefined: dict[str, str] = {}
    no_spread: str = ""
    reference_check: ReferenceCheck | None = None
    answered: tuple[str, ...] = ()
