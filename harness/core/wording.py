"""Describe differences in one line each.

Names and strings come from models and execution providers: they are shown as by ``repr``, cut short.
"""

from collections.abc import Iterable
from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from harness.core.metrics import Measured, special_codes, widen
from harness.core.output_metrics import Noise, OutputMetrics, PrecisionError
from harness.core.tolerance import EXACT, Tolerance
from harness.core.value import Map, Sequence, Tensor, Value

_NAME_LIMIT = 60
_NAMES_LIMIT = 3


def output(name: str) -> str:
    """Return ``output 'y'``."""
    return f"output {_cut(name)}"


def kind(value: Value) -> str:
    """Describe a value without its elements: ``float32[2, 3]``, ``a sequence of 3``."""
    if isinstance(value, Tensor):
        return f"{value.dtype}{list(value.array.shape)}"
    if isinstance(value, Sequence):
        return f"a sequence of {len(value.items)}"
    if isinstance(value, Map):
        return f"a map of {value.keys.array.size}"
    return "an empty optional"


def share(count: int, elements: int) -> str:
    """Return ``3 of 60 elements (5.0%)``."""
    return f"{count} of {elements} elements ({count / max(1, elements):.1%})"


def first_difference(rows: Iterable[OutputMetrics]) -> str:
    """Describe by how much two answers differ, in the first output in which they do."""
    row = next((row for row in rows if row.mismatched), None)
    if row is None:
        return ""
    if row.elements == 0:
        return f"output {row.name!r} has another shape or type"
    # Without a frontier there is NaN or infinity on one side, and the other elements do not matter.
    far = f", by {row.max_abs:.3g} at most" if row.frontier and row.max_abs is not None else ""
    return f"{row.mismatched:,} of {row.elements:,} elements of {row.name!r}{far}"


def keys_differ(golden: Iterable[object], actual: Iterable[object]) -> str:
    """Name the keys of one side only; empty where both sides have the same keys equally often."""
    wanted, got = list(golden), list(actual)
    if wanted == got:
        return ""
    lost, added = sorted(set(wanted) - set(got), key=str), sorted(set(got) - set(wanted), key=str)
    clauses = [f"{what} {_some(keys)}" for what, keys in (("missing", lost), ("unexpected", added)) if keys]
    return "map keys differ: " + ("; ".join(clauses) or "some occur another number of times")


def other_names(missing: Seq[str], unexpected: Seq[str]) -> str:
    """Name the outputs of one side only."""
    clauses = [
        f"{what}: {_some(names)}"
        for what, names in (("outputs missing", missing), ("outputs not asked for", unexpected))
        if names
    ]
    return "; ".join(clauses)


