"""Describe differences in one line each.

Names and strings come from models and execution providers: they are shown as by ``repr``, truncated.
"""

import math
from collections.abc import Iterable
from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.metrics import OutputFigures, special_codes, widen_tensor
from harness.core.comparison.output_metrics import Noise, OutputMetrics, PrecisionError
from harness.core.comparison.tolerance import EXACT, UNIT_ROUNDOFF, Tolerance
from harness.core.values.value import Map, Sequence, Tensor, Value

_NAME_LIMIT = 60
_ALL = 1e300
"""From this size on, the size stands for an output that noise makes NaN, infinite or of another shape."""
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


def share_text(count: int, elements: int) -> str:
    """Return ``3 of 60 elements (5.0%)``."""
    return f"{count} of {elements} elements ({count / max(1, elements):.1%})"


def first_difference(rows: Iterable[OutputMetrics]) -> str:
    """Describe the difference between two answers, in the first output that differs."""
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


def special_values(name: str, golden: Tensor, actual: Tensor, measured: OutputFigures) -> str:
    """Describe where NaN or infinity differ, and how many of each there are on either side."""
    at = measured.special_at or 0
    counts = []
    for value in (golden, actual):
        codes = special_codes(widen_tensor(value))
        nans = (codes % 4 == 1) | (codes // 4 == 1)
        counts.append((int(nans.sum()), int(((codes > 0) & ~nans).sum())))
    (golden_nans, golden_infs), (nans, infs) = counts
    finite_wrong = measured.mismatched - measured.special
    return (
        f"{output(name)}: {share_text(measured.special, golden.array.size)} differ in NaN or infinity, "
        f"first{got_and_golden(golden, actual, at)}; "
        f"NaN: got {nans}, golden {golden_nans}; infinities: got {infs}, golden {golden_infs}"
        + (f"; {finite_wrong} finite elements differ too" if finite_wrong else "")
    )


def values_words(
    name: str, golden: Tensor, actual: Tensor, measured: OutputFigures, tolerance: Tolerance, note: str = ""
) -> str:
    """Describe how many values are outside the tolerance, and where the greatest differences are."""
    clauses = [f"{output(name)}: {share_text(measured.mismatched, golden.array.size)} differ"]
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
    rms, rms_limit = _apart(noise.rms, of_rms)
    largest, max_limit = _apart(noise.max, of_max)
    each = noise.each or 0.0
    small = f", {_apart(each, of_rms)[0]} x if all elements count alike" if each > of_rms else ""
    whole = f"{output(name)}: the error is {rms} x the model's rounding noise at {noise.precision}{small}"
    return f"{whole}, at most {largest} x{noise.worst} (limits {rms_limit} and {max_limit})"


def _apart(number: float, limit: float) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to distinguish them, at least three."""
    for digits in range(3, 10):
        texts = f"{number:.{digits}g}", f"{limit:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def beyond_wider(noise: Noise) -> str:
    """Describe by how much an error exceeds the other explanations."""
    what = f"the error that {noise.document} allows" if noise.document else f"the noise at {noise.precision}"
    return f"and {noise.rms:.3g} x {what}, at most {noise.max:.3g} x"


def approximate(row: OutputMetrics, noise: Noise) -> str:
    """Describe an error that a document allows."""
    far = f", {row.noise.max:.3g} x the model's rounding noise" if row.noise else ""
    size = f"off by {row.max_abs:.2g} at most{far}" if row.max_abs is not None else "off"
    return f"{output(row.name)}: {size}, which {noise.document} allows"


def documented_loss(row: OutputMetrics, noise: Noise, remedy: str) -> str:
    """Describe an output of which an error that a document allows leaves too little."""
    what = f"{noise.document} allows its error, which is {row.relative_error:.2g} of its size"
    return f"{output(row.name)}: {what}{_remedied(row, remedy)}"


def flushed_words(row: OutputMetrics, part: float) -> str:
    """Describe an output most of which was flushed to zero."""
    return f"{output(row.name)}: subnormal numbers that are {part:.0%} of its size are 0 on one side"


def delivered_words(row: OutputMetrics, precision: str) -> str:
    """Describe an error that is explained by the precision in which an EP computes by its own default."""
    left = "" if row.delivered_bits is None else f", {row.delivered_bits:.1f} bits are left"
    if _is_counted(row):
        left = f", {row.mismatched} of {row.elements} elements differ"
    return f"{output(row.name)}: computed in {precision} by the EP's own default{left}"


def ill_conditioned(row: OutputMetrics, noise: Noise) -> str:
    """Describe an output that rounding destroys, whichever EP computes it."""
    return f"{output(row.name)} cannot be judged: rounding at {noise.precision} {_moves(row, noise)}"


def nothing_left(row: OutputMetrics, noise: Noise, remedy: str) -> str:
    """Describe an output that the rounding of a coarser precision destroys."""
    coarse = noise.delivers or noise.precision
    what = f"the EP computes in {coarse}, whose rounding {_moves(row, noise)}"
    return f"{output(row.name)}: {what}{_remedied(row, remedy)}"


def _moves(row: OutputMetrics, noise: Noise) -> str:
    """Return how far noise moves an output, as a fraction of its size."""
    size = noise.size or (row.relative_error or 0.0) / (noise.rms or 1.0)
    if _is_counted(row) and size < _ALL:
        return f"moves {size:.0%} of its elements"
    return (
        f"moves it by {size:.2g} of its size" if size < _ALL else "makes it NaN, infinite or of another shape"
    )


def _is_counted(row: OutputMetrics) -> bool:
    """Return whether an output's elements are counted, not measured: each has one right answer."""
    return row.noise is not None and row.noise.unmoved is not None


def precision_loss(row: OutputMetrics, delivered: str, least: float, remedy: str) -> str:
    """Describe an output that is right at a coarser precision but keeps too few bits."""
    cosine = "" if row.cosine is None else f", cosine {row.cosine:.3g}"
    if _is_counted(row):
        left = f"{share_text(row.mismatched, row.elements)} differ"
        return f"{output(row.name)}: the EP computes in {delivered}: {left}{_remedied(row, remedy)}"
    bits = math.floor(10 * (row.delivered_bits or 0.0)) / 10  # 3.96 bits are not 4.0
    left = f"{bits:.1f} bits are left, fewer than {least:g}{cosine}"
    return f"{output(row.name)}: the EP computes in {delivered}: {left}{_remedied(row, remedy)}"


def _remedied(row: OutputMetrics, remedy: str) -> str:
    """Return how to make the EP compute at the model's own precision, and the bits that this would keep."""
    if not remedy:
        return ""
    known = [one for one in row.noises if one.rms and not one.document]
    own = min(known, key=lambda one: UNIT_ROUNDOFF.get(one.precision, 1.0), default=None)
    if own is None or row.delivered_bits is None:
        return f"; {remedy} may leave more"
    return f"; {remedy} gives about {max(0.0, row.delivered_bits + math.log2(own.rms)):.0f}"


def relative(error: PrecisionError) -> str:
    """Describe the relative error of a converted model's output, and the CPU EP's own."""
    if error.error is None:
        return error.unknown
    own = "" if error.cpu_error is None else f", the CPU EP's own {error.cpu_error:.2g}"
    return f"relative error {error.error:.2g}{own}"


def lost_words(row: OutputMetrics) -> str:
    """Describe an output that is lost although each element is within the tolerance."""
    error = row.relative_error or 0.0
    return f"{output(row.name)}: relative error {error:.2g}; the tolerance is wider than the values"


def undecided(row: OutputMetrics, excuse: str) -> str:
    """Describe an answer that only an excuse makes right, which would excuse zeros in half of it as well."""
    error = row.relative_error or 0.0
    zeros = "would excuse zeros in its lesser half"
    return f"{output(row.name)} is off by {error:.0%}; {excuse} excuses that, and {zeros}"


def remark(row: OutputMetrics) -> str:
    """Describe why an output is right although its values differ from the golden's; mostly empty."""
    details = row.details
    if details is None or row.mismatched:
        return ""
    if details.distribution:
        unseen = f", of which {row.elements} numbers show no departure below {details.unseen or 0:.2g}"
        return f"{output(row.name)} is judged by its distribution ({details.distribution}){unseen}"
    if details.ties:
        why = "the values tie" if details.lead is None else "rounding at its precision decides"
        return f"{output(row.name)}: {details.ties} positions differ where {why}"
    return ""


def strings(name: str, golden: Tensor, actual: Tensor, differs: NDArray[np.intp]) -> str:
    """Describe how many strings differ, and the first of them."""
    at = int(differs[0])
    got, right = actual.array.reshape(-1).tolist(), golden.array.reshape(-1).tolist()
    first = f"first{_at(golden, at)}: got {_cut(got[at])}, golden is {_cut(right[at])}"
    same = sorted(map(str, right)) == sorted(map(str, got))
    order = "; same values in another order" if same else ""
    return f"{output(name)}: {share_text(differs.size, golden.array.size)} differ; {first}{order}"


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
