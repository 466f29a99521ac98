"""How a cell ended that did not run to its end, and whether the CPU EP ends so, too: parts of its record."""

from typing import Literal

import msgspec

How = Literal[
    "unavailable",
    "declared",
    "rejected",
    "changed",
    "broken_model",
    "no_input",
    "unfeedable",
    "unsupported",
    "raised",
    "died",
    "hung",
    "timed_out",
    "harness",
]
"""How a cell ended; see ``CellEnd``."""


class CellEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a cell ended that did not run to its end.

    Attributes:
        how: ``unavailable``: the target cannot be used; ``declared``: nothing was tried; ``rejected``: the EP
            refuses an option; ``changed``: a file of the model changed meanwhile; ``broken_model``: the model
            cannot be read; ``no_input``: no generated input runs; ``unfeedable``: the target's Python API
            cannot take or give a value; ``unsupported``: the EP has no such scenario; ``raised``: an error;
            ``died``, ``hung``: the end of the process; ``timed_out``: still at work at its limit;
            ``harness``: an exception of the harness's own.
        message: One line.
        kind: The type of the error, for ``raised``.
        out_of_memory: Whether the error or the printed text reports that memory ran out.
        refused: Whether the error reports that something is not supported.
        note: A remark; may be empty.
        lacks: The feature that the device lacks, by what was raised or printed: a name in
            ``harness.core.findings.lacking``; empty if none is named.
    """

    how: How
    message: str = ""
    kind: str = ""
    out_of_memory: bool = False
    refused: bool = False
    note: str = ""
    lacks: str = ""


class OwnCpu(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of the CPU EP of the target's own runtime with the model.

    Attributes:
        status: ``ok``: it runs; ``refused``: it raises an error; ``died``: its process crashes or hangs, too;
            ``lost``: there is no answer for another reason.
        message: One line; empty if it runs.
        out_of_memory: Whether the message reports that memory ran out.
        rule: The rule of onnx's checker that a refused model violates; empty if the checker accepts the
            model, null if it was not asked.
    """

    status: Literal["ok", "refused", "died", "lost"]
    message: str = ""
    out_of_memory: bool = False
    rule: str | None = None
