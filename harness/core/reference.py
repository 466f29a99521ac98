"""Who is right where a result differs from its golden: a part of the record of a cell."""

from typing import Literal

import msgspec

from harness.core.output_metrics import OutputMetrics

EXPECTED = "the expected data"
"""``Reference.name`` of what the makers of a model expect."""

REFERENCE = "onnx.reference"
"""``Reference.name`` of ONNX's own implementation."""


class Adjudication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which of golden and EP is nearer to a more precise answer, for one output.

    Attributes:
        output: Its name.
        by: What gave that answer, such as ``float64 on the CPU EP``.
        golden: ``norm(golden - answer) / norm(answer)``.
        ep: The same of the EP's output.
        nearer: The nearer one; ``equal`` where neither is clearly.
        doubt: Why that answer is not believed; empty where it is.
    """

    output: str
    by: str
    golden: float
    ep: float
    nearer: Literal["golden", "ep", "equal"]
    doubt: str = ""


class Apart(OutputMetrics, frozen=True, kw_only=True, omit_defaults=True):
    """How far two answers lie apart in one output, as far as it takes to judge that again.

    Only ``name``, ``dtype``, ``elements``, ``max_abs``, ``delivered_bits``, ``mismatched``, the tolerance,
    ``headroom``, ``frontier``, ``noise`` and ``details`` are told; a field with nothing to say is left out.
    """

    shape: tuple[int, ...] = ()


class Reference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody else makes of the model; golden and EP are held against it as EP and golden were.

    Attributes:
        name: Who, for people.
        golden: How far the golden lies from it, of every output in which EP and golden differ at all.
        ep: The same of the EP's result.
        is_golden_again: Whether it is the golden's own implementation, made to compute in another way: no
            second opinion, but it shows how certain the golden is.
        dwarfed: Of such a one, outputs in which the EP is off by far more than the golden is uncertain.
        doubt: Why it is not believed alone, such as an operator that it computes wrongly; empty where it is.
    """

    name: str
    golden: tuple[Apart, ...] = ()
    ep: tuple[Apart, ...] = ()
    is_golden_again: bool = False
    dwarfed: tuple[str, ...] = ()
    doubt: str = ""


class ReferenceCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was said of a golden and a result that differs from it: enough to decide again who is right.

    Attributes:
        references: By their rank, the most trustworthy first; those who have no answer are left out.
        adjudication: As the record's, of every output that can be adjudicated.
    """

    references: tuple[Reference, ...] = ()
    adjudication: tuple[Adjudication, ...] = ()
