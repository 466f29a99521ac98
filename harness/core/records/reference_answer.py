"""References: other answers for a model whose result differs from its golden; part of a cell's record."""

from typing import Literal

import msgspec

from harness.core.comparison.output_metrics import OutputMetrics

EXPECTED = "the expected data"
"""``Reference.name`` of the suite's own data."""

REFERENCE = "onnx.reference"
"""``Reference.name`` of ONNX's own implementation."""

AS_USED = "the CPU EP as applications use it"
"""``Reference.name`` of the CPU EP of the target's runtime, in a session with its integer kernels.

Unlike goldens. It disputes none, but shows where a wrong answer is that of the nodes left to the CPU EP.
"""


class Adjudication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which of golden and EP is nearer to a more precise answer, for one output.

    Attributes:
        output: Its name.
        by: The source of that answer, such as ``float64 on the CPU EP``.
        golden: ``norm(golden - answer) / norm(answer)``.
        ep: The same for the EP's output.
        nearer: The nearer one; ``equal`` where neither clearly is.
        doubt: Why that answer is not trusted; empty where it is.
    """

    output: str
    by: str
    golden: float
    ep: float
    nearer: Literal["golden", "ep", "equal"]
    doubt: str = ""


class ReferenceDistance(OutputMetrics, frozen=True, kw_only=True, omit_defaults=True):
    """The distance of one output from a reference, with the fields that a second judgement needs.

    Only ``name``, ``dtype``, ``elements``, ``max_abs``, ``delivered_bits``, ``mismatched``, the tolerance,
    ``headroom``, ``frontier``, ``noise`` and ``details`` are kept; empty fields are left out.
    """

    shape: tuple[int, ...] = ()


class Reference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Another answer for the model; golden and EP are each compared with it.

    Attributes:
        name: Its source, in words.
        golden: Distance of the golden, for every output in which EP and golden differ at all.
        ep: The same of the EP's result.
        is_golden_again: Whether it is the golden's own implementation, computing in another way: not a second
            opinion, but a measure of how certain the golden is.
        in_float64: Whether it computes in float64, which confirms a failure or clears the EP of it.
        dwarfed: Of the golden's own implementation: outputs in which the EP's error is far beyond the
            golden's uncertainty.
        doubt: Why it is not believed alone, such as an operator that it computes wrongly; empty where it is.
    """

    name: str
    golden: tuple[ReferenceDistance, ...] = ()
    ep: tuple[ReferenceDistance, ...] = ()
    is_golden_again: bool = False
    in_float64: bool = False
    dwarfed: tuple[str, ...] = ()
    doubt: str = ""


class ReferenceCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What references show for a golden and a result that differs from it: enough to decide again.

    Attributes:
        references: By rank, the most trustworthy first; those without an answer are left out.
        adjudication: As in the record, for every output that can be adjudicated.
        no_float64: Why no float64 answer adjudicates an output that differs; empty if one does, and for a
            model without floats, which is judged by equality.
    """

    references: tuple[Reference, ...] = ()
    adjudication: tuple[Adjudication, ...] = ()
    no_float64: str = ""
