"""One ``[[tolerance]]`` entry, of a matrix or of a policy: fixed, or in multiples of the model's noise."""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.core.errors import Problem
from harness.core.spread import NoiseLimits
from harness.core.structure import Place
from harness.core.tolerance import Tolerance
from harness.plan.file_format import NoiseTable
from harness.plan.selector import Selector, selector_from

_FIXED = ("rtol", "atol")


class ToleranceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How far the selected cells' results may lie from their goldens.

    Attributes:
        selector: Which cells.
        rtol: With ``atol``: ``|out - golden| <= atol + rtol * |golden|``; None where the entry has none.
        atol: As ``rtol``.
        noise: Limits in multiples of the model's own rounding noise; never beside ``rtol``. Where both are
            None the built-in tolerances hold.
        noise_precision: Whose rounding makes the noise; empty for that of what the cell computes in.
        steps: Quantization steps that an output of quantized values may be off, besides.
    """

    selector: Selector
    rtol: float | None = None
    atol: float | None = None
    noise: NoiseLimits | None = None
    noise_precision: str = ""
    steps: float = 0.0

    @property
    def fixed(self) -> Tolerance | None:
        """``rtol`` and ``atol``; None where the entry has none."""
        if self.rtol is None or self.atol is None:
            return None
        return Tolerance(rtol=self.rtol, atol=self.atol)


def tolerance_problems(entry: dict[str, Any], place: Place) -> Iterator[Problem]:
    """What an entry may not say although each of its values is right.

    Args:
        entry: A parsed table, with whatever values.
        place: Where it stands.
    """
    given = [key for key in _FIXED if key in entry]
    if "noise" in entry and given:
        what = f"got noise and {' and '.join(given)}, which exclude each other"
        yield Problem(where=str(place), what=what, hint="keep noise, or rtol and atol")
    elif len(given) == 1:
        (missing,) = set(_FIXED) - set(given)
        what = f"the key {missing!r} is missing"
        yield Problem(where=str(place), what=what, hint=f"write {missing} = 0 where nothing of it is allowed")
    elif not given and "noise" not in entry and "steps" not in entry:
        hint = "write rtol = 1e-3 and atol = 1e-5, or noise = {}, or steps = 1"
        yield Problem(where=str(place), what="says nothing of what is tolerated", hint=hint)


def tolerance_entry(entry: dict[str, Any]) -> ToleranceEntry:
    """An entry in its normal form; a limit of ``noise`` that it leaves out has its default.

    Args:
        entry: A parsed table in which ``tolerance_problems`` finds none.
    """
    limits = msgspec.convert(entry["noise"], NoiseTable) if "noise" in entry else None
    return ToleranceEntry(
        selector=selector_from(entry, not_keys=(*_FIXED, "noise", "steps")),
        rtol=float(entry["rtol"]) if "rtol" in entry else None,
        atol=float(entry["atol"]) if "atol" in entry else None,
        noise=NoiseLimits(rms=limits.rms, max=limits.max) if limits else None,
        noise_precision=entry.get("noise", {}).get("precision", ""),
        steps=float(entry.get("steps", 0.0)),
    )
