"""A golden: the CPU provider's outputs for one model and its inputs, or why there are none."""

from functools import cached_property
from typing import Literal

import msgspec

from harness.core.values.value import NamedValues, value_bytes
from harness.core.values.value_digest import short_digest


class Golden(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The answer of the CPU provider of one runtime. The option ``dict`` allows cached properties.

    Attributes:
        status: ``ok``: it computed outputs; ``refused``: it raised an error; ``lost``: it crashed, hung or
            could not be fed, so that nothing is known.
        message: Why there are no outputs; empty for ``ok``.
        data_set: Number of the data set that was refused; 0 after a crash while running any of them; None if
            the model itself was refused.
        outputs: For each data set the outputs by name.
        other: Outputs for other inputs, which ``harness.agent.other_inputs`` makes; empty without such a run.
        text: Tokens that it chooses by itself, if it played the scenario ``generate``; a store has none.
        disputed: Why these values cannot be used for judging: the CPU EP does not repeat them, the suite's
            expected data clearly disagree, or an operator draws random numbers. Otherwise empty.
        died: For ``lost``: whether the CPU EP crashed or hung.
        provenance: What the values depend on: versions, processor, session settings.
    """

    status: Literal["ok", "refused", "lost"]
    message: str = ""
    data_set: int | None = None
    outputs: tuple[NamedValues, ...] = ()
    other: NamedValues = ()
    text: tuple[int, ...] = ()
    disputed: str = ""
    died: bool = False
    provenance: dict[str, str] = {}

    @cached_property
    def digest(self) -> str:
        """A short digest of the outputs; empty without any."""
        return short_digest(self.outputs) if self.status == "ok" else ""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the outputs take."""
        return sum(value_bytes(value) for outputs in (*self.outputs, self.other) for _, value in outputs)
