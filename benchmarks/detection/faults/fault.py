"""What a fault is, and how the kinds of faults are listed."""

from collections.abc import Callable

import msgspec
import onnx

from benchmarks.detection.net import Net

Plant = Callable[[Net, onnx.NodeProto], bool]
"""Spoils the net at a node; False, with the net in any state, where the fault does not apply there."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of fault.

    Attributes:
        name: Such as ``epsilon-tenfold``.
        what: One line.
        operators: The operators that it befalls, without domain; empty for a fault of the whole model, which
            is then planted at its first node.
        plant: Plants it.
    """

    name: str
    what: str
    operators: tuple[str, ...]
    plant: Plant


FAULTS: dict[str, Fault] = {}
"""All kinds by their names, in the order in which they are written down."""


def fault(*operators: str) -> Callable[[Plant], Plant]:
    """List a function as a kind of fault: named like the function, described by its docstring."""

    def enter(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        FAULTS[name] = Fault(
            name=name, what=(plant.__doc__ or "").rstrip("."), operators=operators, plant=plant
        )
        return plant

    return enter
