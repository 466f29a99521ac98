"""A golden: the CPU provider's answer for one model and its inputs, or why it has none."""

from typing import Literal

import msgspec

from harness.core.value import Value

NamedValues = tuple[tuple[str, Value], ...]


class Golden(msgspec.Struct, frozen=True, kw_only=True):
    """What the CPU provider of one runtime made of a model.

    Attributes:
        status: ``ok``: it computed outputs; ``refused``: it raised an error; ``lost``: it crashed, hung or
            could not be fed, so that nothing is known.
        message: Why there are no outputs; empty for ``ok``.
        outputs: For each data set the outputs by name.
        deterministic: False where two runs of one session differ beyond what the tolerance forgives, as
            random operators do; such values judge nobody.
        provenance: What the values depend on: versions, processor, session settings.
    """

    status: Literal["ok", "refused", "lost"]
    message: str = ""
    outputs: tuple[NamedValues, ...] = ()
    deterministic: bool = True
    provenance: dict[str, str] = {}
