"""A golden: the CPU provider's answer for one model and its inputs, or why it has none."""

from typing import Literal

import msgspec

from harness.core.value import Value, value_bytes

NamedValues = tuple[tuple[str, Value], ...]


class Golden(msgspec.Struct, frozen=True, kw_only=True):
    """What the CPU provider of one runtime made of a model.

    Attributes:
        status: ``ok``: it computed outputs; ``refused``: it raised an error; ``lost``: it crashed, hung or
            could not be fed, so that nothing is known.
        message: Why there are no outputs; empty for ``ok``.
        data_set: Number of the data set that was refused, or that crashed it (0, whichever it was); None
            where it was the model.
        outputs: For each data set the outputs by name.
        other: Outputs for other inputs, which ``harness.agent.other_inputs`` makes; empty without such a run.
        disputed: Why these values judge nobody: the CPU EP cannot repeat them, the suite's expected data
            disagree beyond doubt, or an operator draws numbers; empty where nothing speaks against them.
        died: Of ``lost``: whether the CPU EP crashed or hung.
        provenance: What the values depend on: versions, processor, session settings.
    """

    status: Literal["ok", "refused", "lost"]
    message: str = ""
    data_set: int | None = None
    outputs: tuple[NamedValues, ...] = ()
    other: NamedValues = ()
    disputed: str = ""
    died: bool = False
    provenance: dict[str, str] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the outputs take."""
        return sum(value_bytes(value) for outputs in (*self.outputs, self.other) for _, value in outputs)
