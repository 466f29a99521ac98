"""The refusal of the CPU EP of a target's own runtime: whether the model or the runtime is the reason."""

import re

from harness.core.records.cell_end import OwnCpu
from harness.core.records.facts import Facts

_VERSION = re.compile(
    r"is under development and support for this is limited"  # an opset that is not released yet
    r"|ONNX Runtime only \*guarantees\* support|Unsupported model IR version"
)
"""The CPU EP's words for a model that is newer than the runtime."""


_INPUTS = re.compile(
    r"Got invalid dimensions for input|Invalid rank for input|Unexpected input data type|Invalid input name"
)
"""The CPU EP's words for inputs that do not fit the model."""


def refusing_cpu(facts: Facts) -> OwnCpu | None:
    """Return the answer of the CPU EP if it refuses a model that the EP refused with an error.

    The refusal does not count if both ran out of memory, which is the machine's limit, or if the CPU EP only
    lacks kernels for a converted model.
    """
    ended, own = facts.ended, facts.own_cpu
    if ended is None or ended.how != "raised" or own is None or own.status != "refused":
        return None
    if (ended.out_of_memory and own.out_of_memory) or lacks_kernels(facts):
        return None
    return own


def lacks_kernels(facts: Facts) -> bool:
    """Return whether the CPU EP only lacks kernels for a converted model."""
    own = facts.own_cpu
    return facts.converted and own is not None and own.message.startswith("NotImplemented")


def lacks(own: OwnCpu) -> bool:
    """Return whether the CPU EP has no kernel for a model, or does not know its opset or IR version.

    If so, onnx's checker need not be asked: its release may be older or newer than the runtime.
    """
    return own.message.startswith("NotImplemented") or _VERSION.search(own.message) is not None


def refuses_inputs(own: OwnCpu) -> bool:
    """Return whether the CPU EP refuses the inputs.

    Their type or shape differs from the model's declaration.
    """
    return _INPUTS.search(own.message) is not None


def lacks_operator(own: OwnCpu) -> bool:
    """Return whether the CPU EP does not know an operator.

    One of ONNX's own has to exist in the model's opset.
    """
    return "is not a registered function/op" in own.message
