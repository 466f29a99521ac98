"""One ``[[tolerance]]`` entry, of a matrix or of a policy: fixed, or in multiples of the model's noise."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.comparison.noise_limits import DEFAULT_LIMITS, NoiseLimits
from harness.core.comparison.policy import DEFAULT_STEPS, Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.files.structure import FilePlace
from harness.core.text.errors import Problem
from harness.plan.selector import Selector, SelectorTable, selector_from

_FIXED = ("rtol", "atol")
_ALONE = frozenset({"noise", "steps", "table_only", "bits"})
"""Keys that suffice for an entry."""


_MOST = 1e30
"""The largest tolerance: with it, any finite answer of a cell is right."""

Bits = Annotated[float, Meta(ge=0, le=52)]
_Allowed = Annotated[float, Meta(ge=0, le=_MOST)]


class NoiseTable(msgspec.Struct, kw_only=True):
    """Limits on the error in multiples of the model's own rounding noise."""

    rms: Annotated[float, Meta(gt=0, le=_MOST, description="RMS of the error over RMS of the noise.")] = (
        DEFAULT_LIMITS.rms
    )
    max: Annotated[
        float, Meta(gt=0, le=_MOST, description="Error of any element over the noise of that element.")
    ] = DEFAULT_LIMITS.max
    precision: Annotated[
        Literal["float32", "float16", "bfloat16"] | UnsetType,
        Meta(description="Whose rounding makes the noise; without it that of the cell's precision."),
    ] = UNSET


class ToleranceTable(SelectorTable, kw_only=True):
    """Tolerance for the selected cells; later entries win."""

    rtol: Annotated[_Allowed | UnsetType, Meta(description="Relative tolerance.")] = UNSET
    atol: Annotated[_Allowed | UnsetType, Meta(description="Absolute tolerance.")] = UNSET
    noise: Annotated[
        NoiseTable | UnsetType,
        Meta(description="Instead of both: limits in multiples of the model's own rounding noise."),
    ] = UNSET
    steps: Annotated[
        _Allowed | UnsetType,
        Meta(description="Quantization steps that an output computed in integers may be off; 1 by default."),
    ] = UNSET
    table_only: Annotated[
        bool | UnsetType,
        Meta(description="Whether the built-in table judges, and not the model's own rounding noise."),
    ] = UNSET
    bits: Annotated[
        Bits | dict[Annotated[str, Meta(min_length=1)], Bits] | UnsetType,
        Meta(
            description="Bits that must be left where the EP computes more coarsely than the model asks: "
            "of each output, or by its name. By default half of the significand: 5.5 at float16, 4 at "
            "bfloat16."
        ),
    ] = UNSET


# The published schema checks contradictions; ``tolerance_problems`` does so for the reader, in plain words.
ToleranceItem = Annotated[
    ToleranceTable,
    Meta(
        extra_json_schema={
            "anyOf": [{"required": [key]} for key in ("rtol", "noise", "steps", "table_only", "bits")],
            "dependentRequired": {"rtol": ["atol"], "atol": ["rtol"]},
            "not": {"anyOf": [{"required": [key, "noise"]} for key in ("rtol", "table_only")]},
        }
    ),
]


class ToleranceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How far the selected cells' results may deviate from their goldens.

    Attributes:
        selector: The selected cells.
        rtol: With ``atol``: ``|out - golden| <= atol + rtol * |golden|``; both or none are set.
        atol: See ``rtol``.
        noise: Limits in multiples of the model's own rounding noise; never together with ``rtol``. Without
            either, the built-in tolerances apply.
        noise_precision: Precision whose rounding makes the noise; empty for the cell's precision.
        steps: Quantization steps that an output computed in integers may be off; None for the default.
        table_only: Whether the built-in table judges, not the model's own rounding noise.
        bits: As in ``harness.core.comparison.policy.Policy``.
    """

    selector: Selector
    rtol: float | None = None
    atol: float | None = None
    noise: NoiseLimits | None = None
    noise_precision: str = ""
    steps: float | None = None
    table_only: bool = False
    bits: dict[str, float] = {}

    @property
    def fixed(self) -> Tolerance | None:
        """``rtol`` and ``atol``; None if the entry has none."""
        if self.rtol is None or self.atol is None:
            return None
        return Tolerance(rtol=self.rtol, atol=self.atol)


def tolerance_problems(entry: dict[str, Any], place: FilePlace) -> Iterator[Problem]:
    """Yield what is wrong with an entry as a whole, whatever its values are."""
    given = [key for key in _FIXED if key in entry]
    if "noise" in entry and given:
        what = f"got noise and {' and '.join(given)}, which exclude each other"
        yield place.problem(what, "keep noise, or rtol and atol")
    elif len(given) == 1:
        (missing,) = set(_FIXED) - set(given)
        yield place.problem(f"the key {missing!r} is missing", f"add it; {missing} = 0 allows no such error")
    elif "noise" in entry and "table_only" in entry:
        yield place.problem("got noise and table_only, which exclude each other", "keep one of them")
    elif not given and not _ALONE & entry.keys():
        hint = "write rtol = 1e-3 and atol = 1e-5, or noise = {}, steps = 1, bits = 4 or table_only = true"
        yield place.problem("this entry sets no tolerance", hint)


def tolerance_entry(entry: dict[str, Any]) -> ToleranceEntry:
    """Return a checked entry in its normal form; limits of ``noise`` have defaults."""
    keys = (*_FIXED, *_ALONE)
    settings = {key: entry[key] for key in keys if key in entry}
    settings["noise_precision"] = entry.get("noise", {}).get("precision", "")
    if not isinstance(settings.get("bits", {}), dict):
        settings["bits"] = {"": settings["bits"]}
    settings["selector"] = selector_from(entry, not_keys=keys)
    return msgspec.convert(settings, ToleranceEntry)


def policy_of(entry: ToleranceEntry | None, precision: str, *, converted: bool) -> Policy:
    """Return the policy of a cell by the last entry that selects it, if any, and its computing precision."""
    if entry is None:
        return Policy(precision=precision, converted=converted)
    return Policy(
        precision=precision,
        fixed=entry.fixed,
        judge_by="table" if entry.fixed is not None or entry.table_only else "noise",
        limits=entry.noise or DEFAULT_LIMITS,
        noise_precision=entry.noise_precision,
        steps=DEFAULT_STEPS if entry.steps is None else entry.steps,
        bits=entry.bits,
        converted=converted,
    )
