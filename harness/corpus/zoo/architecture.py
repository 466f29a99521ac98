"""What the zoo knows about an architecture before anything is built."""

from collections.abc import Callable, Mapping

import msgspec

from harness.corpus.zoo.graph import Graph


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """An architecture that is exported in several sizes, at two opsets.

    Attributes:
        name: Such as ``resnet``.
        what: One line on what it is made of.
        sizes: Name of a size -> adds the whole model to an empty graph; ``small`` runs in milliseconds.
        opsets: Versions of ONNX's operators, the older first.
        ml_opsets: Versions of the operators for classical machine learning beside them, where it has any.
        symbolic: Whether it has symbolic dimensions; then its small size is also exported with fixed ones.
    """

    name: str
    what: str
    sizes: Mapping[str, Callable[[Graph], None]]
    opsets: tuple[int, int]
    ml_opsets: tuple[int, int] | None = None
    symbolic: bool = True
