"""What is measured of one candidate, as a line of JSON."""

from collections.abc import Iterator
from pathlib import Path

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate, and the planted faults that it shows.

    Attributes:
        suite: Its suite, as ``open_suite`` takes it.
        model: Its model.
        ops: Operator, with its domain unless that is ONNX's own -> nodes.
        types: Element types of all tensors, sorted.
        opset: Version of ONNX's operators, as far back as freezing takes it; 0 if it imports none.
        ranks: The largest rank of a tensor.
        empty: Whether some tensor has no elements.
        special: Whether an input or output holds NaN or an infinity.
        containers: Whether an input or output is no tensor.
        symbolic: Whether a dimension of an input may vary.
        nbytes: What it adds to an archive, from its admission; 0 if it was refused.
        seconds: Creation of a session and the first run on the CPU EP, from its record; 0 if unknown.
        befell: Faults that were planted.
        shown: Those of them by which the verdict fails.
        why_not: Why it cannot be measured; empty if it was.
    """

    suite: str
    model: str
    ops: dict[str, int] = {}
    types: tuple[str, ...] = ()
    opset: int = 0
    ranks: int = 0
    empty: bool = False
    special: bool = False
    containers: bool = False
    symbolic: bool = False
    nbytes: int = 0
    seconds: float = 0.0
    befell: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Suite and model."""
        return self.suite, self.model


def read_findings(path: Path) -> Iterator[Finding]:
    """Yield the findings of a file."""
    for line in path.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=Finding)