def special_values(name: str, golden: Tensor, actual: Tensor, measured: Measured) -> str:
    """Describe where NaN or infinity differ, and how many of each there are on either side."""
    at = measured.special_at or 0
    counts = []
    for value in (golden, actual):
        codes = special_codes(widen(value.array, value.dtype))
        nans = (codes % 4 == 1) | (codes // 4 == 1)
        counts.append((int(nans.sum()), int(((codes > 0) & ~nans).sum())))
    (golden_nans, golden_infs), (nans, infs) = counts
    finite_wrong = measured.mismatched - measured.special
    return (
        f"{output(name)}: {share(measured.special, golden.array.size)} differ in NaN or infinity, "
        f"first{got_and_golden(golden, actual, at)}; "
        f"NaN: got {nans}, golden {golden_nans}; infinities: got {infs}, golden {golden_infs}"
        + (f"; {finite_wrong} finite elements differ too" if finite_wrong else "")
    )


def values(
    name: str, golden: Tensor, actual: Tensor, measured: Measured, tolerance: Tolerance, note: str = ""
) -> str:
    """Describe how many values are outside the tolerance, and where the greatest differences are."""
    clauses = [f"{output(name)}: {share(measured.mismatched, golden.array.size)} differ"]
    at = measured.max_abs_at
    if tolerance == EXACT:
        if measured.max_abs is not None and at is not None:
            sides = got_and_golden(golden, actual, at)
            clauses.append(f"they have to be equal, the greatest difference is {measured.max_abs:.3g}{sides}")
        return "; ".join(filter(None, [*clauses, note]))
    judged_by = f"tolerance rtol {tolerance.rtol:g}, atol {tolerance.atol:g}"
    if measured.max_abs is not None and at is not None:
        clauses.append(
            f"greatest absolute difference {measured.max_abs:.3g}{_at(golden, at)} "
            f"(allowed {measured.max_abs_allowed or 0.0:.3g})"
        )
    if measured.max_rel is not None and measured.max_rel_at is not None:
        place = _at(golden, measured.max_rel_at)
        judged_by = f"greatest relative difference {measured.max_rel:.3g}{place} ({judged_by})"
    return "; ".join(filter(None, [*clauses, judged_by, note]))


def got_and_golden(golden: Tensor, actual: Tensor, at: int) -> str:
    """Return `` at (1, 2): got 3, golden is 2``."""
    return f"{_at(golden, at)}: got {_element(actual, at)}, golden is {_element(golden, at)}"


def beyond_noise(name: str, noise: Noise, of_rms: float, of_max: float) -> str:
    """Describe by how much an error exceeds the limits of noise, and the worst element."""
    whole = f"{output(name)}: the error is {noise.rms:.3g} x the model's rounding noise"
    worst = f"at most {noise.max:.3g} x{noise.worst}"
    return f"{whole} at {noise.precision}, {worst} (limits {of_rms:.3g} and {of_max:.3g})"


def times_noise(noise: Noise) -> str:
    """Describe an error in multiples of the model's rounding noise."""
    return f"{noise.rms:.3g} x the model's rounding noise at {noise.precision}, at most {noise.max:.3g} x"


def relative(error: PrecisionError) -> str:
    """Describe the relative error of a converted model's output, and the CPU EP's own."""
    if error.error is None:
        return error.unknown
    own = "" if error.cpu_error is None else f", the CPU EP's own {error.cpu_error:.2g}"
    return f"relative error {error.error:.2g}{own}"


def lost(row: OutputMetrics) -> str:
    """Describe an output that is lost, although each element is within the tolerance."""
    error = row.relative_error or 0.0
    return f"{output(row.name)}: relative error {error:.2g}; the tolerance is wider than the values"


def only_noise(row: OutputMetrics) -> str:
    """Describe an output that rounding alone changes as much."""
    multiple = row.noise.rms if row.noise else 0.0
    return (
        f"{output(row.name)} cannot be judged: relative error {row.relative_error or 0.0:.2g}, "
        f"which is {multiple:.3g} x the model's own rounding noise"
    )


def remark(row: OutputMetrics) -> str:
    """Describe why an output is right without the golden's values; mostly empty."""
    details = row.details
    if details is None or row.mismatched:
        return ""
    if details.distribution:
        unseen = f", of which {row.elements} numbers show no departure below {details.unseen or 0:.2g}"
        return f"{output(row.name)} is judged by its distribution ({details.distribution}){unseen}"
    if details.ties:
        return f"{output(row.name)}: {details.ties} positions differ where the values tie"
    return ""


def strings(name: str, golden: Tensor, actual: Tensor, differs: NDArray[np.intp]) -> str:
    """Describe how many strings differ, and the first of them."""
    at = int(differs[0])
    got, right = actual.array.reshape(-1).tolist(), golden.array.reshape(-1).tolist()
    first = f"first{_at(golden, at)}: got {_cut(got[at])}, golden is {_cut(right[at])}"
    same = sorted(map(str, right)) == sorted(map(str, got))
    order = "; same values in another order" if same else ""
    return f"{output(name)}: {share(differs.size, golden.array.size)} differ; {first}{order}"


def _at(value: Tensor, index: int) -> str:
    """Return `` at (1, 2)``; empty for a scalar."""
    place = tuple(int(i) for i in np.unravel_index(index, value.array.shape))
    return f" at {place}" if place else ""


def _element(value: Tensor, index: int) -> str:
    element = value.array.item(index)
    if value.dtype.startswith(("int", "uint", "bool")):
        return str(int(element))
    return f"{complex(element) if value.dtype.startswith('complex') else float(element):.6g}"


def _some(names: Seq[object]) -> str:
    shown = ", ".join(map(_cut, names[:_NAMES_LIMIT]))
    return shown + (f" and {len(names) - _NAMES_LIMIT} more" if len(names) > _NAMES_LIMIT else "")


def _cut(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= _NAME_LIMIT else shown[: _NAME_LIMIT - 1] + "…"
